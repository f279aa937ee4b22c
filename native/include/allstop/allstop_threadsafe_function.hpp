// allstop_threadsafe_function.hpp - a napi_threadsafe_function that threads may call
// for as long as they like, also when its environment has ended.
//
// For any Node addon in C++17, on plain Node-API (8 or later), whether it wants
// anything else of allstop or not. Nothing is linked. Compiles with and without
// exceptions and RTTI.
//
//   auto progress = allstop::ThreadsafeFunction::Create(env, js_function, "progress");
//   std::thread([progress] {
//     bool listening = true;
//     for (int done = 0; listening; ++done) {
//       Work();
//       listening = progress->Post([done](napi_env env, napi_value function) {
//         CallWithNumber(env, function, done);
//       });
//     }
//   }).detach();
//
// Why it is needed. An environment is a thread of JavaScript: the main one, or a
// worker. Node 20 and 22 abort the process when a thread touches a thread-safe
// function whose worker has ended, and every Node unmaps an addon that only an ended
// worker had loaded, under the feet of its threads. So the function is only touched
// under a mutex; a cleanup hook, registered after it was made and hence run before
// Node lets go of it, takes it away under the same mutex; and the module that
// includes this is kept in memory for good.
#ifndef ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_HPP_
#define ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_HPP_

#include <node_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "allstop_node.h"

namespace allstop {

// Held by shared_ptr, by whoever calls it. The last one may let go of it on any
// thread, before or after the end of the environment.
class ThreadsafeFunction {
 public:
  // On the JavaScript thread, when it has time. `function` is what Create was given.
  // With a null `env` it was closed, or the environment has ended: free `data`, touch
  // nothing else, not even `context`, which Node has let go of by then.
  using CallJs = void (*)(napi_env env, napi_value function, void* context, void* data);
  // An exception that it leaves pending becomes an uncaught one of JavaScript's.
  using Posted = std::function<void(napi_env env, napi_value function)>;

  // `function` may be null. It does not keep the event loop alive, see SetReferenced.
  // Null if the runtime refuses. JavaScript thread of `env`, as are all functions here
  // that take one.
  static std::shared_ptr<ThreadsafeFunction> Create(napi_env env, napi_value function,
                                                    const char* name) {
    return Create(env, function, name, RunPosted, nullptr);
  }
  // The same with one way of calling, for those who cannot afford a std::function for
  // each: `context` is held as long as calls with an `env` can come.
  static std::shared_ptr<ThreadsafeFunction> Create(napi_env env, napi_value function,
                                                    const char* name, CallJs call_js,
                                                    std::shared_ptr<void> context) {
    allstop_pin_module();
    napi_value resource;
    if (napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &resource) != napi_ok) return nullptr;
    const std::shared_ptr<ThreadsafeFunction> made(new ThreadsafeFunction(env));
    void* const bare_context = context.get();
    auto* const held = new Held{made, std::move(context), false};
    if (napi_create_threadsafe_function(env, function, nullptr, resource, 0, 1, held, Finalize,
                                        bare_context, call_js, &made->function_) != napi_ok) {
      delete held;
      return nullptr;
    }
    napi_unref_threadsafe_function(env, made->function_);
    napi_add_env_cleanup_hook(env, CloseHook, held);
    return made;
  }
  ThreadsafeFunction(const ThreadsafeFunction&) = delete;
  ThreadsafeFunction& operator=(const ThreadsafeFunction&) = delete;

  // Any thread; does not block. False: it was closed, or the environment has ended, and
  // nothing will come of it; `data` is still the caller's then.
  bool Call(void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return function_ != nullptr &&
           napi_call_threadsafe_function(function_, data, napi_tsfn_nonblocking) == napi_ok;
  }

  // Any thread; does not block. Of one made without a `call_js`. False: it was closed,
  // or the environment has ended, and `posted` is gone. One that was posted just before
  // that is destroyed without having been called.
  bool Post(Posted posted) {
    auto held = std::make_unique<Posted>(std::move(posted));
    if (!Call(held.get())) return false;
    held.release();
    return true;
  }

  // Whether it keeps the event loop, and so the process, alive. At first: no.
  void SetReferenced(napi_env env, bool referenced) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (function_ == nullptr) return;
    if (referenced) {
      napi_ref_threadsafe_function(env, function_);
    } else {
      napi_unref_threadsafe_function(env, function_);
    }
  }

  // Before its time. JavaScript thread.
  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (function_ == nullptr) return;
    napi_release_threadsafe_function(std::exchange(function_, nullptr), napi_tsfn_abort);
  }

 private:
  struct Held {
    std::shared_ptr<ThreadsafeFunction> self;
    std::shared_ptr<void> context;
    bool hook_has_run;
  };

  explicit ThreadsafeFunction(napi_env env) : env_(env) {}

  static void CloseHook(void* data) {
    auto& held = *static_cast<Held*>(data);
    held.hook_has_run = true;
    held.self->Close();
  }

  static void RunPosted(napi_env env, napi_value function, void* /*context*/, void* data) {
    const std::unique_ptr<Posted> posted(static_cast<Posted*>(data));
    if (env == nullptr) return;
    (*posted)(env, function);
    bool pending = false;
    napi_value exception;
    if (napi_is_exception_pending(env, &pending) == napi_ok && pending &&
        napi_get_and_clear_last_exception(env, &exception) == napi_ok) {
      napi_fatal_exception(env, exception);
    }
  }

  static void Finalize(napi_env /*env*/, void* data, void* /*context*/) {
    const std::unique_ptr<Held> held(static_cast<Held*>(data));
    // Closed before its time: the hook would come when `held` is gone.
    if (held->hook_has_run) return;
    napi_remove_env_cleanup_hook(held->self->env_, CloseHook, held.get());
  }

  const napi_env env_;
  std::mutex mutex_;                             // guards the function and its calls
  napi_threadsafe_function function_ = nullptr;  // null once closed
};

}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_HPP_
