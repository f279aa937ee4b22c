// Like std::condition_variable, but a change of the wall clock does not change how long a timed
// wait lasts. The standard's class may wait on the wall clock even if it is given a monotonic
// time (libc++'s does where pthread_cond_clockwait is missing: before glibc 2.30, on musl, on
// Apple's systems): if the clock is set back by an hour, a wait of 50 ms may last an hour.
#ifndef ALLSTOP_CORE_CONDITION_VARIABLE_H_
#define ALLSTOP_CORE_CONDITION_VARIABLE_H_

#ifdef _WIN32
#include <condition_variable>
#else
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>
#include <mutex>
#include <system_error>

#include "cancellation.h"
#include "fault_point.h"
#endif

namespace allstop::core {

#ifdef _WIN32

// MSVC's class sleeps for a duration (SleepConditionVariableSRW), which no change of a clock
// moves. Its timed waits may end early, or count in another clock, so Deadline::Wait asks the
// clock again.
using ConditionVariable = std::condition_variable;

#else

// The part of std::condition_variable's interface that the library uses. Wake-ups may be
// spurious, and wait_until does not say why it ended: the caller must test its predicate and
// ask the clock. pthread_cancel ends no wait.
class ConditionVariable {
 public:
  // Throws std::system_error, as the standard's class may, if the system must allocate memory
  // for the condition variable and has none. (glibc and musl do not allocate.)
  ConditionVariable() {
#ifdef __APPLE__
    Check(pthread_cond_init(&condition_, nullptr));
#else
    pthread_condattr_t attributes;
    Check(pthread_condattr_init(&attributes));
    int error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (error == 0) error = pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
    Check(error);
#endif
  }
  ~ConditionVariable() { pthread_cond_destroy(&condition_); }
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;

  void notify_one() noexcept {
    ALLSTOP_FAULT_POINT(kNotify);
    pthread_cond_signal(&condition_);
  }
  void notify_all() noexcept {
    ALLSTOP_FAULT_POINT(kNotify);
    pthread_cond_broadcast(&condition_);
  }

  void wait(std::unique_lock<std::mutex>& lock) {
    const CancellationDisabled disabled;
    ALLSTOP_FAULT_POINT(kSleep);
    pthread_cond_wait(&condition_, lock.mutex()->native_handle());
    ALLSTOP_FAULT_POINT(kWoken);
  }
  template <typename Predicate>
  void wait(std::unique_lock<std::mutex>& lock, Predicate done) {
    while (!done()) wait(lock);
  }

  // `at` may be any time point. If it has passed, the wait ends at once.
  void wait_until(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point at) {
    const CancellationDisabled disabled;
    ALLSTOP_FAULT_POINT(kSleep);
#ifdef __APPLE__
    // Apple's condition variables have no choice of a clock, but can wait for a duration. A
    // duration of 0 would wait without a limit.
    const auto now = std::chrono::steady_clock::now();
    if (at <= now) return;
    const timespec left = Timespec(at - now);
    pthread_cond_timedwait_relative_np(&condition_, lock.mutex()->native_handle(), &left);
#else
    // steady_clock is CLOCK_MONOTONIC, in libstdc++ and in libc++.
    const timespec until = Timespec(at.time_since_epoch());
    pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &until);
#endif
    ALLSTOP_FAULT_POINT(kWoken);
  }

 private:
  static void Check(int error) {
    if (error != 0) throw std::system_error(error, std::generic_category(), "ConditionVariable");
  }

  // Clamps `span` to what a timespec can hold: not negative, and at most the largest time_t,
  // which has 32 bits on some systems.
  static timespec Timespec(std::chrono::nanoseconds span) {
    using std::chrono::seconds;
    span = std::max(span, std::chrono::nanoseconds::zero());
    const auto whole = std::chrono::duration_cast<seconds>(span);
    timespec time = {};
    time.tv_sec = static_cast<std::time_t>(
        std::min<std::int64_t>(whole.count(), std::numeric_limits<std::time_t>::max()));
    time.tv_nsec = static_cast<long>((span - whole).count());
    return time;
  }

  pthread_cond_t condition_;
};

#endif

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_CONDITION_VARIABLE_H_
