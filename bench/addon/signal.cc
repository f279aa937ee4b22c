// A native thread that works until the stop flag of a JavaScript caller's signal is stopped, and
// notes when it has seen that.
#include "signal.h"

#include <allstop/allstop_stop_flag.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

namespace {

std::atomic<std::int64_t> seen_ns{0};  // 0: not yet

std::int64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// work(signal)
napi_value Work(napi_env env, napi_callback_info info) {
  std::size_t count = 1;
  napi_value value;
  napi_get_cb_info(env, info, &count, &value, nullptr, nullptr);
  allstop::StopFlag flag(env, value);
  if (!flag.Valid()) {
    allstop_throw(env, ALLSTOP_INVALID_HANDLE, "The argument must be an AbortSignal");
    return nullptr;
  }
  seen_ns = 0;
  std::thread([flag = std::move(flag)] {
    // Stands for a piece of work between two checks, without taking a processor from JavaScript.
    while (!flag.ShouldStop()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    seen_ns = NowNs();
  }).detach();
  return nullptr;
}

// now(): nanoseconds of the clock of seen(). (process.hrtime() of Bun and Deno is another.)
napi_value Now(napi_env env, napi_callback_info /*info*/) {
  napi_value value;
  napi_create_bigint_int64(env, NowNs(), &value);
  return value;
}

// seen(): when the thread of the last work() has seen the stop; 0n if it has not yet.
napi_value Seen(napi_env env, napi_callback_info /*info*/) {
  napi_value value;
  napi_create_bigint_int64(env, seen_ns, &value);
  return value;
}

}  // namespace

void InitSignal(napi_env env, napi_value exports) {
  napi_value function;
  napi_create_function(env, "work", NAPI_AUTO_LENGTH, Work, nullptr, &function);
  napi_set_named_property(env, exports, "work", function);
  napi_create_function(env, "now", NAPI_AUTO_LENGTH, Now, nullptr, &function);
  napi_set_named_property(env, exports, "now", function);
  napi_create_function(env, "seen", NAPI_AUTO_LENGTH, Seen, nullptr, &function);
  napi_set_named_property(env, exports, "seen", function);
}
