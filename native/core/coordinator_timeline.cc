// The events that a coordinator notes in its timeline.
#include <algorithm>
#include <utility>

#include "cancellation.h"
#include "coordinator.h"
#include "coordinator_effects.h"
#include "identity.h"

namespace allstop::core {

TimelineView Coordinator::TimelineSoFar(std::uint64_t since) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (timeline_) return timeline_->View(since);
  TimelineView view;
  view.began = Clock::now();
  view.began_at_ms = WallClockMs();
  return view;
}

std::uint64_t Coordinator::WatchEvents(Observer& observer, bool watches) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t count = timeline_ ? timeline_->count() : 0;
  observer.watches_events_ = watches;
  observer.events_told_ = count;
  UpdateEventsWatched();
  return count;
}

void Coordinator::UpdateEventsWatched() noexcept {
  const bool watched = std::any_of(observers_.begin(), observers_.end(),
                                   [](const auto& observer) { return observer->watches_events_; });
  events_watched_.store(watched, std::memory_order_relaxed);
}

void Coordinator::TellEvents() noexcept {
  if (!events_watched_.load(std::memory_order_relaxed)) return;  // invariant 11
  const CancellationDisabled disabled;  // an event loop is woken by a write
  while (const auto observer = NextToTell()) observer->OnEvents();
}

std::shared_ptr<Observer> Coordinator::NextToTell() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!timeline_) return nullptr;
  const std::uint64_t count = timeline_->count();
  for (const auto& observer : observers_) {
    if (!observer->watches_events_ || observer->events_told_ == count) continue;
    observer->events_told_ = count;
    return observer;
  }
  return nullptr;
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
  Effects effects(*this);
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
  event.has_thread_id = thread.has_thread_id;
  event.thread_id = thread.thread_id;
  event.started_at_ms = thread.started_at_ms;
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
