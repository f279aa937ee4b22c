// A signal handler of the test addon, as other addons install one.
#ifndef TEST_ADDON_SIGNALS_H_
#define TEST_ADDON_SIGNALS_H_

#include <node_api.h>

void InitSignals(napi_env env, napi_value exports);

#endif  // TEST_ADDON_SIGNALS_H_
