// The test addon's functions for native threads that share a Variable with JavaScript.
#ifndef TEST_ADDON_VARIABLE_H_
#define TEST_ADDON_VARIABLE_H_

#include <node_api.h>

void InitVariable(napi_env env, napi_value exports);

#endif  // TEST_ADDON_VARIABLE_H_
