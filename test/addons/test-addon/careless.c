// An addon that does what crashes or hangs a process, for the tests of `allstop check-addon`.
#include <node_api.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void* call_again_and_again(void* tick) {
  const struct timespec pause = {0, 1000000};  // stands for work
  while (napi_call_threadsafe_function(tick, NULL, napi_tsfn_nonblocking) == napi_ok) {
    nanosleep(&pause, NULL);
  }
  return NULL;
}

// tick(function): a native thread calls the function for ever, also after the environment's end.
static napi_value tick(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value function;
  napi_value name;
  napi_threadsafe_function made;
  pthread_t thread;
  napi_get_cb_info(env, info, &count, &function, NULL, NULL);
  napi_create_string_utf8(env, "tick", NAPI_AUTO_LENGTH, &name);
  napi_create_threadsafe_function(env, function, NULL, name, 0, 1, NULL, NULL, NULL, NULL, &made);
  pthread_create(&thread, NULL, call_again_and_again, made);
  pthread_detach(thread);
  return NULL;
}

static void block(void* unused) {
  (void)unused;
  while (1) pause();
}

// hang(): the environment does not end.
static napi_value hang(napi_env env, napi_callback_info info) {
  (void)info;
  napi_add_env_cleanup_hook(env, block, NULL);
  return NULL;
}

static void leave(void* unused) {
  (void)unused;
  _exit(7);
}

// exit(): the end of the environment ends the process.
static napi_value exit_at_end(napi_env env, napi_callback_info info) {
  (void)info;
  napi_add_env_cleanup_hook(env, leave, NULL);
  return NULL;
}

static int* counted;  // made once in the process

static void make_counted(void) { counted = calloc(1, sizeof *counted); }

static void free_counted(void* unused) {
  (void)unused;
  free(counted);
  counted = NULL;
}

// count(): uses what the end of the first environment takes away from all others.
static napi_value count(napi_env env, napi_callback_info info) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)info;
  pthread_once(&once, make_counted);
  ++*(volatile int*)counted;
  napi_add_env_cleanup_hook(env, free_counted, NULL);
  return NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"tick", NULL, tick, NULL, NULL, NULL, napi_enumerable, NULL},
      {"hang", NULL, hang, NULL, NULL, NULL, napi_enumerable, NULL},
      {"exit", NULL, exit_at_end, NULL, NULL, NULL, napi_enumerable, NULL},
      {"count", NULL, count, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  napi_define_properties(env, exports, 4, functions);
  return exports;
}
