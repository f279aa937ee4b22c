// allstop_coordinator.hpp - the Coordinator of allstop.hpp, which includes it.
#ifndef ALLSTOP_ALLSTOP_COORDINATOR_HPP_
#define ALLSTOP_ALLSTOP_COORDINATOR_HPP_

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  std::array<allstop_error, 1 + ALLSTOP_MAX_CAUSES> chain_ = {};
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

}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_COORDINATOR_HPP_
