// Exceptions of JavaScript that are thrown through C++: Napi::Error of node-addon-api.
#include <allstop/allstop_napi.hpp>
#include <exception>

namespace {

// stopOnException(coord, fn): calls the JavaScript function; an error of it stops the coordinator.
Napi::Value StopOnException(const Napi::CallbackInfo& info) {
  const allstop::Coordinator coord = allstop::From(info[0]);
  const auto fn = info[1].As<Napi::Function>();
  return Napi::Boolean::New(info.Env(), allstop::StopOnException(coord, [&] { fn.Call({}); }));
}

// fail(coord, fn): the same, by a Registration.
void Fail(const Napi::CallbackInfo& info) {
  allstop::Registration work(allstop::From(info[0]), "work");
  try {
    info[1].As<Napi::Function>().Call({});
  } catch (...) {
    work.Fail();
  }
}

// throwOnThread(coord, fn): a native thread throws the error that the function has thrown here.
void ThrowOnThread(const Napi::CallbackInfo& info) {
  const allstop::Coordinator coord = allstop::From(info[0]);
  std::exception_ptr thrown;
  try {
    info[1].As<Napi::Function>().Call({});
  } catch (...) {
    thrown = std::current_exception();
  }
  allstop::Thread(coord, "thrower", [thrown = std::move(thrown)]() mutable {
    std::rethrow_exception(std::move(thrown));
  }).Join();
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("stopOnException", Napi::Function::New(env, StopOnException));
  exports.Set("fail", Napi::Function::New(env, Fail));
  exports.Set("throwOnThread", Napi::Function::New(env, ThrowOnThread));
  return exports;
}

}  // namespace

NODE_API_MODULE(NODE_GYP_MODULE_NAME, Init)
