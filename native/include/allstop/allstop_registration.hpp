/// @file allstop_registration.hpp
/// allstop::Registration: work on a thread that is not yours, as that of a thread pool, counts as
/// a registered thread. allstop::RegisteredCalls: so do calls that wait for another thread. Part of
/// allstop.hpp, which includes it.
#ifndef ALLSTOP_ALLSTOP_REGISTRATION_HPP_
#define ALLSTOP_ALLSTOP_REGISTRATION_HPP_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "allstop.hpp"

namespace allstop {
// allstop.hpp says why this type has another name in a file without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

/// Registers a piece of work that another party's thread does: a Napi::AsyncWorker, a
/// napi_async_work, a uv_work_t, a task of a thread pool. From the constructor to the destructor
/// a join that begins waits for the work, also while the work waits for a thread, and explain()
/// names it. A join that waits already does not: make it before the thread, or the call, that ends.
///
/// @code
///   class Hash : public Napi::AsyncWorker {
///     void Execute() override {        // on a thread of the pool
///       registration_.Enter();
///       while (!coord_.ShouldStop() && HashNextChunk()) {
///       }
///     }
///     const allstop::Coordinator coord_;
///     allstop::Registration registration_{coord_, "hash"};  // ends with the worker
///   };
/// @endcode
///
/// An object may be used on one thread at a time, and on another thread each time: constructed
/// and destroyed on the JavaScript thread, say, and entered on one of the pool. No method blocks.
///
/// With an empty Coordinator, a Registration does nothing.
///
/// @throws std::bad_alloc, from the constructor, if there is no memory. Without exceptions, the
///   process ends.
class Registration {
 public:
  /// Holds no registration.
  Registration() noexcept = default;
  /// Registers the work. `name` is shown to people.
  Registration(const Coordinator& coord, const std::string& name)
      : token_(internal::Register(coord, name)) {}
  Registration(Registration&&) noexcept = default;
  /// Ends the registration that this object held.
  Registration& operator=(Registration&&) noexcept = default;
  /// Ends the registration: the work has ended, or will never begin.
  ~Registration() = default;

  /// False if this object holds no registration: none was made, or it was moved, or Fail has
  /// ended it.
  explicit operator bool() const noexcept { return token_ != nullptr; }

  /// Tells the coordinator that the calling thread does the work: a stop that this thread requests
  /// names the work. Call it first on that thread.
  void Enter() noexcept {
    if (token_) allstop_thread_enter(token_.get_deleter().coord.handle(), token_.get());
  }

  /// Ends the registration with an error, which requests a stop. After a completed join, which no
  /// longer reports errors, the error is kept as suppressed. Nothing happens if this object holds
  /// no registration.
  void Fail(const Error& error) noexcept {
    if (!token_) return;
    allstop_thread_done(token_.get_deleter().coord.handle(), token_.release(),
                        view::ErrorView(error).get());
  }

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
  /// As Fail(error), with the exception that is being handled: call it in a catch block. A
  /// Napi::Error becomes the error of JavaScript that it is, if this is its JavaScript thread.
  void Fail() {
    if (!token_) return;
    const Coordinator coord = token_.get_deleter().coord;
    internal::ReportCaught(
        coord,
        [](void* ended, const allstop_error& error) {
          internal::DoneWith(*static_cast<internal::ThreadToken*>(ended), error);
        },
        &token_);
  }
#endif

 private:
  internal::ThreadToken token_;
};

/// One registration for calls of which none may be lost, as those that a native thread posts to
/// JavaScript. A join that begins waits until the last of them has run, and the last copy of this
/// object is gone. If one is destroyed without having returned, the registration ends with an error
/// whose code is ERR_ALLSTOP_UNAVAILABLE: it has thrown; or it was never called, because its
/// ThreadsafeFunction was closed, or its worker has ended.
///
/// @code
///   allstop::RegisteredCalls calls(coord, "batches");  // before the thread that posts
///   allstop::Thread(coord, "reader", [tick, calls] {
///     while (auto batch = Read()) {
///       tick->Post(calls.Of([batch](napi_env env, napi_value give) { Give(env, give, *batch); }));
///     }
///   }).Detach();
/// @endcode
///
/// A call that a worker's end cuts in the middle of its JavaScript counts as lost only if it
/// throws: a call on bare Node-API has to look at what Node-API returns.
///
/// A copy is of the same registration. Each thread may have its own, and the calls may be made, run
/// and destroyed on any thread. To post a call again that was refused (kFull), keep it.
///
/// @throws std::bad_alloc, from the constructor and from Of. Without exceptions, the process ends.
class RegisteredCalls {
 public:
  /// Registers the calls. `name` is shown to people.
  RegisteredCalls(const Coordinator& coord, const std::string& name)
      : state_(std::make_shared<State>(internal::Register(coord, name))) {}

  /// A call of `function`, for a std::function that returns nothing: all its copies are one call.
  template <typename Function>
  auto Of(Function function) const {
    auto call = std::make_shared<Call<Function>>(state_, std::move(function));
    return [call](auto&&... arguments) {
      call->function(std::forward<decltype(arguments)>(arguments)...);
      call->has_run = true;
    };
  }

 private:
  // Its destructor runs once, on the thread that lets go of the last copy or call.
  struct State {
    explicit State(internal::ThreadToken registered) noexcept : token(std::move(registered)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      if (!is_lost || !token) return;
      allstop_error error = {};
      error.size = sizeof(error);
      error.name = allstop_str("UnavailableError");
      error.message =
          allstop_str("a call has not run to its end: it has thrown, or its thread has ended");
      error.code = allstop_str("ERR_ALLSTOP_UNAVAILABLE");
      internal::DoneWith(token, error);
    }
    internal::ThreadToken token;
    std::atomic<bool> is_lost{false};
  };

  template <typename Function>
  struct Call {
    Call(std::shared_ptr<State> registered, Function called)
        : state(std::move(registered)), function(std::move(called)) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
      if (!has_run) state->is_lost = true;
    }
    const std::shared_ptr<State> state;  // destroyed after `function`
    Function function;
    bool has_run = false;
  };

  std::shared_ptr<State> state_;
};

}  // inline namespace catching or not_catching
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_REGISTRATION_HPP_
