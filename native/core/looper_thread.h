// A loop that runs at fixed times until a stop: when it is due, and the wait for that.
#ifndef ALLSTOP_CORE_LOOPER_THREAD_H_
#define ALLSTOP_CORE_LOOPER_THREAD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "coordinator.h"
#include "deadline.h"

namespace allstop::core {

// What becomes of the runs that were due while another one took too long. The order
// is that of ALLSTOP_MISSED_TICKS_* in allstop.h.
enum class MissedTicks : std::uint8_t {
  kBurst,  // made up for, back to back (TensorFlow's)
  kSkip,   // dropped: the next one is at the next multiple of the interval
  kDelay,  // none is missed: the interval counts from the end of a run
};

// When runs are due. They are counted on from the first one, which is at once, and not
// from when somebody woke up, so nothing drifts. Asks no clock.
class LooperSchedule {
 public:
  // `interval_ms` is not negative and not NaN. 0: back to back. Infinity: one run.
  LooperSchedule(double interval_ms, MissedTicks missed_ticks)
      : interval_ms_(interval_ms), missed_ticks_(missed_ticks) {}

  // Called before each run. `now`: when the one before has ended, or it begins.
  Deadline Next(Clock::time_point now);

 private:
  // The first one that is not before `now`; due_ is, and not never.
  Deadline NextBoundary(Clock::time_point now) const;

  const double interval_ms_;
  const MissedTicks missed_ticks_;
  std::optional<Deadline> due_;  // of the run before; none before the first
};

// For one thread, which calls nothing but Wait in a loop.
class LooperThread {
 public:
  LooperThread(std::shared_ptr<Coordinator> coordinator, LooperSchedule schedule)
      : coordinator_(std::move(coordinator)),
        generation_(coordinator_->generation()),
        schedule_(schedule) {}

  // Blocks until the next run is due. False: a stop is requested, or was since this
  // object was made, even if it is cleared again.
  bool Wait();

 private:
  const std::shared_ptr<Coordinator> coordinator_;
  const std::uint64_t generation_;
  LooperSchedule schedule_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_LOOPER_THREAD_H_
