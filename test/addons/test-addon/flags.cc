// Stop flags of any `signal`: the functions here work without allstop at run time.
#include "flags.h"

#include <allstop/allstop_stop_flag.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "results.h"

namespace {

struct Flags {
  std::mutex mutex;
  std::vector<allstop::StopFlag> all;  // by number
};

Flags& flags() {
  static Flags* const instance = new Flags;
  return *instance;
}

allstop::StopFlag FlagOf(napi_env env, napi_value number) {
  std::uint32_t index = 0;
  napi_get_value_uint32(env, number, &index);
  const std::lock_guard<std::mutex> lock(flags().mutex);
  return flags().all.at(index);
}

napi_value Keep(napi_env env, allstop::StopFlag flag) {
  const std::lock_guard<std::mutex> lock(flags().mutex);
  flags().all.push_back(std::move(flag));
  napi_value number = nullptr;
  napi_create_uint32(env, static_cast<std::uint32_t>(flags().all.size() - 1), &number);
  return number;
}

struct Arguments {
  Arguments(napi_env env, napi_callback_info info) {
    std::size_t count = 2;
    napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  }
  napi_value values[2] = {};
};

// flag(value): the number of a new flag, or undefined if it is not valid. Throws if the value has
// left an exception pending.
napi_value MakeFlag(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::StopFlag flag(env, arguments.values[0]);
  bool pending = false;
  napi_is_exception_pending(env, &pending);
  if (pending || !flag.Valid()) return nullptr;
  return Keep(env, std::move(flag));
}

// oldListener(signal): hangs on the signal what older headers did, an object that wraps the
// source. Returns a function that stops the source.
napi_value OldListener(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  static allstop_stop_source source = {};
  source.retain = [](allstop_stop_source*) {};
  source.release = [](allstop_stop_source*) {};
  napi_value key = nullptr;
  napi_value listener = nullptr;
  napi_create_object(env, &listener);
  napi_type_tag_object(env, listener, &allstop_stop_source_tag);
  napi_wrap(env, listener, &source, nullptr, nullptr, nullptr);
  allstop_stop_source_key(env, &key);
  napi_set_property(env, arguments.values[0], key, listener);
  const auto stop = [](napi_env, napi_callback_info) -> napi_value {
    allstop_stop_source_stop(&source);
    return nullptr;
  };
  napi_value function = nullptr;
  napi_create_function(env, "stop", NAPI_AUTO_LENGTH, stop, nullptr, &function);
  return function;
}

// flagStatus(value): the status of allstop_stop_flag_from_napi, and whether the flag is stopped:
// "0|1", say. The flag is copied and released.
napi_value FlagStatus(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop_stop_flag flag;
  allstop_stop_flag copy;
  const allstop_status status = allstop_stop_flag_from_napi(env, arguments.values[0], &flag);
  allstop_stop_flag_retain(&flag, &copy);
  allstop_stop_flag_release(&flag);
  const std::string text =
      std::to_string(status) + "|" + std::to_string(allstop_stop_flag_should_stop(&copy));
  allstop_stop_flag_release(&copy);
  allstop_stop_flag_release(&copy);  // all zeros by now
  napi_value value = nullptr;
  napi_create_string_utf8(env, text.c_str(), text.size(), &value);
  return value;
}

// mergeFlags(one, other): the number of a new flag.
napi_value MergeFlags(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  return Keep(env, allstop::StopFlag::Merge(FlagOf(env, arguments.values[0]),
                                            FlagOf(env, arguments.values[1])));
}

napi_value FlagShouldStop(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  napi_value value = nullptr;
  napi_get_boolean(env, FlagOf(env, arguments.values[0]).ShouldStop(), &value);
  return value;
}

// releaseFlag(number): on a native thread.
napi_value ReleaseFlag(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::uint32_t index = 0;
  napi_get_value_uint32(env, arguments.values[0], &index);
  std::thread([index] {
    allstop::StopFlag released;
    const std::lock_guard<std::mutex> lock(flags().mutex);
    std::swap(released, flags().all.at(index));
  }).join();
  return nullptr;
}

// watchFlag(number, name): a native thread polls the flag; result: the milliseconds since the
// epoch at which it saw the stop.
napi_value WatchFlag(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  char name[32];
  napi_get_value_string_utf8(env, arguments.values[1], name, sizeof(name), nullptr);
  std::thread([flag = FlagOf(env, arguments.values[0]), name = std::string(name)] {
    while (!flag.ShouldStop()) std::this_thread::yield();
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    SetResult(name,
              std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
  }).detach();
  return nullptr;
}

}  // namespace

void InitFlags(napi_env env, napi_value exports) {
  const auto set = [&](const char* name, napi_callback function) {
    napi_value value;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value);
    napi_set_named_property(env, exports, name, value);
  };
  set("flag", MakeFlag);
  set("flagStatus", FlagStatus);
  set("mergeFlags", MergeFlags);
  set("flagShouldStop", FlagShouldStop);
  set("oldListener", OldListener);
  set("releaseFlag", ReleaseFlag);
  set("watchFlag", WatchFlag);
}
