// The test addon's functions for stop flags.
#ifndef TEST_ADDON_FLAGS_H_
#define TEST_ADDON_FLAGS_H_

#include <node_api.h>

void InitFlags(napi_env env, napi_value exports);

#endif  // TEST_ADDON_FLAGS_H_
