// An addon in C whose native threads call JavaScript, and go on when their worker has ended: the
// five functions of addon.cc of the same names, by allstop_threadsafe_function.h. It includes no
// other header of allstop.
#include <allstop/allstop_threadsafe_function.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  allstop_threadsafe_function *function;  // a reference of the thread
  int32_t number;
} Poster;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int running = 0;       // held by `mutex`: threads that may still call
static int refused_ends = 0;  // held by `mutex`: see environment_ends
static _Thread_local allstop_threadsafe_function *newest = NULL;  // for close_posts

static void call_js(napi_env env, napi_value function, void *context, void *data) {
  napi_value receiver;
  napi_value number;
  napi_value exception;
  (void)context;
  if (env == NULL) return;
  napi_get_undefined(env, &receiver);
  napi_create_int32(env, (int32_t)(intptr_t)data, &number);
  if (napi_call_function(env, receiver, function, 1, &number, NULL) == napi_pending_exception &&
      napi_get_and_clear_last_exception(env, &exception) == napi_ok) {
    napi_fatal_exception(env, exception);
  }
}

static void on_environment_end(void *context) {
  allstop_threadsafe_function **const held = context;
  const bool is_refused = !allstop_threadsafe_function_call(*held, NULL);
  allstop_threadsafe_function_release(*held);
  free(held);
  pthread_mutex_lock(&mutex);
  refused_ends += is_refused;
  pthread_mutex_unlock(&mutex);
}

static void *post_until_refused(void *argument) {
  Poster *const poster = argument;
  while (allstop_threadsafe_function_call(poster->function, (void *)(intptr_t)poster->number)) {
    sched_yield();
  }
  allstop_threadsafe_function_release(poster->function);
  free(poster);
  pthread_mutex_lock(&mutex);
  if (--running == 0) pthread_cond_broadcast(&ended);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static napi_value post(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value arguments[3];
  int32_t threads = 0;
  allstop_threadsafe_function **const held = malloc(sizeof *held);
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  napi_get_value_int32(env, arguments[2], &threads);
  *held = allstop_threadsafe_function_create(env, arguments[0], "post", call_js, on_environment_end,
                                             held, 0);
  if (*held == NULL) return NULL;
  newest = *held;
  pthread_mutex_lock(&mutex);
  running += threads;
  pthread_mutex_unlock(&mutex);
  for (int32_t i = 0; i < threads; ++i) {
    pthread_t thread;
    Poster *const poster = malloc(sizeof *poster);
    poster->function = allstop_threadsafe_function_retain(*held);
    poster->number = i;
    pthread_create(&thread, NULL, post_until_refused, poster);
    pthread_detach(thread);
  }
  return NULL;
}

static napi_value close_posts(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  allstop_threadsafe_function_close(newest);
  return NULL;
}

/* As `fill` of addon.cc. */
static void *fill_up(void *argument) {
  intptr_t queued = 0;
  while (allstop_threadsafe_function_call(argument, NULL) == ALLSTOP_POSTED) ++queued;
  if (allstop_threadsafe_function_call(argument, NULL) != ALLSTOP_FULL) queued = -1;
  return (void *)queued;
}

static napi_value fill(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2], text;
  uint32_t limit = 0;
  allstop_threadsafe_function *function;
  pthread_t thread;
  void *queued;
  char result_text[32];
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  napi_get_value_uint32(env, arguments[1], &limit);
  function =
      allstop_threadsafe_function_create(env, arguments[0], "fill", call_js, NULL, NULL, limit);
  pthread_create(&thread, NULL, fill_up, function);
  pthread_join(thread, &queued);
  allstop_threadsafe_function_release(function);
  function =
      allstop_threadsafe_function_create(env, arguments[0], "fill", call_js, NULL, NULL, limit);
  allstop_threadsafe_function_close(function);
  snprintf(result_text, sizeof result_text, "%d %d", (int)(intptr_t)queued,
           (int)allstop_threadsafe_function_call(function, NULL));
  allstop_threadsafe_function_release(function);
  napi_create_string_utf8(env, result_text, NAPI_AUTO_LENGTH, &text);
  return text;
}

static napi_value result(napi_env env, napi_callback_info info) {
  napi_value text;
  (void)info;
  pthread_mutex_lock(&mutex);
  while (running > 0) pthread_cond_wait(&ended, &mutex);
  pthread_mutex_unlock(&mutex);
  napi_create_string_utf8(env, "refused", NAPI_AUTO_LENGTH, &text);
  return text;
}

static napi_value environment_ends(napi_env env, napi_callback_info info) {
  napi_value count;
  (void)info;
  pthread_mutex_lock(&mutex);
  napi_create_int32(env, refused_ends, &count);
  pthread_mutex_unlock(&mutex);
  return count;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"post", NULL, post, NULL, NULL, NULL, napi_enumerable, NULL},
      {"closePosts", NULL, close_posts, NULL, NULL, NULL, napi_enumerable, NULL},
      {"fill", NULL, fill, NULL, NULL, NULL, napi_enumerable, NULL},
      {"result", NULL, result, NULL, NULL, NULL, napi_enumerable, NULL},
      {"environmentEnds", NULL, environment_ends, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  napi_define_properties(env, exports, 5, functions);
  return exports;
}
