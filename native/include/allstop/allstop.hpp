// allstop.hpp - allstop.h for C++17, with owners instead of reference counts.
//
// Header-only; nothing is linked. Compiles with and without exceptions and RTTI.
//
//   allstop::Coordinator coord(handle);  // from allstop_from_napi
//   allstop::Thread hasher(coord, "hasher", [](const allstop::Coordinator& coord) {
//     while (!coord.ShouldStop()) HashNextChunk();  // may throw
//   });
//
// The promise is that of allstop.h: any thread, at any time, also after the
// JavaScript environment that gave the handle has ended. Only what says "blocks"
// blocks; never call that on a thread that runs a JavaScript event loop.
//
// In a Node addon, include allstop_node.h too: allstop_from_napi keeps the addon
// in memory, which its threads need when the last environment that loaded it ends.
#ifndef ALLSTOP_ALLSTOP_HPP_
#define ALLSTOP_ALLSTOP_HPP_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "allstop_coordinator.hpp"
#include "allstop_exceptions.hpp"

namespace allstop {

// What follows is another type in a file compiled without exceptions. If it were
// the same, the linker would keep one of two functions, and exceptions of the one
// file could end in the code of the other, which does not catch them.
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

// A registration that is given back, however the thread ends or fails to begin.
struct ThreadDone {
  Coordinator coord;
  void operator()(allstop_thread* thread) const {
    allstop_thread_done(coord.handle(), thread, nullptr);
  }
};
using ThreadToken = std::unique_ptr<allstop_thread, ThreadDone>;

// Null: the package that is installed does not know one of the flags.
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

// A registered thread from beginning to end.
template <typename Function>
void RunThread(ThreadToken token, std::unique_ptr<Function> function) {
  const Coordinator coord = token.get_deleter().coord;
  allstop_thread_enter(coord.handle(), token.get());
#if ALLSTOP_HPP_CATCHES
  try {
    Call(*function, coord);
    function.reset();
#if defined(__GLIBCXX__)
  } catch (const abi::__forced_unwind&) {
    function.reset();
    throw;  // pthread_exit and pthread_cancel: glibc aborts who keeps it
#endif
  } catch (...) {
    function.reset();
    ReportCaught(
        coord,
        [](void* ended, const allstop_error& error) {
          auto& own = *static_cast<ThreadToken*>(ended);
          const Coordinator joined = own.get_deleter().coord;
          allstop_thread_done(joined.handle(), own.release(), &error);
        },
        &token);
  }
#else
  Call(*function, coord);
  function.reset();
#endif
}

}  // namespace internal

// A thread that the coordinator knows: join() waits for it, and explain() names
// it. It calls `function(coord)`, or `function()` if that takes no coordinator.
//
//   - Registered before it starts, so a join that begins next waits for it.
//   - What its function throws, be it a std::exception or not, becomes the error
//     of the coordinator, with what() and the demangled type, and those that are
//     nested in it as its causes: all threads stop.
//   - The function and what it captured are destroyed before the thread counts as
//     ended. A thread_local is destroyed after that: await it with Join().
//
// The destructor blocks until the thread has ended, and does not ask it to: only
// RequestStop does. If one thread owns others, request the stop before the owners
// go out of scope, also when an exception is on its way: until it has left the
// function nobody knows of it. On a JavaScript thread, Detach() and leave the
// waiting to `await coord.join()`.
//
// If there is no memory or no thread to be had, the constructor throws
// std::bad_alloc or std::system_error (without exceptions, the process ends).
class Thread {
 public:
  Thread() noexcept = default;  // no thread
  template <typename Function>
  Thread(const Coordinator& coord, const std::string& name, Function&& function) {
    using Stored = std::decay_t<Function>;
    // On the heap, since a lambda that captured a const object cannot be moved
    // from: a second copy would outlive the thread's end.
    auto stored = std::make_unique<Stored>(std::forward<Function>(function));
    thread_ = std::thread(&internal::RunThread<Stored>, internal::Register(coord, name),
                          std::move(stored));
  }
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&& other) noexcept {  // blocks, as the destructor does
    Join();
    thread_ = std::move(other.thread_);
    return *this;
  }
  ~Thread() { Join(); }

  // Blocks until the thread has ended. Not on that thread itself.
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // Nobody will wait here; the coordinator still does.
  void Detach() {
    if (thread_.joinable()) thread_.detach();
  }

 private:
  std::thread thread_;
};

// Calls `function()` once, when a stop is requested, on the thread that requests
// it; at once, in the constructor, if it was requested already. The guarantees
// are those of std::stop_callback: once the destructor has returned, the function
// is not running and never will (so it blocks while another thread runs it).
//
// The function must not throw, must not block, and must not wait for JavaScript. To
// wake a condition variable it needs that one's mutex for a moment: then nobody may
// request a stop while he holds it.
// A stop that comes after a ClearStop is another one: it is not called again.
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

#include "allstop_bounded_queue.hpp"
#include "allstop_bridges.hpp"
#include "allstop_looper.hpp"
#include "allstop_queue_runner.hpp"
#include "allstop_runner.hpp"
#include "allstop_tensorflow.hpp"

#endif  // ALLSTOP_ALLSTOP_HPP_
