// Exceptions of JavaScript that are thrown through C++: Napi::Error of node-addon-api.
#include <allstop/allstop_napi.hpp>
#include <allstop/allstop_threadsafe_function.hpp>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

std::exception_ptr kept;

// What `function` has thrown.
template <typename Function>
std::exception_ptr ThrownBy(Function function) {
  try {
    function();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

// stopOnException(coord, fn): calls the JavaScript function; an error of it stops the coordinator,
// which is an empty object for undefined.
Napi::Value StopOnException(const Napi::CallbackInfo& info) {
  allstop::Coordinator coord;
  if (!info[0].IsUndefined()) coord = allstop::From(info[0]);
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
  std::exception_ptr thrown = ThrownBy([&] { info[1].As<Napi::Function>().Call({}); });
  allstop::Thread(coord, "thrower", [thrown = std::move(thrown)]() mutable {
    std::rethrow_exception(std::move(thrown));
  }).Join();
}

// wrap(coord, fn): an exception of C++ in which that of the JavaScript function is nested.
void Wrap(const Napi::CallbackInfo& info) {
  allstop::StopOnException(allstop::From(info[0]), [&] {
    try {
      info[1].As<Napi::Function>().Call({});
    } catch (...) {
      std::throw_with_nested(std::runtime_error("the scan has failed"));
    }
  });
}

// keep(fn): keeps what the function throws. throwKept(coord): throws it, once.
void Keep(const Napi::CallbackInfo& info) {
  kept = ThrownBy([&] { info[0].As<Napi::Function>().Call({}); });
}
void ThrowKept(const Napi::CallbackInfo& info) {
  allstop::StopOnException(allstop::From(info[0]),
                           [] { std::rethrow_exception(std::exchange(kept, nullptr)); });
}

// pass(from, to): the error of the one stop becomes that of the other, by C++ alone.
void Pass(const Napi::CallbackInfo& info) {
  const allstop::Coordinator from = allstop::From(info[0]);
  allstop::StopOnException(allstop::From(info[1]), [&] { allstop::RaiseRequestedException(from); });
}

// causesOf(coord): the messages of the causes of the stop's error, as C++ reads them.
Napi::Value CausesOf(const Napi::CallbackInfo& info) {
  const auto error = allstop::From(info[0]).FirstError();
  Napi::Array messages = Napi::Array::New(info.Env());
  for (auto cause = error->cause; cause; cause = cause->cause) {
    messages[messages.Length()] = cause->message;
  }
  return messages;
}

struct Quiet : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

// post(fn): a native thread posts a call of the function; post(fn, text): one that throws `text`;
// "quiet" an exception without a text;
// post(fn, text, true): one that throws `text` while the exception of the function is pending.
void Post(const Napi::CallbackInfo& info) {
  const auto call = allstop::ThreadsafeFunction::Create(info.Env(), info[0], "post");
  call->SetReferenced(info.Env(), true);
  const std::string text = info[1].IsString() ? info[1].As<Napi::String>() : std::string();
  const bool is_both = info[2].ToBoolean();
  std::thread([call, text, is_both] {
    call->Post([call, text, is_both](napi_env env, napi_value function) {
      call->SetReferenced(env, false);
      napi_value result = nullptr;
      if (is_both) napi_call_function(env, function, function, 0, nullptr, &result);
      if (text == "quiet") throw Quiet();
      if (!text.empty()) throw std::runtime_error(text);
      Napi::Function(env, function).Call({});
    });
  }).join();
}

// postRegistered(coord, fn, isClosed): a native thread posts two calls of the function, neither of
// which may be lost; with `isClosed` when nothing takes them any more.
void PostRegistered(const Napi::CallbackInfo& info) {
  const auto call = allstop::ThreadsafeFunction::Create(info.Env(), info[1], "post");
  if (info[2].ToBoolean()) {
    call->Close();
  } else {
    call->SetReferenced(info.Env(), true);
  }
  allstop::RegisteredCalls calls(allstop::From(info[0]), "batches");
  std::thread([call, calls = std::move(calls)] {
    for (const bool is_last : {false, true}) {
      call->Post(calls.Of([call, is_last](napi_env env, napi_value function) {
        if (is_last) call->SetReferenced(env, false);
        napi_value result = nullptr;  // a function that asks for no status
        napi_call_function(env, function, function, 0, nullptr, &result);
      }));
    }
  }).join();
}

// callUnguarded(fn): calls the function from a thread-safe function that catches nothing.
void CallUnguarded(const Napi::CallbackInfo& info) {
  const auto call = [](napi_env env, napi_value function, void*, void*) {
    if (env != nullptr) Napi::Function(env, function).Call({});
  };
  napi_threadsafe_function made = nullptr;
  napi_create_threadsafe_function(info.Env(), info[0], nullptr,
                                  Napi::String::New(info.Env(), "unguarded"), 0, 1, nullptr,
                                  nullptr, nullptr, call, &made);
  napi_call_threadsafe_function(made, nullptr, napi_tsfn_nonblocking);
  napi_release_threadsafe_function(made, napi_tsfn_release);
}

// queueFrom(value): how many items are in the queue. Throws for another value.
Napi::Value QueueFrom(const Napi::CallbackInfo& info) {
  const auto size = static_cast<double>(allstop::QueueFrom(info[0]).size());
  return Napi::Number::New(info.Env(), size);
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("stopOnException", Napi::Function::New(env, StopOnException));
  exports.Set("fail", Napi::Function::New(env, Fail));
  exports.Set("throwOnThread", Napi::Function::New(env, ThrowOnThread));
  exports.Set("wrap", Napi::Function::New(env, Wrap));
  exports.Set("keep", Napi::Function::New(env, Keep));
  exports.Set("throwKept", Napi::Function::New(env, ThrowKept));
  exports.Set("pass", Napi::Function::New(env, Pass));
  exports.Set("causesOf", Napi::Function::New(env, CausesOf));
  exports.Set("callUnguarded", Napi::Function::New(env, CallUnguarded));
  exports.Set("postRegistered", Napi::Function::New(env, PostRegistered));
  exports.Set("queueFrom", Napi::Function::New(env, QueueFrom));
  exports.Set("post", Napi::Function::New(env, Post));
  return exports;
}

}  // namespace

NODE_API_MODULE(NODE_GYP_MODULE_NAME, Init)
