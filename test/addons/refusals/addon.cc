// What allstop_napi.hpp does with a wrong value, in each way to choose the exceptions of
// node-addon-api: binding.gyp compiles this file once for each.
#include <allstop/allstop_napi.hpp>

namespace {

int ran_on = 0;  // how often a function has gone on after a wrong value

template <typename From>
Napi::Value Take(const Napi::CallbackInfo& info, From from) {
  const auto object = from(info[0]);
  if (!object) ++ran_on;
  return info.Env().Undefined();
}

Napi::Value TakeCoordinator(const Napi::CallbackInfo& info) { return Take(info, allstop::From); }
Napi::Value TakeQueue(const Napi::CallbackInfo& info) { return Take(info, allstop::QueueFrom); }
Napi::Value TakeVariable(const Napi::CallbackInfo& info) {
  return Take(info, allstop::VariableFrom);
}
// An addon without C++ exceptions may look at its arguments only after it has taken all of them.
Napi::Value TakeAll(const Napi::CallbackInfo& info) {
  TakeCoordinator(info);
  TakeQueue(info);
  return TakeVariable(info);
}
Napi::Value RanOn(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), ran_on); }

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("coordinator", Napi::Function::New(env, TakeCoordinator));
  exports.Set("queue", Napi::Function::New(env, TakeQueue));
  exports.Set("variable", Napi::Function::New(env, TakeVariable));
  exports.Set("all", Napi::Function::New(env, TakeAll));
  exports.Set("ranOn", Napi::Function::New(env, RanOn));
  return exports;
}

}  // namespace

NODE_API_MODULE(NODE_GYP_MODULE_NAME, Init)
