// The test addon's functions for native threads that share a BoundedQueue with JavaScript.
#ifndef TEST_ADDON_QUEUE_H_
#define TEST_ADDON_QUEUE_H_

#include <node_api.h>

void InitQueue(napi_env env, napi_value exports);

#endif  // TEST_ADDON_QUEUE_H_
