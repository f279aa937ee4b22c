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
/// How it works: allstop_threadsafe_function.h, the same in C, on which this stands. What else
/// belongs to the environment, such as a napi_ref or an entry in a list of listeners, goes in
/// `on_environment_end`.
#ifndef ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_HPP_
#define ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_HPP_

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "allstop_cpp17.hpp"
#include "allstop_threadsafe_function.h"

// An addon on node-addon-api that says so: posted functions may throw a Napi::Error, wherever it
// includes napi.h.
#if defined(NODE_ADDON_API_CPP_EXCEPTIONS_ALL) || defined(NODE_ADDON_API_CPP_EXCEPTIONS) || \
    defined(NAPI_CPP_EXCEPTIONS)
#if __has_include(<napi.h>)
#include <napi.h>
#endif
#endif

namespace allstop {
// allstop.hpp says why this type has another name in a file without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
namespace internal {

// Call in a catch block. Makes the caught Napi::Error the pending exception, and returns true; or
// returns false. Each module has its own, as allstop_exceptions.hpp says.
#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
inline bool (*throw_napi_error)(napi_env env) = nullptr;

#if defined(SRC_NAPI_H_) && (defined(NODE_ADDON_API_CPP_EXCEPTIONS) || defined(NAPI_CPP_EXCEPTIONS))
#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
inline const bool throws_napi_errors = [] {
  throw_napi_error = [](napi_env env) {
    try {
      throw;
    } catch (const Napi::Error& error) {
      try {
        napi_throw(env, error.Value());
      } catch (...) {  // the environment ends
      }
      return true;
    } catch (...) {
      return false;
    }
  };
  return true;
}();
#endif

// Call in a catch block. Makes the caught exception the pending exception of JavaScript.
inline void ThrowCaught(napi_env env) {
  try {
    if (throw_napi_error == nullptr || !throw_napi_error(env)) throw;
  } catch (const std::exception& caught) {
    napi_throw_error(env, nullptr, view::TextOf(caught));
  } catch (...) {
    napi_throw_error(env, nullptr, "a posted function has thrown what is no std::exception");
  }
}

}  // namespace internal
#endif

/// A thread-safe function. Each thread that calls it holds a shared_ptr; any thread may
/// release the last one, before or after the end of the environment.
class ThreadsafeFunction {
 public:
  /// Runs on the JavaScript thread, once for each Call, with the `function` and the `context`
  /// given to Create and the `data` given to Call. It must leave no JavaScript exception pending
  /// (napi_get_and_clear_last_exception, then napi_fatal_exception, make an uncaught exception of
  /// it), and throw nothing. A null `env` means that the function was closed or the environment has
  /// ended: then free `data` and touch nothing else. In particular, `context` may be freed already.
  using CallJs = void (*)(napi_env env, napi_value function, void* context, void* data);
  /// Runs on the JavaScript thread, with the `function` given to Create. An exception that it
  /// throws or leaves pending becomes an uncaught exception of that thread: a Napi::Error is the
  /// error of JavaScript that it is (if napi.h was included before this file, or the addon defines
  /// NODE_ADDON_API_CPP_EXCEPTIONS or NODE_ADDON_API_CPP_EXCEPTIONS_ALL).
  using Posted = std::function<void(napi_env env, napi_value function)>;
  /// Runs on the JavaScript thread when the environment ends, once, with no lock held: after
  /// that Call and Post return false, and no posted function runs any more. It may delete
  /// references (napi_delete_reference) and take native locks, but must not call JavaScript,
  /// must not throw, and must not wait for the event loop. It is not called after Close.
  using EnvironmentEnd = std::function<void()>;
  /// What became of a call: only kClosed is false.
  enum PostResult {
    kClosed = ALLSTOP_CLOSED,  ///< closed, or the environment has ended: nothing was queued
    kPosted = ALLSTOP_POSTED,  ///< queued
    kFull = ALLSTOP_FULL,      ///< `limit` calls are queued already: nothing was queued
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
    const std::shared_ptr<ThreadsafeFunction> made(new ThreadsafeFunction);
    void* const bare_context = context.get();
    auto held =
        std::make_unique<Held>(Held{made, std::move(context), std::move(on_environment_end)});
    made->function_ = allstop_threadsafe_function_make(
        env, function, name, call_js, bare_context,
        [](void* owner) {
          const EnvironmentEnd end = std::move(static_cast<Held*>(owner)->on_environment_end);
          if (end) end();
        },
        [](void* owner) { delete static_cast<Held*>(owner); }, held.get(), limit);
    if (made->function_ == nullptr) return nullptr;
    held.release();
    return made;
  }
  ThreadsafeFunction(const ThreadsafeFunction&) = delete;
  ThreadsafeFunction& operator=(const ThreadsafeFunction&) = delete;
  ~ThreadsafeFunction() { allstop_threadsafe_function_release(function_); }

  /// Has `call_js(env, function, context, data)` called on the JavaScript thread. Any thread;
  /// does not block.
  ///
  /// @returns kPosted; else `call_js` will not be called, and `data` is still the caller's:
  ///   kClosed (0), or kFull, if Create was given a limit
  PostResult Call(void* data) {
    return static_cast<PostResult>(allstop_threadsafe_function_call(function_, data));
  }

  /// Has `posted(env, function)` called on the JavaScript thread. Only for an object that was
  /// created without a `call_js`. Any thread; does not block.
  ///
  /// A function that was posted shortly before the close or the end of the environment is
  /// destroyed without having been called.
  ///
  /// @returns kPosted; else `posted` will not be called, and is destroyed: kClosed (0), or kFull,
  ///   if Create was given a limit
  PostResult Post(Posted posted) {
    auto held = std::make_unique<Posted>(std::move(posted));
    const PostResult result = Call(held.get());
    if (result == kPosted) held.release();
    return result;
  }

  /// Sets whether this object keeps the event loop, and so the process, alive. After Create it
  /// does not. Call it on the JavaScript thread of `env`.
  void SetReferenced(napi_env env, bool referenced) {
    allstop_threadsafe_function_set_referenced(function_, env, referenced);
  }

  /// Closes the function before the end of the environment: later calls are refused, and
  /// `on_environment_end` will not be called. Call it on the JavaScript thread of the
  /// environment; closing again does nothing.
  void Close() { allstop_threadsafe_function_close(function_); }

 private:
  // Used on the JavaScript thread only.
  struct Held {
    std::shared_ptr<ThreadsafeFunction> self;
    std::shared_ptr<void> context;
    EnvironmentEnd on_environment_end;
  };

  ThreadsafeFunction() = default;

  static void RunPosted(napi_env env, napi_value function, void* /*context*/, void* data) {
    const std::unique_ptr<Posted> posted(static_cast<Posted*>(data));
    if (env == nullptr || !RunsJavaScript(env)) return;
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
    try {
      (*posted)(env, function);
    } catch (...) {
      EndPending(env);  // else the caught exception could not become the pending one
      internal::ThrowCaught(env);
    }
#else
    (*posted)(env, function);
#endif
    EndPending(env);
  }

  // A worker that ends still has the calls made that wait, though no JavaScript runs there any
  // more.
  static bool RunsJavaScript(napi_env env) {
    napi_value global = nullptr;
    bool is_same = false;  // it is: all that counts is whether Node-API refuses to tell
    return napi_get_global(env, &global) == napi_ok &&
           napi_strict_equals(env, global, global, &is_same) == napi_ok;
  }

  // Makes an uncaught exception of the pending one.
  static void EndPending(napi_env env) {
    bool pending = false;
    napi_value exception;
    if (napi_is_exception_pending(env, &pending) == napi_ok && pending &&
        napi_get_and_clear_last_exception(env, &exception) == napi_ok) {
      napi_fatal_exception(env, exception);
    }
  }

  allstop_threadsafe_function* function_ = nullptr;  // null only until Create has made it
};

}  // inline namespace catching or not_catching
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_HPP_
