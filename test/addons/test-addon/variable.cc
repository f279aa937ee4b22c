#include "variable.h"

#include <allstop/allstop_node.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_variable.hpp>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "results.h"

namespace {

std::string Text(napi_env env, napi_value value) {
  std::size_t size = 0;
  napi_get_value_string_utf8(env, value, nullptr, 0, &size);
  std::string text(size + 1, '\0');
  napi_get_value_string_utf8(env, value, text.data(), text.size(), &size);
  text.resize(size);
  return text;
}

struct Arguments {
  Arguments(napi_env env, napi_callback_info info) : env(env) {
    std::size_t count = 3;
    napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  }
  // Gets the variable from the first argument. Returns false, with a JavaScript exception pending,
  // if the argument is not a Variable of this process.
  bool Take(allstop::Variable& variable) const {
    allstop_variable handle = {};
    const allstop_status status = allstop_variable_from_napi(env, values[0], &handle);
    if (status != ALLSTOP_OK) {
      allstop_variable_throw_status(env, status);
      return false;
    }
    variable = allstop::Variable(handle);
    return true;
  }
  napi_env env;
  napi_value values[3] = {};
};

// variableStatus(value): the status of allstop_variable_from_napi for any value.
napi_value VariableStatus(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop_variable handle = {};
  const allstop_status status = allstop_variable_from_napi(env, arguments.values[0], &handle);
  if (status == ALLSTOP_OK) allstop_variable_release(&handle);
  napi_value value;
  napi_create_int32(env, status, &value);
  return value;
}

// variableInfo(variable): "name|type|length".
napi_value VariableInfo(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::Variable variable;
  if (!arguments.Take(variable)) return nullptr;
  const std::string text = variable.name() + "|" + std::to_string(variable.type()) + "|" +
                           std::to_string(variable.length());
  napi_value value;
  napi_create_string_utf8(env, text.data(), text.size(), &value);
  return value;
}

template <typename Element>
allstop_status AddOnes(const allstop::Variable& variable, std::uint32_t count) {
  const std::vector<Element> ones(variable.length(), 1);
  allstop_status status = ALLSTOP_OK;
  for (std::uint32_t i = 0; i < count && status == ALLSTOP_OK; ++i) {
    status = variable.AssignAdd(ones);
  }
  return status;
}

// variableAdd(variable, count, name): starts a thread that waits at the gate `name`, then adds 1 to
// each element, `count` times. The result `name`: the last status.
napi_value VariableAdd(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::Variable variable;
  if (!arguments.Take(variable)) return nullptr;
  std::uint32_t count = 0;
  napi_get_value_uint32(env, arguments.values[1], &count);
  const std::string name = Text(env, arguments.values[2]);
  std::thread([=] {
    PassGate(name);
    allstop_status status = ALLSTOP_INVALID_ARGUMENT;
    switch (variable.type()) {
      case ALLSTOP_VARIABLE_NUMBER:
      case ALLSTOP_VARIABLE_FLOAT64: status = AddOnes<double>(variable, count); break;
      case ALLSTOP_VARIABLE_FLOAT32: status = AddOnes<float>(variable, count); break;
      case ALLSTOP_VARIABLE_INT32: status = AddOnes<std::int32_t>(variable, count); break;
    }
    SetResult(name, std::to_string(status));
  }).detach();
  return nullptr;
}

}  // namespace

void InitVariable(napi_env env, napi_value exports) {
  const auto set = [&](const char* name, napi_callback function) {
    napi_value value;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value);
    napi_set_named_property(env, exports, name, value);
  };
  set("variableStatus", VariableStatus);
  set("variableInfo", VariableInfo);
  set("variableAdd", VariableAdd);
}
