// mark(name): ends a part of the output of callgrind, which has the name as its trigger: for
// bench/guard/start.mjs.
#include <node_api.h>
#include <valgrind/callgrind.h>

static napi_value Mark(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument;
  char name[64] = "";
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  napi_get_value_string_utf8(env, argument, name, sizeof(name), NULL);
  CALLGRIND_DUMP_STATS_AT(name);
  return NULL;
}

NAPI_MODULE_INIT(/* env, exports */) {
  napi_value mark;
  napi_create_function(env, "mark", NAPI_AUTO_LENGTH, Mark, NULL, &mark);
  napi_set_named_property(env, exports, "mark", mark);
  return exports;
}
