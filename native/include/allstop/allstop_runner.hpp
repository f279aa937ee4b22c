/// @file allstop_runner.hpp
/// allstop::Runner, which tensorflow::Coordinator joins, and allstop::Status, the result of a
/// join.
#ifndef ALLSTOP_ALLSTOP_RUNNER_HPP_
#define ALLSTOP_ALLSTOP_RUNNER_HPP_

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "allstop_coordinator.hpp"

// Xlib.h defines a macro of this name.
#pragma push_macro("Status")
#undef Status

namespace allstop {

/// The result of a call: a code, and a message for people. A default-constructed Status is OK.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(allstop_status code, std::string message)
      : code_(code), message_(code == ALLSTOP_OK ? std::string() : std::move(message)) {}

  bool ok() const noexcept { return code_ == ALLSTOP_OK; }
  allstop_status code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  /// Does nothing: marks in the code that the result is ignored on purpose.
  void IgnoreError() const noexcept {}

  friend bool operator==(const Status& one, const Status& other) {
    return one.code_ == other.code_ && one.message_ == other.message_;
  }
  friend bool operator!=(const Status& one, const Status& other) { return !(one == other); }

 private:
  allstop_status code_ = ALLSTOP_OK;
  std::string message_;
};

/// Something that runs and can be joined; TensorFlow's RunnerInterface. You implement it, and
/// register it with a tensorflow::Coordinator, which calls both methods on any thread.
class Runner {
 public:
  virtual ~Runner() = default;
  /// Blocks until the runner has ended.
  ///
  /// @returns OK, or the error that ended the runner
  virtual Status Join() = 0;
  /// Must not block.
  virtual bool IsRunning() const = 0;
};

namespace view {

/// The statuses that have an error class in JavaScript: the class's name and its `code`.
struct NamedStatus {
  allstop_status code;
  const char* name;
  const char* js_code;
};
inline constexpr NamedStatus kStatuses[] = {
    {ALLSTOP_CANCELLED, "CancelledError", "ERR_ALLSTOP_CANCELLED"},
    {ALLSTOP_INVALID_ARGUMENT, "InvalidArgumentError", "ERR_ALLSTOP_INVALID_ARGUMENT"},
    {ALLSTOP_DEADLINE_EXCEEDED, "DeadlineExceededError", "ERR_ALLSTOP_DEADLINE_EXCEEDED"},
    {ALLSTOP_FAILED_PRECONDITION, "FailedPreconditionError", "ERR_ALLSTOP_FAILED_PRECONDITION"},
    {ALLSTOP_OUT_OF_RANGE, "OutOfRangeError", "ERR_ALLSTOP_OUT_OF_RANGE"},
    {ALLSTOP_UNAVAILABLE, "UnavailableError", "ERR_ALLSTOP_UNAVAILABLE"},
};

/// The `code` of an error whose status has no class in JavaScript begins so: "STATUS_13".
inline constexpr const char* kStatusPrefix = "STATUS_";

/// The error that stands for `status` in a record. `status` must not be OK. CodeOf converts
/// back, unless the status is negative.
inline Error ErrorOf(const Status& status) {
  Error error;
  error.message = status.message();
  for (const auto& [code, name, js_code] : kStatuses) {
    if (code == status.code()) error.name = name;  // the class of that name sets the `code`
  }
  if (error.name.empty()) error.code = kStatusPrefix + std::to_string(status.code());
  return error;
}

/// The status for the `code` of an error: that of the class with this code, 13 for
/// "STATUS_13", and ALLSTOP_STOPPED_BY_ERROR for any other code.
inline allstop_status CodeOf(const std::string& js_code) {
  for (const auto& status : kStatuses) {
    if (js_code == status.js_code) return status.code;
  }
  const std::string prefix = kStatusPrefix;
  char* end = nullptr;
  const char* const digits = js_code.c_str() + (std::min)(prefix.size(), js_code.size());
  const long long code = std::strtoll(digits, &end, 10);
  const bool is_status = js_code.compare(0, prefix.size(), prefix) == 0 && end != digits &&
                         *end == '\0' && code > 0 && code == static_cast<allstop_status>(code);
  return is_status ? static_cast<allstop_status>(code) : ALLSTOP_STOPPED_BY_ERROR;
}

/// The status for the `code` of an error, or else for its `name`: that of the class with this name,
/// and ALLSTOP_STOPPED_BY_ERROR for any other name. An Error that is made from a name alone has no
/// code.
inline allstop_status CodeOf(const std::string& js_code, const std::string& name) {
  const allstop_status by_code = CodeOf(js_code);
  if (by_code != ALLSTOP_STOPPED_BY_ERROR) return by_code;
  for (const auto& status : kStatuses) {
    if (name == status.name) return status.code;
  }
  return ALLSTOP_STOPPED_BY_ERROR;
}

}  // namespace view

}  // namespace allstop

#pragma pop_macro("Status")

#endif  // ALLSTOP_ALLSTOP_RUNNER_HPP_
