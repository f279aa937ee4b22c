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

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "allstop.h"

namespace allstop {

// An error to report; empty means "none". `name` chooses the class that it has in
// JavaScript, NativeError by default.
struct Error {
  std::string name = {};
  std::string message = {};
  std::string code = {};
  std::string stack = {};
  std::string native_type = {};
  std::shared_ptr<const Error> cause = {};
  // Of the record that it was read from: reported again, it is known as that one.
  std::string id = {};
};

// What a new coordinator is like; what is left out is the default, or the parent's.
struct Options {
  std::string name = {};
  // Errors that count as a normal end, by class name, `name` or `code`. Default:
  // OutOfRangeError; empty: none.
  std::optional<std::vector<std::string>> clean_stop_types = {};
};

namespace view {

inline allstop_string Of(const std::string& text) {
  return text.empty() ? allstop_string{nullptr, 0} : allstop_string{text.data(), text.size()};
}
inline std::string ToString(allstop_string text) {
  return text.data ? std::string(text.data, text.size) : std::string();
}

// An error and its causes as allstop.h has them; good as long as the error.
class ErrorView {
 public:
  explicit ErrorView(const Error& error) noexcept {
    std::size_t size = 0;
    for (const Error* each = &error; each && size < chain_.size(); each = each->cause.get()) {
      chain_[size++] = {sizeof(allstop_error),
                        0,
                        Of(each->name),
                        Of(each->message),
                        Of(each->code),
                        Of(each->stack),
                        Of(each->native_type),
                        Of(each->id),
                        nullptr};
      if (size > 1) chain_[size - 2].cause = &chain_[size - 1];
    }
  }
  const allstop_error* get() const noexcept { return chain_.data(); }

 private:
  std::array<allstop_error, 33> chain_ = {};  // one, and as many causes as are kept
};

// Calls `use(const allstop_options*)`, whose pointers are good until it returns.
template <typename Use>
void WithOptions(const Options& options, Use use) {
  static constexpr allstop_string kNothing = {nullptr, 0};
  std::vector<allstop_string> types;
  allstop_options given = {};
  given.size = sizeof(given);
  given.name = Of(options.name);
  if (options.clean_stop_types) {
    for (const std::string& type : *options.clean_stop_types) types.push_back(Of(type));
    given.clean_stop_types = types.empty() ? &kNothing : types.data();
    given.clean_stop_type_count = types.size();
  }
  use(&given);
}

}  // namespace view

// Takes any std::chrono duration. Infinity is no limit.
using Milliseconds = std::chrono::duration<double, std::milli>;

// One reference to the state that a set of threads shares in order to stop
// together. A copy is one more reference to the same state, and cheap.
//
// Const methods may be called on one object by many threads at once. They change
// the shared state, never the object.
class Coordinator {
 public:
  // Holds nothing, as does one that was moved from: assign, destroy, or ask it
  // whether it does; nothing else.
  Coordinator() noexcept = default;
  // Takes over the reference that `handle` owns.
  explicit Coordinator(const allstop_coordinator& handle) noexcept : handle_(handle) {}
  Coordinator(const Coordinator& other) noexcept : handle_(other.handle_) {
    if (other) allstop_retain(&handle_);
  }
  Coordinator(Coordinator&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Coordinator& operator=(Coordinator other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Coordinator() {
    if (*this) allstop_release(&handle_);
  }

  explicit operator bool() const noexcept { return handle_.state != nullptr; }
  // For the functions of allstop.h. Valid as long as this object.
  const allstop_coordinator* handle() const noexcept { return &handle_; }

  // One load. True orders: what the requester wrote before it asked is visible.
  bool ShouldStop() const noexcept { return allstop_should_stop(&handle_) != 0; }

  // ALLSTOP_FAILED_PRECONDITION: a join has completed, so nobody would ever see
  // the error; handle it yourself. ALLSTOP_RESOURCE_EXHAUSTED: nothing changed.
  // Stop callbacks run before it returns, on this thread.
  allstop_status RequestStop() const noexcept { return allstop_request_stop(&handle_, nullptr); }
  allstop_status RequestStop(const Error& error) const noexcept {
    return allstop_request_stop(&handle_, view::ErrorView(error).get());
  }
  // Keeps the error for a join that ends stopped without one, and stops nobody; see
  // allstop_report_error.
  allstop_status ReportError(const Error& error) const noexcept {
    return allstop_report_error(&handle_, view::ErrorView(error).get());
  }

  // What a join of a stopped coordinator would come to now: the error of the stop,
  // else the one that was reported; its causes are not read. None if there is no
  // memory, either. Waits as allstop_stop_record does.
  std::optional<Error> FirstError() const {
    allstop_record* record = nullptr;
    if (allstop_first_error(&handle_, &record) == ALLSTOP_UNAVAILABLE) {
      allstop_stop_record(&handle_, &record);  // of a package that reports none
    }
    if (!record) return std::nullopt;
    struct Release {
      const allstop_coordinator* handle;
      void operator()(allstop_record* held) const { allstop_record_release(handle, held); }
    };
    const std::unique_ptr<allstop_record, Release> held(record, Release{&handle_});
    allstop_record_info info = {};
    info.size = sizeof(info);
    allstop_record_read(&handle_, record, &info);
    std::optional<Error> error;
    if (info.kind == ALLSTOP_STOP_ERROR) {
      error = Error{view::ToString(info.name),        view::ToString(info.message),
                    view::ToString(info.code),        view::ToString(info.stack),
                    view::ToString(info.native_type), nullptr,
                    view::ToString(info.id)};
    }
    return error;
  }

  // Blocks. True: a stop was requested, even if it is cleared again already.
  // False: it took longer than `timeout`. 0 and less just ask.
  bool WaitForStop(Milliseconds timeout = kForever) const noexcept {
    return allstop_wait_for_stop(&handle_, (std::max)(0.0, timeout.count())) == ALLSTOP_OK;
  }

  // A coordinator that stops when this one does; its own stop stays its own. Holds
  // nothing if there is no memory, they are nested 256 levels deep, or the package
  // that is installed is older than 1.1 of allstop.h.
  Coordinator Child(const Options& options = {}) const {
    allstop_coordinator child = {};
    view::WithOptions(
        options, [&](const allstop_options* given) { allstop_child(&handle_, given, &child); });
    return Coordinator(child);
  }

#if defined(ALLSTOP_LINKED)
  // One of its own, in a program that links the library: find_package(allstop).
  static Coordinator Create(const Options& options = {}) {
    allstop_coordinator created = {};
    view::WithOptions(options, [&](const allstop_options* given) {
      allstop_create(allstop_library_table(), given, &created);
    });
    return Coordinator(created);
  }
#endif

  // ALLSTOP_FAILED_PRECONDITION: the child of a parent that is stopped.
  allstop_status ClearStop() const noexcept { return allstop_clear_stop(&handle_); }

  // Blocks until all registered threads have ended or a stop is requested, then
  // for up to `grace_period`. See allstop_join for what it returns.
  allstop_status Join(Milliseconds grace_period = std::chrono::minutes(2),
                      bool ignore_live_threads = false) const noexcept {
    return allstop_join(&handle_, (std::max)(0.0, grace_period.count()),
                        ignore_live_threads ? ALLSTOP_JOIN_IGNORE_LIVE_THREADS : 0);
  }

 private:
  static constexpr Milliseconds kForever{std::numeric_limits<double>::infinity()};

  allstop_coordinator handle_ = {};
};

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

#if ALLSTOP_HPP_CATCHES
// A recorded error that this module has not thrown itself: JavaScript's, or that of
// another addon.
class StopError : public std::runtime_error {
 public:
  explicit StopError(Error error)
      : std::runtime_error(error.name + ": " + error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};
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

inline ThreadToken Register(const Coordinator& coord, const std::string& name) {
  allstop_thread* thread = nullptr;
  if (allstop_thread_register(coord.handle(), view::Of(name), 0, &thread) != ALLSTOP_OK) {
    OutOfMemory();
  }
  return ThreadToken(thread, ThreadDone{coord});
}

#if ALLSTOP_HPP_CATCHES
// The exceptions that this module has reported, by the id of their record: the latest
// 64. Here and not in the record, since no other module can throw them; hidden, or the
// linker would make one of the tables of all modules.
#if defined(__GNUC__)
class __attribute__((visibility("hidden"))) KeptExceptions {
#else
class KeptExceptions {
#endif
 public:
  // Allocated once and never destroyed, as threads outlive static destructors.
  static KeptExceptions& Get() {
    static KeptExceptions* const kept = new KeptExceptions;
    return *kept;
  }
  void Keep(std::string_view id, std::exception_ptr exception) {
    constexpr std::size_t kMost = 64;
    std::exception_ptr oldest;  // its destructor may do anything, so not under the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    exceptions_.emplace_back(id, std::move(exception));
    if (exceptions_.size() <= kMost) return;
    oldest = std::move(exceptions_.front().second);
    exceptions_.pop_front();
  }
  std::exception_ptr Find(std::string_view id) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [known, exception] : exceptions_) {
      if (known == id) return exception;
    }
    return nullptr;
  }
  // The id of one that is raised again, or "".
  std::string IdOf(const std::exception_ptr& exception) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, known] : exceptions_) {
      if (known == exception) return id;
    }
    return {};
  }

 private:
  mutable std::mutex mutex_;
  std::deque<std::pair<std::string, std::exception_ptr>> exceptions_;
};

using Report = void (*)(void* context, const allstop_error& error);

// In a catch block: calls `report` with `outermost`, which becomes the exception, and
// those that are nested in it as its causes. Allocates nothing that it could not do
// without: the error may be that there is no memory.
inline void DescribeCaught(allstop_error& outermost, allstop_error* outer, int max_causes,
                           Report report, void* context) {
  allstop_error inner = {};
  allstop_error& error = outer ? inner : outermost;
  error.size = sizeof(error);
  if (outer) outer->cause = &error;
#if __has_include(<cxxabi.h>)
  // Not typeid: this works without RTTI, and for what is no std::exception.
  const std::type_info* const type = abi::__cxa_current_exception_type();
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr) : nullptr, &std::free);
  if (type) error.native_type = allstop_str(demangled ? demangled.get() : type->name());
#endif
  try {
    throw;
  } catch (const StopError& caught) {
    const allstop_string id = error.id;
    error = *view::ErrorView(caught.error()).get();
    error.cause = nullptr;
    if (!outer) error.id = id;
  } catch (const std::exception& caught) {
    error.message = allstop_str(caught.what());
  } catch (...) {
    error.message = allstop_str("not a std::exception");
  }
  std::exception_ptr cause;
  try {
    throw;
  } catch (const std::nested_exception& nested) {
    cause = nested.nested_ptr();
  } catch (...) {
  }
  if (!cause || max_causes == 0) {
    report(context, outermost);
    return;
  }
  try {
    std::rethrow_exception(std::move(cause));
  } catch (...) {
    DescribeCaught(outermost, &error, max_causes - 1, report, context);
  }
}

// In a catch block. The exception is found again by RaiseRequestedException; one that
// was raised by that keeps its identity.
inline void ReportCaught(const Coordinator& coord, Report report, void* context) {
  allstop_error error = {};
  char fresh[64];
  std::string known;
  try {
    known = KeptExceptions::Get().IdOf(std::current_exception());
    try {
      if (known.empty()) throw;
    } catch (const StopError& stop) {
      known = stop.error().id;
    } catch (...) {
    }
    error.id = view::Of(known);
    if (known.empty()) {
      error.id = {fresh, allstop_new_id(coord.handle(), fresh, sizeof(fresh))};
      if (error.id.size > 0) {
        KeptExceptions::Get().Keep({fresh, error.id.size}, std::current_exception());
      }
    }
  } catch (const std::bad_alloc&) {  // then it is raised as a StopError
  }
  DescribeCaught(error, nullptr, 32, report, context);
}
#endif

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
    thread_ = std::thread(&Run<Stored>, internal::Register(coord, name), std::move(stored));
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
  template <typename Function>
  static void Run(internal::ThreadToken token, std::unique_ptr<Function> function) {
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
      internal::ReportCaught(
          coord,
          [](void* ended, const allstop_error& error) {
            auto& own = *static_cast<internal::ThreadToken*>(ended);
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

  template <typename Function>
  static void Call(Function& function, const Coordinator& coord) {
    if constexpr (std::is_invocable_v<Function&, const Coordinator&>) {
      function(coord);
    } else {
      function();
    }
  }

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

#if ALLSTOP_HPP_CATCHES
// Calls `function()`. What it throws requests a stop, as it would in a Thread, and is
// swallowed; false then. It is thrown on if a join has completed, as nobody would ever
// see it. On any thread.
template <typename Function>
bool StopOnException(const Coordinator& coord, Function&& function) {
  try {
    std::forward<Function>(function)();
    return true;
#if defined(__GLIBCXX__)
  } catch (const abi::__forced_unwind&) {
    throw;
#endif
  } catch (...) {
    struct Context {
      const Coordinator& coord;
      allstop_status status;
    } context{coord, ALLSTOP_OK};
    internal::ReportCaught(
        coord,
        [](void* opaque, const allstop_error& error) {
          auto& own = *static_cast<Context*>(opaque);
          own.status = allstop_request_stop(own.coord.handle(), &error);
        },
        &context);
    if (context.status == ALLSTOP_FAILED_PRECONDITION) throw;
    return false;
  }
}

// Throws the error of the stop, or the one that was reported, if there is one: the
// exception itself if it was thrown in this module (and is among its latest 64), else
// a StopError. Does not clear it. Any thread, in a Thread as well: the error that it
// throws comes back as the stop's own.
inline void RaiseRequestedException(const Coordinator& coord) {
  std::optional<Error> error = coord.FirstError();
  if (!error) return;
  const std::exception_ptr own = internal::KeptExceptions::Get().Find(error->id);
  if (own) std::rethrow_exception(own);
  throw StopError(std::move(*error));
}
#endif

}  // inline namespace catching or not_catching
}  // namespace allstop

#undef ALLSTOP_HPP_CATCHES

#include "allstop_bridges.hpp"
#include "allstop_tensorflow.hpp"

#endif  // ALLSTOP_ALLSTOP_HPP_
