/// @file allstop_coordinator.hpp
/// allstop::Coordinator, Error and Options. Part of allstop.hpp, which includes it.
#ifndef ALLSTOP_ALLSTOP_COORDINATOR_HPP_
#define ALLSTOP_ALLSTOP_COORDINATOR_HPP_

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "allstop.h"
#include "allstop_cpp17.hpp"

namespace allstop {

/// An error that you report or read. An empty string means that the error has no such field.
/// `name` selects the class of the error in JavaScript, NativeError by default; see
/// allstop_error.
struct Error {
  std::string name = {};
  std::string message = {};
  std::string code = {};
  std::string stack = {};
  std::string native_type = {};
  std::shared_ptr<const Error> cause = {};
  /// Set in an error that was read from a record: if you report that error again, it is
  /// recognized as the same error. Leave it empty in a new error.
  std::string id = {};
};

/// Options of a new coordinator. A field that you do not set takes its default; for a child,
/// the default is the parent's value.
struct Options {
  /// Shown to people; default "native".
  std::string name = {};
  /// The clean-stop types: errors that count as a normal end, each a class name, or an error's
  /// `name` or `code`. Default: OutOfRangeError. An empty vector: no error does.
  std::optional<std::vector<std::string>> clean_stop_types = {};
};

namespace view {

inline allstop_string Of(const std::string& text) {
  return text.empty() ? allstop_string{nullptr, 0} : allstop_string{text.data(), text.size()};
}
inline std::string ToString(allstop_string text) {
  return text.data ? std::string(text.data, text.size) : std::string();
}

/// An error without its causes. Valid as long as the Error.
inline allstop_error WithoutCauses(const Error& error) noexcept {
  return {sizeof(allstop_error),
          0,
          Of(error.name),
          Of(error.message),
          Of(error.code),
          Of(error.stack),
          Of(error.native_type),
          Of(error.id),
          nullptr,
          {}};
}

/// An error and its causes as a chain of allstop_error. Valid as long as the Error.
class ErrorView {
 public:
  explicit ErrorView(const Error& error) noexcept {
    std::size_t size = 0;
    for (const Error* each = &error; each && size < chain_.size(); each = each->cause.get()) {
      chain_[size++] = WithoutCauses(*each);
      if (size > 1) chain_[size - 2].cause = &chain_[size - 1];
    }
  }
  const allstop_error* get() const noexcept { return chain_.data(); }

 private:
  std::array<allstop_error, 1 + ALLSTOP_MAX_CAUSES> chain_ = {};
};

/// Calls `use(const allstop_options*)`; the pointers in it are valid until `use` returns.
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

inline constexpr std::uint32_t kNeverStopped = 0;

// The table of an empty Coordinator, which has no state: nothing ever stops, and a call
// that would have to keep something (a callback, a thread, a child) returns an error status. So
// each class of these headers may use a handle without asking whether it is empty. The functions of
// queues and of variables are null: no queue is created with this table, and no variable found.
constexpr allstop_table EmptyTable() {
  allstop_table table = {};
  table.size = sizeof(table);
  table.major = ALLSTOP_ABI_MAJOR;
  table.minor = ALLSTOP_ABI_MINOR;
  table.retain = [](allstop_state*) {};
  table.release = [](allstop_state*) {};
  table.stop_word = [](allstop_state*) { return &kNeverStopped; };
  table.request_stop = [](allstop_state*, const allstop_error*) {
    return ALLSTOP_FAILED_PRECONDITION;
  };
  table.wait_for_stop = [](allstop_state*, double timeout_ms) {
    if (!(timeout_ms >= 0)) return ALLSTOP_INVALID_ARGUMENT;
    constexpr double kDay = 24 * 60 * 60 * 1000;  // a longer sleep may overflow a clock
    while (timeout_ms > 0) {
      const double slice = (std::min)(timeout_ms, kDay);
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(slice));
      timeout_ms -= slice;
    }
    return ALLSTOP_DEADLINE_EXCEEDED;
  };
  table.clear_stop = [](allstop_state*) { return ALLSTOP_OK; };
  table.stop_record = [](allstop_state*, allstop_record** record) {
    *record = nullptr;
    return ALLSTOP_OK;
  };
  table.record_info = [](const allstop_record*, allstop_record_info*) {
    return ALLSTOP_INVALID_ARGUMENT;
  };
  table.record_release = [](allstop_record*) {};
  table.thread_register = [](allstop_state*, allstop_string, std::uint32_t,
                             allstop_thread** thread) {
    *thread = nullptr;
    return ALLSTOP_OK;
  };
  table.thread_enter = [](allstop_thread*) { return ALLSTOP_OK; };
  table.thread_done = [](allstop_thread*, const allstop_error*) {};
  table.join = [](allstop_state*, double, std::uint32_t) { return ALLSTOP_OK; };
  table.on_stop = [](allstop_state*, allstop_stop_fn, void*, allstop_callback** callback) {
    *callback = nullptr;
    return ALLSTOP_OK;
  };
  table.callback_release = [](allstop_callback*) {};
  table.create = [](const allstop_options*, allstop_state**) {
    return ALLSTOP_FAILED_PRECONDITION;
  };
  table.child = [](allstop_state*, const allstop_options*, allstop_state**) {
    return ALLSTOP_FAILED_PRECONDITION;
  };
  table.report_error = [](allstop_state*, const allstop_error*) {
    return ALLSTOP_FAILED_PRECONDITION;
  };
  table.first_error = table.stop_record;
  table.new_id = [](char*, std::size_t) -> std::size_t { return 0; };
  table.looper_create = [](allstop_state*, double, std::uint32_t, allstop_looper**) {
    return ALLSTOP_FAILED_PRECONDITION;
  };
  table.looper_wait = [](allstop_looper*) { return ALLSTOP_CANCELLED; };
  table.looper_release = [](allstop_looper*) {};
  table.queue_create = [](const allstop_queue_options*, allstop_queue_state**) {
    return ALLSTOP_FAILED_PRECONDITION;
  };
  table.request_stop2 = [](allstop_state*, const allstop_error*, int* made) {
    *made = 0;
    return ALLSTOP_FAILED_PRECONDITION;
  };
  table.suppressed_errors = [](allstop_state*, allstop_record**, std::size_t, std::size_t* count) {
    *count = 0;
    return ALLSTOP_OK;
  };
  table.record_cause = [](const allstop_record*, allstop_record** cause) {
    *cause = nullptr;
    return ALLSTOP_OK;
  };
  table.stop_after = [](allstop_state*, double, allstop_deadline** deadline) {
    *deadline = nullptr;
    return ALLSTOP_OK;
  };
  table.deadline_release = [](allstop_deadline*) {};
  table.interruptible_enter = [](allstop_state*, allstop_interruptible** guard) {
    *guard = nullptr;
    return ALLSTOP_OK;
  };
  table.interruptible_leave = [](allstop_interruptible*) {};
  table.interruptible_is_effective = [](const allstop_interruptible*) { return 0; };
  table.on_js_thread = [] { return 0; };
  return table;
}
inline constexpr allstop_table kEmptyTable = EmptyTable();
inline constexpr allstop_coordinator kEmptyHandle = {&kEmptyTable, nullptr, &kNeverStopped};

}  // namespace view

/// Milliseconds, converted from any std::chrono duration. Infinity means "no limit".
using Milliseconds = std::chrono::duration<double, std::milli>;

namespace view {

// A time for the functions of allstop.h, which refuse NaN and less than 0.
inline double NotNegative(Milliseconds time) noexcept {
  return time.count() < 0 ? 0.0 : time.count();
}

}  // namespace view

class Deadline;

/// One reference to the state that a set of threads shares in order to stop together. A copy
/// is another reference to the same state; copying is cheap.
///
/// Many threads may call const methods on one object at the same time: those methods change
/// the shared state, never the object.
class Coordinator {
 public:
  /// An empty object, as a moved-from one is: it never stops. Every method may be called, and
  /// the other classes here take it. ShouldStop is false, WaitForStop waits for its whole
  /// timeout, Join returns at once, and there is no error. RequestStop, ReportError and
  /// ClearStop change nothing; the first two return ALLSTOP_FAILED_PRECONDITION. A child of it
  /// is empty, too. An exception that leaves the function of a Thread of it ends the process,
  /// as with std::thread. What cannot work without a coordinator says so: BoundedQueue,
  /// LooperThread, QueueRunner.
  Coordinator() noexcept = default;
  /// Takes over the reference that `handle` owns. A `handle` of all zeros gives an empty object.
  explicit Coordinator(const allstop_coordinator& handle) noexcept
      : handle_(handle.state != nullptr ? handle : view::kEmptyHandle) {}
  Coordinator(const Coordinator& other) noexcept : handle_(other.handle_) {
    if (other) allstop_retain(&handle_);
  }
  Coordinator(Coordinator&& other) noexcept
      : handle_(std::exchange(other.handle_, view::kEmptyHandle)) {}
  Coordinator& operator=(Coordinator other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Coordinator() {
    if (*this) allstop_release(&handle_);
  }

  /// False if this object is empty.
  explicit operator bool() const noexcept { return handle_.state != nullptr; }
  /// The handle, for the functions of allstop.h. Borrowed: valid as long as this object. The
  /// handle of an empty object never stops, either.
  const allstop_coordinator* handle() const noexcept { return &handle_; }

  /// True while the coordinator is stopped. One load; see allstop_should_stop for what is
  /// visible after it.
  bool ShouldStop() const noexcept { return allstop_should_stop(&handle_) != 0; }

  /// Requests a stop of all threads, without an error or with one. Runs the stop callbacks on
  /// the calling thread before it returns. See allstop_request_stop.
  ///
  /// @retval ALLSTOP_OK
  /// @retval ALLSTOP_FAILED_PRECONDITION a join has completed, so `error` would reach nobody.
  ///   Nothing was changed: handle the error yourself.
  /// @retval ALLSTOP_RESOURCE_EXHAUSTED no memory for the record; nothing was changed, but
  ///   some of the children may be stopped
  allstop_status RequestStop() const noexcept { return allstop_request_stop(&handle_, nullptr); }
  [[nodiscard]] allstop_status RequestStop(const Error& error) const noexcept {
    return allstop_request_stop(&handle_, view::ErrorView(error).get());
  }
  /// As above, and sets `*made` (a bool) to whether this call made the stop: false if the
  /// coordinator was stopped before, by any thread. `made` may be null. See
  /// allstop_request_stop_made.
  ///
  /// @retval ALLSTOP_UNAVAILABLE also if the installed package is older than 1.3 of allstop.h;
  ///   nothing was changed
  // A template, so that RequestStop({}) still is a request with an error without fields.
  template <typename Flag, typename = std::enable_if_t<std::is_same_v<Flag, bool>>>
  allstop_status RequestStop(Flag* made) const noexcept {
    return RequestStopMade(nullptr, made);
  }
  [[nodiscard]] allstop_status RequestStop(const Error& error, bool* made) const noexcept {
    return RequestStopMade(view::ErrorView(error).get(), made);
  }
  /// Reports an error without requesting a stop: the error is kept for a join that ends with a
  /// stop without an error. See allstop_report_error.
  allstop_status ReportError(const Error& error) const noexcept {
    return allstop_report_error(&handle_, view::ErrorView(error).get());
  }

  /// The error that a join would report now if the coordinator were stopped: the error of the
  /// stop, else the error that ReportError kept. Waits as allstop_stop_record does. With a package
  /// older than 1.1, only the error of the stop. It has its causes, up to ALLSTOP_MAX_CAUSES of
  /// them, also if JavaScript reported it; none with a package older than 1.3.
  ///
  /// @returns nothing if there is no such error, or no memory for it
  std::optional<Error> FirstError() const {
    allstop_record* record = nullptr;
    if (allstop_first_error(&handle_, &record) == ALLSTOP_UNAVAILABLE) {
      allstop_stop_record(&handle_, &record);  // such a package has no ReportError either
    }
    if (!record) return std::nullopt;
    const Record held(record, Release{&handle_});
    if (Info(record).kind != ALLSTOP_STOP_ERROR) return std::nullopt;
    return ErrorOf(record);
  }

  /// The suppressed errors, the earliest first: those that came after the error of the stop, and
  /// reported errors that are not the one that FirstError gives. The first 16 are kept. Otherwise
  /// as FirstError; none with a package older than 1.3.
  std::vector<Error> SuppressedErrors() const {
    std::array<allstop_record*, ALLSTOP_MAX_SUPPRESSED> records = {};
    std::size_t count = 0;
    allstop_suppressed_errors(&handle_, records.data(), records.size(), &count);
    std::array<Record, ALLSTOP_MAX_SUPPRESSED> held;  // releases them also if memory runs out
    for (std::size_t i = 0; i < count; ++i) held[i] = Record(records[i], Release{&handle_});
    std::vector<Error> errors;
    for (std::size_t i = 0; i < count; ++i) errors.push_back(ErrorOf(records[i]));
    return errors;
  }

  /// Blocks until a stop is requested, for at most `timeout`; 0 or less only checks.
  ///
  /// @returns true if the coordinator was stopped at the call, or was stopped during the wait, even
  ///   if another thread has cleared that stop before this function returns; false if the time has
  ///   passed
  bool WaitForStop(Milliseconds timeout = kForever) const noexcept {
    return allstop_wait_for_stop(&handle_, view::NotNegative(timeout)) == ALLSTOP_OK;
  }

  /// Sets a deadline: requests a stop with a DeadlineExceededError after `timeout` (0 or less: at
  /// once, on a native thread; infinity: never), unless the returned object was destroyed before.
  /// See allstop_stop_after, also for forked processes, and allstop_deadline.hpp for the class.
  ///
  /// @returns an object that is false if no deadline was set: this coordinator is empty, memory or
  ///   threads have run out, `timeout` is NaN, or the installed package is older than 1.4 of
  ///   allstop.h
  [[nodiscard]] Deadline StopAfter(Milliseconds timeout) const noexcept;

  /// Creates a child: a coordinator that stops when this one stops. A stop of the child does
  /// not stop this one. See allstop_child.
  ///
  /// @returns an empty object if there is no memory, if this coordinator is nested 256 levels
  ///   deep, or if the installed package is older than 1.1 of allstop.h
  Coordinator Child(const Options& options = {}) const {
    allstop_coordinator child = {};
    view::WithOptions(
        options, [&](const allstop_options* given) { allstop_child(&handle_, given, &child); });
    return Coordinator(child);
  }

#if defined(ALLSTOP_LINKED)
  /// Creates an independent coordinator, in a program that links the library
  /// (find_package(allstop)).
  ///
  /// @returns an empty object if there is no memory
  static Coordinator Create(const Options& options = {}) {
    allstop_coordinator created = {};
    view::WithOptions(options, [&](const allstop_options* given) {
      allstop_create(allstop_library_table(), given, &created);
    });
    return Coordinator(created);
  }
#endif

  /// Clears the stop; see allstop_clear_stop.
  ///
  /// @retval ALLSTOP_OK
  /// @retval ALLSTOP_FAILED_PRECONDITION this is the child of a stopped parent, or the coordinator
  ///   of a cluster or of a forked process, which cannot be cleared
  allstop_status ClearStop() const noexcept { return allstop_clear_stop(&handle_); }

  /// Blocks until all registered threads have ended or a stop is requested, and from the stop
  /// on for at most `grace_period`. See allstop_join for the statuses.
  [[nodiscard]] allstop_status Join(Milliseconds grace_period = std::chrono::minutes(2),
                                    bool ignore_live_threads = false) const noexcept {
    return allstop_join(&handle_, view::NotNegative(grace_period),
                        ignore_live_threads ? ALLSTOP_JOIN_IGNORE_LIVE_THREADS : 0);
  }

 private:
  static constexpr Milliseconds kForever{std::numeric_limits<double>::infinity()};

  struct Release {
    const allstop_coordinator* handle = nullptr;
    void operator()(allstop_record* record) const { allstop_record_release(handle, record); }
  };
  using Record = std::unique_ptr<allstop_record, Release>;

  allstop_record_info Info(const allstop_record* record) const noexcept {
    allstop_record_info info = {};
    info.size = sizeof(info);
    allstop_record_read(&handle_, record, &info);
    return info;
  }
  // The error of a record, with its causes.
  Error ErrorOf(const allstop_record* record) const {
    const allstop_record_info info = Info(record);
    allstop_record* cause = nullptr;
    allstop_record_cause(&handle_, record, &cause);
    const Record held(cause, Release{&handle_});
    return Error{view::ToString(info.name),
                 view::ToString(info.message),
                 view::ToString(info.code),
                 view::ToString(info.stack),
                 view::ToString(info.native_type),
                 cause ? std::make_shared<const Error>(ErrorOf(cause)) : nullptr,
                 view::ToString(info.id)};
  }

  allstop_status RequestStopMade(const allstop_error* error, bool* made) const noexcept {
    int is_made = 0;
    const allstop_status status = allstop_request_stop_made(&handle_, error, &is_made);
    if (made != nullptr) *made = is_made != 0;
    return status;
  }

  allstop_coordinator handle_ = view::kEmptyHandle;
};

}  // namespace allstop

#include "allstop_deadline.hpp"

#endif  // ALLSTOP_ALLSTOP_COORDINATOR_HPP_
