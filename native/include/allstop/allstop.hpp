/// @file allstop.hpp
/// allstop.h for C++17: objects that own their references instead of reference counts.
///
/// Header-only: your code links nothing of allstop. Compiles with and without exceptions and
/// RTTI.
///
/// @code
///   const allstop::Coordinator coord(handle);  // from allstop_from_napi
///   allstop::Start(coord, "hasher", [](const allstop::Coordinator& coord) {
///     while (!coord.ShouldStop()) HashNextChunk();  // may throw
///   });
/// @endcode
///
/// Here are Coordinator, Thread, Start, StopCallback and Registration, which most addons need. What
/// else there is has a header of its own: allstop_bounded_queue.hpp, allstop_looper.hpp,
/// allstop_queue_runner.hpp, allstop_interruptible.hpp, allstop_wait_until_stop.hpp,
/// allstop_bridges.hpp (std::stop_source, a file descriptor), allstop_variable.hpp,
/// allstop_tensorflow.hpp.
///
/// The promises are those of allstop.h. Every function may be called on any thread, also after
/// the JavaScript environment that gave the handle has ended, unless its comment restricts the
/// threads. A function blocks only if its comment says "blocks" or "waits". Never call such a
/// function on a thread that runs a JavaScript event loop.
///
/// In a Node addon, include allstop_node.h as well: its allstop_from_napi keeps the addon in
/// memory. Otherwise Node unmaps the addon when the last environment that loaded the addon
/// ends, and the addon's threads crash.
#ifndef ALLSTOP_ALLSTOP_HPP_
#define ALLSTOP_ALLSTOP_HPP_

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "allstop_coordinator.hpp"
#include "allstop_exceptions.hpp"

namespace allstop {

// The types below have other names in a file that is compiled without exceptions
// (not_catching::Thread, catching::Thread). With one name for both, the linker would keep one
// of two functions of that name, and an exception from a file with exceptions could reach the
// function of a file without, which does not catch it.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define ALLSTOP_HPP_CATCHES 1
inline namespace catching {
#else
#define ALLSTOP_HPP_CATCHES 0
inline namespace not_catching {
#endif

namespace internal {

[[noreturn]] inline void OutOfMemory() {
#if ALLSTOP_HPP_CATCHES
  throw std::bad_alloc();
#else
  std::abort();
#endif
}

// Ends a thread's registration. As the deleter of a ThreadToken it runs however the thread
// ends, and also if the thread cannot be created.
struct ThreadDone {
  Coordinator coord;
  void operator()(allstop_thread* thread) const {
    allstop_thread_done(coord.handle(), thread, nullptr);
  }
};
using ThreadToken = std::unique_ptr<allstop_thread, ThreadDone>;

// Returns null if the installed package does not know one of the flags, and for an empty
// Coordinator.
inline ThreadToken Register(const Coordinator& coord, const std::string& name,
                            std::uint32_t flags = 0) {
  allstop_thread* thread = nullptr;
  const allstop_status status =
      allstop_thread_register(coord.handle(), view::Of(name), flags, &thread);
  if (status != ALLSTOP_OK && status != ALLSTOP_INVALID_ARGUMENT) OutOfMemory();
  return ThreadToken(thread, ThreadDone{coord});
}

template <typename Function>
void Call(Function& function, const Coordinator& coord) {
  if constexpr (std::is_invocable_v<Function&, const Coordinator&>) {
    function(coord);
  } else {
    function();
  }
}

// What the function of a thread of these headers returns: an error of its own that RequestStop has
// refused. The end of the thread reports it, as an exception that leaves the function.
struct Unrecorded {
  std::optional<Error> error;
};
template <typename Function>
Unrecorded CallOnThread(Function& function, const Coordinator& coord) {
  if constexpr (std::is_invocable_r_v<Unrecorded, Function&, const Coordinator&>) {
    return function(coord);
  } else {
    Call(function, coord);
    return {};
  }
}

// Ends the registration with an error. `token` is null afterwards.
inline void DoneWith(ThreadToken& token, const allstop_error& error) {
  allstop_thread_done(token.get_deleter().coord.handle(), token.release(), &error);
}

// The main function of a registered thread. `token` ends the registration on return.
template <typename Function>
ALLSTOP_HPP_CATCHES_UNWINDING void RunThread(ThreadToken token,
                                             std::unique_ptr<Function> function) {
  const Coordinator coord = token.get_deleter().coord;
  allstop_thread_enter(coord.handle(), token.get());
#if ALLSTOP_HPP_CATCHES
  try {
    const Unrecorded unrecorded = CallOnThread(*function, coord);
    function.reset();
    if (unrecorded.error) DoneWith(token, *view::ErrorView(*unrecorded.error).get());
#if defined(__GLIBCXX__)
  } catch (const abi::__forced_unwind&) {
    function.reset();
    throw;  // pthread_exit or pthread_cancel: glibc aborts the process if this is swallowed
#endif
  } catch (...) {
    if (!coord) std::terminate();  // the error would reach nobody
    struct Context {
      ThreadToken& token;
      std::unique_ptr<Function>& function;
    } context{token, function};
    ReportCaught(
        coord,
        [](void* opaque, const allstop_error& error) {
          auto& own = *static_cast<Context*>(opaque);
          own.function.reset();  // not before: what() may read a capture
          DoneWith(own.token, error);
        },
        &context);
  }
#else
  const Unrecorded unrecorded = CallOnThread(*function, coord);
  function.reset();
  if (unrecorded.error) DoneWith(token, *view::ErrorView(*unrecorded.error).get());
#endif
}

}  // namespace internal

/// A registered thread: a join of its coordinator waits for the thread, and explain() names
/// it. The thread calls `function(coord)`, or `function()` if `function` takes no coordinator.
///
///   - The thread is registered before it starts, so a join that begins after the constructor
///     waits for the thread.
///   - Any exception that `function` throws requests a stop: the exception becomes the stop's
///     error, with what() and the demangled type, and the exceptions that are nested in it
///     become the causes. A thrown object need not be a std::exception; a thrown text
///     (`const char*`, `std::string`) is the message. Of an exception of another language
///     (Objective-C, D) the coordinator learns only that there was one.
///   - `function` and its captures are destroyed before the thread counts as ended.
///     thread_local objects are destroyed later: if that matters, wait with Join().
///
/// The destructor blocks until the thread has ended, but does not request a stop; only
/// RequestStop does. If a thread's function owns further Threads, it must request the stop
/// before their destructors run, also when an exception leaves the function: the coordinator
/// learns of the exception only after that. On a JavaScript thread, call Detach() and wait
/// with `await coord.join()` instead.
///
/// With an empty Coordinator nobody joins the thread, and an exception that `function` throws
/// ends the process, as with std::thread.
///
/// @throws std::bad_alloc or std::system_error, from the constructor, if no memory or no
///   thread is available. Without exceptions, the process ends.
class Thread {
 public:
  /// Holds no thread.
  Thread() noexcept = default;
  /// Starts a thread. `name` is shown to people.
  template <typename Function>
  Thread(const Coordinator& coord, const std::string& name, Function&& function) {
    using Stored = std::decay_t<Function>;
    // On the heap, so that std::thread moves a pointer. A lambda with a const capture cannot be
    // moved, only copied, and std::thread would destroy its copy after the thread has ended.
    auto stored = std::make_unique<Stored>(std::forward<Function>(function));
    thread_ = std::thread(&internal::RunThread<Stored>, internal::Register(coord, name),
                          std::move(stored));
  }
  Thread(Thread&&) noexcept = default;
  /// Blocks until the thread that this object held has ended.
  Thread& operator=(Thread&& other) noexcept {
    Join();
    thread_ = std::move(other.thread_);
    return *this;
  }
  /// Blocks until the thread has ended.
  ~Thread() { Join(); }

  /// Blocks until the thread has ended. Any thread except that thread itself.
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  /// Lets go of the thread: Join() and the destructor no longer wait for it. The thread stays
  /// registered, so a join of the coordinator still waits. Does not block.
  void Detach() {
    if (thread_.joinable()) thread_.detach();
  }

 private:
  std::thread thread_;
};

/// Starts a registered thread, as a Thread does, and lets go of it: only a join of the coordinator
/// waits for the thread, as `await coord.join()` in JavaScript. Does not block, so any thread may
/// call it, also one that runs a JavaScript event loop.
template <typename Function>
void Start(const Coordinator& coord, const std::string& name, Function&& function) {
  Thread(coord, name, std::forward<Function>(function)).Detach();
}

/// Calls `function()` once: on the thread that requests a stop, or, if the coordinator is
/// stopped already, in the constructor. The guarantees are those of C++20's
/// std::stop_callback.
///
/// `function` must not throw, must not block, and must not wait for JavaScript. A function
/// that wakes a condition variable has to lock that variable's mutex for a moment; then no
/// thread may request a stop while it holds that mutex, or it deadlocks.
///
/// After a stop the callback is used up: ClearStop does not arm it for the next stop.
///
/// The destructor blocks while another thread runs `function`. When the destructor has
/// returned, `function` is not running and will not run.
///
/// @throws std::bad_alloc, from the constructor, if there is no memory. Without exceptions,
///   the process ends.
template <typename Function>
class StopCallback {
 public:
  StopCallback(const Coordinator& coord, Function function)
      : coord_(coord), function_(std::move(function)) {
    const auto call = [](void* self) noexcept { static_cast<StopCallback*>(self)->function_(); };
    if (allstop_on_stop(coord_.handle(), call, this, &callback_) != ALLSTOP_OK) {
      internal::OutOfMemory();
    }
  }
  StopCallback(const StopCallback&) = delete;
  StopCallback& operator=(const StopCallback&) = delete;
  ~StopCallback() { allstop_callback_release(coord_.handle(), callback_); }

 private:
  const Coordinator coord_;
  Function function_;
  allstop_callback* callback_ = nullptr;
};
template <typename Function>
StopCallback(const Coordinator&, Function) -> StopCallback<Function>;

}  // inline namespace catching or not_catching
}  // namespace allstop

#undef ALLSTOP_HPP_CATCHES

#include "allstop_registration.hpp"

#endif  // ALLSTOP_ALLSTOP_HPP_
