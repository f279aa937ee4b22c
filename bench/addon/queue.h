#ifndef BENCH_ADDON_QUEUE_H_
#define BENCH_ADDON_QUEUE_H_

#include <node_api.h>

void InitQueue(napi_env env, napi_value exports);

#endif  // BENCH_ADDON_QUEUE_H_
