#include "timeline.h"

#include <algorithm>
#include <utility>

#include "identity.h"

namespace allstop::core {

Timeline::Timeline(Clock::time_point began) : began_(began), began_at_ms_(WallClockMs()) {}

void Timeline::Add(const TimelineEvent& event, const std::string& name) noexcept {
  try {
    if (events_.size() < kCapacity) {
      TimelineEvent added = event;
      added.name = name;
      events_.push_back(std::move(added));
      return;
    }
    TimelineEvent& slot = events_[oldest_];
    std::string memory = std::move(slot.name);
    memory.assign(name);  // may throw: the slot keeps its event, whose name is lost
    slot = event;
    slot.name = std::move(memory);
    oldest_ = (oldest_ + 1) % kCapacity;
  } catch (...) {  // no memory
  }
  ++dropped_;
}

TimelineView Timeline::View(std::uint64_t since) const {
  const std::uint64_t first = std::min(std::max(since, dropped_), count());
  TimelineView view{began_, began_at_ms_, dropped_ > since ? dropped_ - since : 0, {}};
  view.events.reserve(static_cast<std::size_t>(count() - first));
  for (auto i = static_cast<std::size_t>(first - dropped_); i < events_.size(); ++i) {
    view.events.push_back(events_[(oldest_ + i) % events_.size()]);
  }
  return view;
}

}  // namespace allstop::core
