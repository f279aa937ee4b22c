// An addon whose only part of allstop is one header: allstop_stop_flag.hpp.
#include <node_api.h>

#include <allstop/allstop_stop_flag.hpp>
#include <atomic>
#include <thread>
#include <utility>

namespace {

std::atomic<bool> ended{true};

// spin(signal): starts a thread that computes until the stop.
napi_value Spin(napi_env env, napi_callback_info info) {
  std::size_t count = 1;
  napi_value argument = nullptr;
  napi_get_cb_info(env, info, &count, &argument, nullptr, nullptr);
  allstop::StopFlag stop(env, argument);
  if (!stop.Valid()) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "signal must be an AbortSignal");
    return nullptr;
  }
  ended = false;
  std::thread([stop = std::move(stop)] {
    while (!stop.ShouldStop()) std::this_thread::yield();
    ended = true;
  }).detach();
  return nullptr;
}

// ended(): whether the thread of the last spin() has ended.
napi_value Ended(napi_env env, napi_callback_info) {
  napi_value value = nullptr;
  napi_get_boolean(env, ended, &value);
  return value;
}

}  // namespace

NAPI_MODULE_INIT() {
  napi_value function = nullptr;
  napi_create_function(env, "spin", NAPI_AUTO_LENGTH, Spin, nullptr, &function);
  napi_set_named_property(env, exports, "spin", function);
  napi_create_function(env, "ended", NAPI_AUTO_LENGTH, Ended, nullptr, &function);
  napi_set_named_property(env, exports, "ended", function);
  return exports;
}
