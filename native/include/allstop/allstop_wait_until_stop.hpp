/// @file allstop_wait_until_stop.hpp
/// allstop::WaitUntilStop: a wait at a condition variable of yours that a stop ends.
#ifndef ALLSTOP_ALLSTOP_WAIT_UNTIL_STOP_HPP_
#define ALLSTOP_ALLSTOP_WAIT_UNTIL_STOP_HPP_

#include <atomic>
#include <chrono>
#include <condition_variable>

#include "allstop.hpp"

namespace allstop {
// allstop.hpp says why this function has another name in a file without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

/// Waits at `condition` until `predicate()` is true or a stop is requested: C++20's
/// std::condition_variable_any::wait with a stop token, for C++17 and std::condition_variable.
///
/// @code
///   std::unique_lock<std::mutex> lock(mutex);
///   if (!allstop::WaitUntilStop(coord, lock, condition, [&] { return !jobs.empty(); })) return;
/// @endcode
///
/// Blocks. Any thread that holds `lock`, which is a std::unique_lock<std::mutex>. `predicate` runs
/// under the lock, which is held again when this function returns or throws. A stop before the
/// call ends the wait at once. A thread may request the stop while it holds the mutex.
///
/// @returns what `predicate()` returned last: false means that a stop has ended the wait
/// @throws what `predicate` throws; std::bad_alloc if there is no memory. Without exceptions, the
///   process ends.
// The stop callback notifies without the mutex, since the thread that requests the stop may hold
// it. So the notification is lost if it comes between ShouldStop() and the wait: the wait lasts for
// slices, after which the next round sees the stop.
template <class Lock, class Predicate>
bool WaitUntilStop(const Coordinator& coord, Lock& lock, std::condition_variable& condition,
                   Predicate predicate) {
  constexpr std::chrono::milliseconds kSlice(50);
  if (predicate()) return true;
  std::atomic<bool> was_stopped{false};  // stays true if the stop is cleared at once
  const StopCallback wake(coord, [&] {
    was_stopped = true;
    condition.notify_all();
  });
  while (!was_stopped && !coord.ShouldStop()) {
    if (predicate()) return true;
    condition.wait_for(lock, kSlice);
  }
  return predicate();
}

}  // inline namespace catching or not_catching
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_WAIT_UNTIL_STOP_HPP_
