// What happened at one coordinator, in order: a bounded ring of events.
//
// Invariants, cited by number:
//
//  1. events_ holds at most kCapacity events. While it holds fewer, oldest_ is 0; a further event
//     overwrites the oldest one and is counted in dropped_. This matters because a coordinator
//     may live as long as a server.
//  2. Add never throws. An event for which there is no memory is counted in dropped_. This matters
//     because the end of a thread must not fail.
#ifndef ALLSTOP_CORE_TIMELINE_H_
#define ALLSTOP_CORE_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "deadline.h"
#include "thread_registry.h"

namespace allstop::core {

// The order is that of TIMELINE_TYPES in lib/native/binding.ts.
enum class TimelineType : std::uint8_t {
  kThreadStarted,
  kStopRequested,
  kFirstSeen,
  kEnded,
  kStraggler,
  kStopCleared,
  kQueueFull,
  kHookBegan,
};

struct TimelineEvent {
  Clock::time_point at = {};
  TimelineType type = TimelineType::kThreadStarted;
  ThreadKind kind = ThreadKind::kCustom;  // of a registered thread
  bool unobserved = false;                // of kEnded: ThreadInfo::unobserved
  std::uint64_t thread = 0;               // ThreadInfo::id; 0: no registered thread
  std::uint64_t generation = 0;           // of kStopRequested, kFirstSeen and kStopCleared
  std::string name;                       // of the thread or the queue; may be empty
  // Of a registered thread, as in ThreadInfo.
  bool has_thread_id = false;
  std::uint64_t thread_id = 0;
  std::int64_t started_at_ms = 0;
};

struct TimelineView {
  Clock::time_point began = {};       // the time of the first event
  std::int64_t began_at_ms = 0;       // the same moment, in milliseconds since 1970
  std::uint64_t dropped = 0;          // the number of events that are lost
  std::vector<TimelineEvent> events;  // the oldest first
};

// Guarded by Coordinator::mutex_ of the coordinator that owns it.
class Timeline {
 public:
  static constexpr std::size_t kCapacity = 4096;

  // `began`: the time of the first event.
  explicit Timeline(Clock::time_point began);

  // The event with the name `name`, whose memory is taken from the event that it overwrites.
  void Add(const TimelineEvent& event, const std::string& name) noexcept;
  // The number of events so far, lost ones included.
  std::uint64_t count() const { return dropped_ + events_.size(); }
  // The events but for the first `since`; `dropped` counts the lost ones among them.
  TimelineView View(std::uint64_t since = 0) const;

 private:
  const Clock::time_point began_;
  const std::int64_t began_at_ms_;
  std::vector<TimelineEvent> events_;
  std::size_t oldest_ = 0;  // the index of the oldest event
  std::uint64_t dropped_ = 0;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_TIMELINE_H_
