#ifndef BENCH_ADDON_SIGNAL_H_
#define BENCH_ADDON_SIGNAL_H_

#include <node_api.h>

void InitSignal(napi_env env, napi_value exports);

#endif  // BENCH_ADDON_SIGNAL_H_
