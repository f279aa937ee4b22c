/*
 * start(coord): starts a native thread, which `await coord.join()` waits for.
 * rounds(): how often the thread has worked so far.
 *
 * For POSIX systems: the thread is a pthread.
 */
#include <allstop/allstop_node.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_uint rounds;

typedef struct work {
  allstop_coordinator coord; /* a reference of this thread's own */
  allstop_thread *thread;    /* its registration */
} work;

static void *run(void *argument) {
  work *const self = argument;
  allstop_thread_enter(&self->coord, self->thread);
  while (!allstop_should_stop(&self->coord)) {
    ++rounds; /* your work */
    usleep(1000);
  }
  /* Instead of NULL an error, if the work has failed: it stops everybody, and join() throws it. */
  allstop_thread_done(&self->coord, self->thread, NULL);
  allstop_release(&self->coord);
  free(self);
  return NULL;
}

static napi_value start(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument;
  allstop_coordinator coord;
  allstop_thread *thread = NULL;
  pthread_t started;
  work *self = NULL;
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  allstop_status status = allstop_from_napi(env, argument, &coord);
  if (status != ALLSTOP_OK) {
    allstop_throw_status(env, status);
    return NULL;
  }
  /* Registered before it is started, so that a join which begins meanwhile waits for it. */
  status = allstop_thread_register(&coord, allstop_str("addon"), 0, &thread);
  if (status == ALLSTOP_OK) {
    self = malloc(sizeof(*self));
    if (self != NULL) *self = (work){coord, thread};
    if (self != NULL && pthread_create(&started, NULL, run, self) == 0) {
      pthread_detach(started); /* what `self` holds is the thread's now */
      return NULL;
    }
    free(self);
    allstop_thread_done(&coord, thread, NULL);
    status = ALLSTOP_RESOURCE_EXHAUSTED;
  }
  allstop_release(&coord);
  allstop_throw(env, status, NULL);
  return NULL;
}

static napi_value get_rounds(napi_env env, napi_callback_info info) {
  napi_value value;
  (void)info;
  return napi_create_uint32(env, rounds, &value) == napi_ok ? value : NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"start", NULL, start, NULL, NULL, NULL, napi_enumerable, NULL},
      {"rounds", NULL, get_rounds, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  napi_define_properties(env, exports, 2, functions);
  return exports;
}
