#include "deadline.h"

#include <algorithm>
#include <limits>

namespace allstop::core {

double Deadline::RemainingMs() const {
  if (IsNever()) return std::numeric_limits<double>::infinity();
  const std::chrono::duration<double, std::milli> left = *at_ - Clock::now();
  return std::max(0.0, left.count());
}

}  // namespace allstop::core
