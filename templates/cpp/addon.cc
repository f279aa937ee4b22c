// start(coord): starts a native thread, which `await coord.join()` waits for.
// rounds(): how often the thread has worked so far.
#include <allstop/allstop_napi.hpp>
#include <atomic>
#include <chrono>
#include <thread>

namespace {

std::atomic<std::uint32_t> rounds{0};

void Start(const Napi::CallbackInfo& info) {
  allstop::Start(allstop::From(info[0]), "addon", [](const allstop::Coordinator& coord) {
    while (!coord.ShouldStop()) {
      ++rounds;  // your work; an exception stops everybody, and is what join() throws
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
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
