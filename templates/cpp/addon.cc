// start(coord, onRounds?): starts a native thread, which `await coord.join()` waits for. It calls
//   onRounds(rounds) in JavaScript, while the worker that has called start lives.
// rounds(): how often the thread has worked so far.
#include <allstop/allstop_napi.hpp>
#include <allstop/allstop_threadsafe_function.hpp>
#include <atomic>
#include <chrono>
#include <thread>

namespace {

std::atomic<std::uint32_t> rounds{0};

void Start(const Napi::CallbackInfo& info) {
  // Null if there is no function. At most 100 calls wait for JavaScript.
  const auto tell = allstop::ThreadsafeFunction::Create(info.Env(), info[1], "onRounds", {}, 100);
  allstop::Start(allstop::From(info[0]), "addon", [tell](const allstop::Coordinator& coord) {
    while (!coord.ShouldStop()) {
      // your work; an exception stops everybody, and is what join() throws
      const std::uint32_t done = ++rounds;
      if (tell != nullptr) {
        tell->Post([done](napi_env env, napi_value on_rounds) {
          Napi::Function(env, on_rounds).Call({Napi::Number::New(env, done)});
        });
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (tell != nullptr) tell->Close();  // else what waits is called after the join, too
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
