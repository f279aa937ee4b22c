#include "looper_thread.h"

#include <algorithm>

namespace allstop::core {

Deadline LooperSchedule::Next(Clock::time_point now) {
  if (!due_) {
    due_ = Deadline::After(0, now);
  } else if (missed_ticks_ == MissedTicks::kDelay) {
    due_ = Deadline::After(interval_ms_, now);
  } else if (!due_->IsNever()) {
    due_ = Deadline::After(interval_ms_, *due_->at());
    const bool is_missed = !due_->IsNever() && *due_->at() < now;
    if (is_missed && missed_ticks_ == MissedTicks::kSkip) due_ = NextBoundary(now);
  }
  return *due_;
}

Deadline LooperSchedule::NextBoundary(Clock::time_point now) const {
  const auto interval = *Deadline::After(interval_ms_, {}).at() - Clock::time_point();
  const auto late = (now - *due_->at()) % std::max(interval, Clock::duration(1));
  return late == late.zero() ? Deadline::After(0, now) : Deadline::After(interval_ms_, now - late);
}

bool LooperThread::Wait() {
  return !coordinator_->WaitForStop(generation_, schedule_.Next(Clock::now()));
}

}  // namespace allstop::core
