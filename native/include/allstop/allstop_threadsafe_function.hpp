/// @file allstop_threadsafe_function.hpp
/// A napi_threadsafe_function that native threads may call at any time, also after the end of
/// its environment.
///
/// For any Node addon in C++17, on plain Node-API (version 8 or later), also for an addon that
/// uses nothing else of allstop. The addon links nothing of allstop. Compiles with and without
/// exceptions and RTTI.
///
/// @code
///   auto progress = allstop::ThreadsafeFunction::Create(env, js_function, "progress");
///   std::thread([progress] {
///     bool listening = true;
///     for (int done = 0; listening; ++done) {
///       Work();
///       listening = progress->Post([done](napi_env env, napi_value function) {
///         CallWithNumber(env, function, done);
///       });
///     }
///   }).detach();
/// @endcode
///
/// Why it is needed. An environment is a thread of JavaScript, the main thread or a worker.
/// Node 20 and 22 abort the process when a native thread calls a thread-safe function whose
/// worker has ended. And every version of Node unmaps an addon when the last environment that
/// loaded the addon ends, even if the addon's threads are running.
///
/// How it works. Every use of the napi_threadsafe_function happens under a mutex. A cleanup
/// hook of the environment takes the function away under the same mutex; Node runs hooks in
/// reverse order, and this hook is registered after the function was created, so it runs
/// before Node frees the function. The module that includes this header stays in memory until
/// the process ends.
///
/// What else belongs to the environment, such as a napi_ref or an entry in a list of listeners,
/// goes in `on_environment_end`. allstop_threadsafe_function.h is the same in C.
#ifndef ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_HPP_
#define ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_HPP_

#include <node_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "allstop_cpp17.hpp"
#include "allstop_node.h"

namespace allstop {

/// A thread-safe function. Each thread that calls it holds a shared_ptr; any thread may
/// release the last one, before or after the end of the environment.
class ThreadsafeFunction {
 public:
  /// Runs on the JavaScript thread, once for each Call, with the `function` and the `context`
  /// given to Create and the `data` given to Call. It must leave no JavaScript exception pending
  /// (napi_get_and_clear_last_exception, then napi_fatal_exception, make an uncaught exception of
  /// it), and throw nothing; what is posted may. A null `env` means that the function was
  /// closed or the environment has ended: then free `data` and touch nothing else. In
  /// particular, `context` may be freed already.
  using CallJs = void (*)(napi_env env, napi_value function, void* context, void* data);
  /// Runs on the JavaScript thread, with the `function` given to Create. An exception that it
  /// leaves pending becomes an uncaught exception of that thread.
  using Posted = std::function<void(napi_env env, napi_value function)>;
  /// Runs on the JavaScript thread when the environment ends, once, with no lock held: after
  /// that Call and Post return false, and no posted function runs any more. It may delete
  /// references (napi_delete_reference) and take native locks, but must not call JavaScript,
  /// must not throw, and must not wait for the event loop. It is not called after Close.
  using EnvironmentEnd = std::function<void()>;
  /// What became of a call: only kClosed is false.
  enum PostResult {
    kClosed = 0,  ///< closed, or the environment has ended: nothing was queued
    kPosted = 1,  ///< queued
    kFull = 2,    ///< `limit` calls are queued already: nothing was queued
  };

  /// Creates a thread-safe function for Post. It does not keep the event loop alive; see
  /// SetReferenced. Call it on the JavaScript thread of `env`.
  ///
  /// @param function passed to each posted function; may be null
  /// @param name shown by Node's diagnostics
  /// @param on_environment_end see EnvironmentEnd; may be empty. It is destroyed on the
  ///   JavaScript thread after it has run or after Close, so what it captures may include the
  ///   returned pointer
  /// @param limit the most calls that wait for the JavaScript thread; 0: as many as memory holds. A
  ///   native thread that is faster than JavaScript fills the memory without a limit
  /// @returns null if Node-API reports an error
  static std::shared_ptr<ThreadsafeFunction> Create(napi_env env, napi_value function,
                                                    const char* name,
                                                    EnvironmentEnd on_environment_end = {},
                                                    std::size_t limit = 0) {
    return Create(env, function, name, RunPosted, nullptr, std::move(on_environment_end), limit);
  }
  /// Creates a thread-safe function for Call, which needs no std::function for each call.
  /// Otherwise as above.
  ///
  /// @param context passed to `call_js`; held until the last call with an `env` has returned
  static std::shared_ptr<ThreadsafeFunction> Create(napi_env env, napi_value function,
                                                    const char* name, CallJs call_js,
                                                    std::shared_ptr<void> context,
                                                    EnvironmentEnd on_environment_end = {},
                                                    std::size_t limit = 0) {
    allstop_pin_module();
    napi_value resource;
    if (napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &resource) != napi_ok) return nullptr;
    const std::shared_ptr<ThreadsafeFunction> made(new ThreadsafeFunction(env));
    void* const bare_context = context.get();
    auto* const held = new Held{made, std::move(context), std::move(on_environment_end), false};
    if (napi_create_threadsafe_function(env, function, nullptr, resource, limit, 1, held, Finalize,
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

  /// Has `call_js(env, function, context, data)` called on the JavaScript thread. Any thread;
  /// does not block.
  ///
  /// @returns kPosted; else `call_js` will not be called, and `data` is still the caller's:
  ///   kClosed (0), or kFull, if Create was given a limit
  PostResult Call(void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (function_ == nullptr) return kClosed;
    const napi_status status =
        napi_call_threadsafe_function(function_, data, napi_tsfn_nonblocking);
    if (status == napi_queue_full) return kFull;
    return status == napi_ok ? kPosted : kClosed;
  }

  /// Has `posted(env, function)` called on the JavaScript thread. Only for an object that was
  /// created without a `call_js`. Any thread; does not block.
  ///
  /// A function that was posted shortly before the close or the end of the environment is
  /// destroyed without having been called.
  ///
  /// @returns kPosted; else `posted` will not be called, and is destroyed: kClosed (0), or kFull,
  /// if
  ///   Create was given a limit
  PostResult Post(Posted posted) {
    auto held = std::make_unique<Posted>(std::move(posted));
    const PostResult result = Call(held.get());
    if (result == kPosted) held.release();
    return result;
  }

  /// Sets whether this object keeps the event loop, and so the process, alive. After Create it
  /// does not. Call it on the JavaScript thread of `env`.
  void SetReferenced(napi_env env, bool referenced) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (function_ == nullptr) return;
    if (referenced) {
      napi_ref_threadsafe_function(env, function_);
    } else {
      napi_unref_threadsafe_function(env, function_);
    }
  }

  /// Closes the function before the end of the environment: later calls are refused, and
  /// `on_environment_end` will not be called. Call it on the JavaScript thread of the
  /// environment; closing again does nothing.
  void Close() { TakeAway(); }

 private:
  // Used on the JavaScript thread only. Freed by Finalize.
  struct Held {
    std::shared_ptr<ThreadsafeFunction> self;
    std::shared_ptr<void> context;
    EnvironmentEnd on_environment_end;
    bool hook_has_run;
  };

  explicit ThreadsafeFunction(napi_env env) : env_(env) {}

  // Returns false if the function was closed before.
  bool TakeAway() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (function_ == nullptr) return false;
    napi_release_threadsafe_function(std::exchange(function_, nullptr), napi_tsfn_abort);
    return true;
  }

  static void CloseHook(void* data) {
    auto& held = *static_cast<Held*>(data);
    held.hook_has_run = true;
    // Taken out first: a runtime may run Finalize, which frees `held`, inside of TakeAway.
    const std::shared_ptr<ThreadsafeFunction> self = held.self;
    const EnvironmentEnd on_environment_end = std::move(held.on_environment_end);
    if (self->TakeAway() && on_environment_end) on_environment_end();
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
    // Closed by Close(), not by the hook: remove the hook, or it would use the freed `held`.
    if (held->hook_has_run) return;
    napi_remove_env_cleanup_hook(held->self->env_, CloseHook, held.get());
  }

  const napi_env env_;
  std::mutex mutex_;                             // held during every use of function_
  napi_threadsafe_function function_ = nullptr;  // null once closed
};

}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_HPP_
