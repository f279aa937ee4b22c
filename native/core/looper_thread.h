// The schedule of a loop that runs at fixed times until a stop, and the wait for its next run.
#ifndef ALLSTOP_CORE_LOOPER_THREAD_H_
#define ALLSTOP_CORE_LOOPER_THREAD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "coordinator.h"
#include "deadline.h"

namespace allstop::core {

// What a looper does about runs that became due while an earlier run took too long. The order
// is that of ALLSTOP_MISSED_TICKS_* in allstop.h.
enum class MissedTicks : std::uint8_t {
  kBurst,  // makes up for the missed runs, back to back (TensorFlow's way)
  kSkip,   // drops the missed runs: the next run is at the next multiple of the interval
  kDelay,  // no run is missed: the interval counts from the end of each run
};

// Computes when runs are due. The first run is due at once. Later runs are due at multiples of
// the interval after the first (except with kDelay), whenever the thread woke up, so the
// schedule does not drift. Does not read a clock.
class LooperSchedule {
 public:
  // `interval_ms` is not negative and not NaN. 0: runs follow each other at once. Infinity: one
  // run.
  LooperSchedule(double interval_ms, MissedTicks missed_ticks)
      : interval_ms_(interval_ms), missed_ticks_(missed_ticks) {}

  // Called before each run. `now` is the end of the run before, or the time of the first call.
  Deadline Next(Clock::time_point now);

 private:
  // The first multiple of the interval that is not before `now`. due_ must be before `now`, and
  // not never.
  Deadline NextBoundary(Clock::time_point now) const;

  const double interval_ms_;
  const MissedTicks missed_ticks_;
  std::optional<Deadline> due_;  // when the latest run was due; empty before the first
};

// Used by one thread only, which calls Wait before each run.
class LooperThread {
 public:
  LooperThread(std::shared_ptr<Coordinator> coordinator, LooperSchedule schedule)
      : coordinator_(std::move(coordinator)),
        generation_(coordinator_->generation()),
        schedule_(schedule) {}

  // Blocks until the next run is due. False: a stop was requested since this object was made,
  // even if the stop was cleared again.
  bool Wait();

 private:
  const std::shared_ptr<Coordinator> coordinator_;
  const std::uint64_t generation_;
  LooperSchedule schedule_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_LOOPER_THREAD_H_
