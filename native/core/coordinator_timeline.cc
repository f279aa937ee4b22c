// The events that a coordinator notes in its timeline.
#include <utility>

#include "coordinator.h"
#include "identity.h"

namespace allstop::core {

TimelineView Coordinator::TimelineSoFar() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (timeline_) return timeline_->View();
  TimelineView view;
  view.began = Clock::now();
  view.began_at_ms = WallClockMs();
  return view;
}

void Coordinator::NoteSeen(std::uint64_t owner, std::uint64_t thread_id, bool is_worker,
                           const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!record_) return;
  if (is_worker) {
    if (const auto entry = threads_.OfWorker(thread_id, owner)) {
      NoteSeenBy(*entry);
      return;
    }
  }
  TimelineEvent event;
  event.type = TimelineType::kFirstSeen;
  event.generation = generation_;
  Note(event, name);
}

void Coordinator::NoteSeenByThisThread() noexcept {
  if (!record_) return;
  if (const auto entry = threads_.OnOsThread(OsThreadId())) NoteSeenBy(*entry);
}

void Coordinator::NoteSeenBy(ThreadRegistry::Entry& entry) noexcept {
  if (std::exchange(entry.seen_generation, generation_) == generation_) return;
  TimelineEvent event;
  event.type = TimelineType::kFirstSeen;
  event.kind = entry.info.kind;
  event.thread = entry.info.id;
  event.generation = generation_;
  Note(event, entry.info.name);
}

void Coordinator::NoteQueueFull(const std::string& queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TimelineEvent event;
  event.type = TimelineType::kQueueFull;
  Note(event, queue);
}

void Coordinator::NoteThread(TimelineType type, const ThreadInfo& thread,
                             bool unobserved) noexcept {
  TimelineEvent event;
  event.type = type;
  event.kind = thread.kind;
  event.thread = thread.id;
  event.unobserved = unobserved;
  Note(event, thread.name);
}

void Coordinator::NoteStop(TimelineType type, Clock::time_point at) noexcept {
  TimelineEvent event;
  event.type = type;
  event.at = at;
  event.generation = generation_;
  Note(event, {});
}

void Coordinator::Note(TimelineEvent event, const std::string& name) noexcept {
  if (event.at == Clock::time_point()) event.at = Clock::now();
  try {
    if (!timeline_) timeline_ = std::make_unique<Timeline>(event.at);
  } catch (...) {  // no memory: the timeline begins with a later event
    return;
  }
  timeline_->Add(event, name);
}

}  // namespace allstop::core
