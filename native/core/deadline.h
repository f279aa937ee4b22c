// A point in monotonic time at which a wait gives up. A deadline is absolute, so that a wait
// that is retried does not last longer.
#ifndef ALLSTOP_CORE_DEADLINE_H_
#define ALLSTOP_CORE_DEADLINE_H_

#include <chrono>
#include <mutex>
#include <optional>

#include "condition_variable.h"

namespace allstop::core {

using Clock = std::chrono::steady_clock;

class Deadline {
 public:
  static Deadline Never() { return Deadline(std::nullopt); }
  static Deadline Passed() { return Deadline(Clock::time_point::min()); }

  // `timeout_ms` milliseconds after `start`, or after now; not negative, not NaN. Infinity, and
  // anything from a century on, means never: a 64-bit clock in nanoseconds holds about three
  // centuries, counted from the last boot or (the wall clock, on which some C++ libraries wait
  // underneath) from 1970.
  static Deadline After(double timeout_ms) {
    return timeout_ms < kCenturyMs ? After(timeout_ms, Clock::now()) : Never();
  }
  static Deadline After(double timeout_ms, Clock::time_point start) {
    if (!(timeout_ms < kCenturyMs)) return Never();
    const auto span = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double, std::milli>(timeout_ms));
    if (span > Clock::time_point::max() - start) return Never();
    return Deadline(start + span);
  }

  bool IsNever() const { return !at_.has_value(); }
  bool HasPassed() const { return at_.has_value() && Clock::now() >= *at_; }
  std::optional<Clock::time_point> at() const { return at_; }

  // Milliseconds left: 0 if passed, infinity if never.
  double RemainingMs() const;

  // Waits on `cv` until `done()` or the deadline; returns `done()`. It asks the clock after every
  // wake-up, since a wake-up may be spurious, or (on Windows) timed by another clock.
  template <typename Predicate>
  bool Wait(ConditionVariable& cv, std::unique_lock<std::mutex>& lock, Predicate done) const {
    while (!done()) {
      if (IsNever()) {
        cv.wait(lock);
      } else {
        if (HasPassed()) return false;
        cv.wait_until(lock, *at_);
      }
    }
    return true;
  }

 private:
  static constexpr double kCenturyMs = 3.15e12;

  explicit Deadline(std::optional<Clock::time_point> at) : at_(at) {}

  std::optional<Clock::time_point> at_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_DEADLINE_H_
