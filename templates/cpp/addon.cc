// start(coord, onRounds?): starts a native thread, which `await coord.join()` waits for. It calls
//   onRounds(rounds) in JavaScript, until the stop or the end of the worker that has called start.
// rounds(): how often the thread has worked so far.
#include <allstop/allstop_napi.hpp>
#include <allstop/allstop_threadsafe_function.hpp>
#include <atomic>
#include <chrono>

namespace {

std::atomic<std::uint32_t> rounds{0};

void Start(const Napi::CallbackInfo& info) {
  const allstop::Coordinator coord = allstop::From(info[0]);
  // Null if it is no function. At most 100 calls wait for JavaScript.
  const auto tell = allstop::ThreadsafeFunction::Create(info.Env(), info[1], "onRounds", {}, 100);
  if (tell == nullptr && !info[1].IsUndefined()) {
    throw Napi::TypeError::New(info.Env(), "onRounds must be a function");
  }
  allstop::Start(coord, "addon", [tell](const allstop::Coordinator& coord) {
    while (!coord.WaitForStop(std::chrono::milliseconds(1))) {
      // your work; an exception stops everybody, and is what join() throws
      const std::uint32_t done = ++rounds;
      if (tell == nullptr) continue;
      tell->Post([done, coord](napi_env env, napi_value on_rounds) {
        if (coord.ShouldStop()) return;  // calls that wait are made after the join, too
        Napi::Function(env, on_rounds).Call({Napi::Number::New(env, done)});
      });
    }
  });
}

Napi::Value Rounds(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), rounds); }

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports["start"] = Napi::Function::New(env, Start);
  exports["rounds"] = Napi::Function::New(env, Rounds);
  return exports;
}

}  // namespace

NODE_API_MODULE(addon, Init)
