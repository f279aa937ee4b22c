#include "thread_registry.h"

#include <algorithm>
#include <utility>

#include "identity.h"
#include "made_once.h"

namespace allstop::core {

void ThreadRegistry::Starts(ThreadInfo& info) {
  info.started_at_ms = WallClockMs();
  info.started_at = std::chrono::steady_clock::now();
}

std::shared_ptr<ThreadRegistry::Entry> ThreadRegistry::Add(NewThread thread) {
  auto entry = std::make_shared<Entry>();
  entry->info.id = next_id_++;
  entry->info.name = std::move(thread.name);
  entry->info.kind = thread.kind;
  entry->info.alive = thread.started;
  entry->info.daemon = thread.daemon;
  entry->info.has_thread_id = thread.has_thread_id;
  entry->info.thread_id = thread.thread_id;
  Starts(entry->info);
  entry->owner = thread.owner;
  if (thread.kind == ThreadKind::kHook) {
    PrepareRun(*entry);
    if (!hooks_) hooks_ = std::make_unique<Entries>();
    hooks_->emplace_hint(hooks_->end(), entry->info.id, entry);
  }
  try {
    live_.emplace(entry->info.id, entry);
  } catch (...) {
    if (thread.kind == ThreadKind::kHook) hooks_->erase(entry->info.id);
    throw;
  }
  return entry;
}

std::shared_ptr<ThreadRegistry::Entry> ThreadRegistry::Find(std::uint64_t id) const {
  const auto found = live_.find(id);
  if (found != live_.end()) return found->second;
  const auto left = left_behind_.find(id);
  return left == left_behind_.end() ? nullptr : left->second;
}

std::shared_ptr<ThreadRegistry::Entry> ThreadRegistry::End(std::uint64_t id, bool unobserved) {
  std::shared_ptr<Entry> entry = Find(id);
  if (!entry) return nullptr;
  Erase(id);
  if (!entry->info.alive) return entry;
  entry->info.alive = false;
  entry->info.unobserved = unobserved;
  entry->info.ended_at_ms = WallClockMs();
  if (ended_.size() == kMaxEnded) ended_.pop_front();
  // Joins still read entry->info: the move empties only its name.
  entry->place_among_ended.front() = std::move(entry->info);
  ended_.splice(ended_.end(), entry->place_among_ended);
  return entry;
}

void ThreadRegistry::Forget(Entry& entry, std::chrono::steady_clock::time_point stop_requested_at) {
  if (entry.forgotten) return;  // another join has left it behind before
  if (entry.info.kind == ThreadKind::kHook && !entry.info.alive) return;
  entry.forgotten = true;
  if (!entry.info.alive) {
    if (entry.joins.empty()) Erase(entry.info.id);
    return;
  }
  auto node = live_.extract(entry.info.id);
  if (node.empty()) return;
  entry.stop_requested_at = stop_requested_at;
  left_behind_.insert(std::move(node));
  LimitLeftBehind();
}

void ThreadRegistry::LimitLeftBehind() {
  if (left_behind_.size() <= kMaxLeftBehind) return;
  for (const auto& [id, entry] : left_behind_) {
    if (!entry->joins.empty()) continue;
    Erase(id);
    return;
  }
}

void ThreadRegistry::Unlist(Entry& entry, Join* join) {
  entry.joins.erase(std::remove(entry.joins.begin(), entry.joins.end(), join), entry.joins.end());
  if (entry.forgotten && !entry.info.alive && entry.joins.empty()) Erase(entry.info.id);
}

const ThreadRegistry::Entries& ThreadRegistry::hooks() const {
  static MadeOnce<const Entries> none;
  return hooks_ ? *hooks_ : none.Get([] { return new const Entries; });
}

void ThreadRegistry::PrepareRun(Entry& hook) { hook.place_among_ended.assign(1, hook.info); }

void ThreadRegistry::EndRun(Entry& hook) {
  hook.info.alive = false;
  if (auto node = left_behind_.extract(hook.info.id)) live_.insert(std::move(node));
  hook.forgotten = false;
  ThreadInfo& ended = hook.place_among_ended.front();
  ended.alive = false;
  ended.started_at_ms = hook.info.started_at_ms;
  ended.ended_at_ms = WallClockMs();
  if (ended_.size() == kMaxEnded) ended_.pop_front();
  ended_.splice(ended_.end(), hook.place_among_ended);
}

bool ThreadRegistry::Readmit(std::uint64_t id) {
  const auto entry = Find(id);
  if (!entry) return false;
  entry->forgotten = false;
  if (auto node = left_behind_.extract(id)) live_.insert(std::move(node));
  return true;
}

void ThreadRegistry::Erase(std::uint64_t id) {
  for (Entries* entries : {&live_, &left_behind_}) {
    const auto found = entries->find(id);
    if (found == entries->end()) continue;
    Unindex(*found->second);
    if (found->second->info.kind == ThreadKind::kHook) hooks_->erase(id);
    entries->erase(found);
  }
}

void ThreadRegistry::Start(Entry& entry) {
  Starts(entry.info);
  entry.info.alive = true;
  entry.forgotten = false;
}

void ThreadRegistry::Enter(Entry& entry, std::uint64_t os_thread_id) {
  Unindex(entry);
  std::uint64_t& id = by_os_thread_[os_thread_id];  // first, since it may throw: no memory
  entry.entered_over = std::exchange(id, entry.info.id);
  entry.info.is_os_thread = true;
  entry.info.has_thread_id = true;
  entry.info.thread_id = os_thread_id;
}

std::shared_ptr<ThreadRegistry::Entry> ThreadRegistry::OnOsThread(
    std::uint64_t os_thread_id) const {
  const auto found = by_os_thread_.find(os_thread_id);
  return found == by_os_thread_.end() ? nullptr : Find(found->second);
}

std::vector<std::shared_ptr<ThreadRegistry::Entry>> ThreadRegistry::Live() const {
  std::vector<std::shared_ptr<Entry>> entries;
  entries.reserve(live_.size());
  for (const auto& [id, entry] : live_) {
    if (!entry->forgotten) entries.push_back(entry);
  }
  return entries;
}

std::shared_ptr<ThreadRegistry::Entry> ThreadRegistry::OfWorker(std::uint64_t thread_id,
                                                                std::uint64_t owner) const {
  for (const auto& [id, entry] : live_) {
    const ThreadInfo& info = entry->info;
    const bool is_worker = info.has_thread_id && !info.is_os_thread &&
                           info.kind != ThreadKind::kProcess && info.kind != ThreadKind::kNative;
    if (is_worker && info.alive && info.thread_id == thread_id && entry->owner != owner &&
        !entry->forgotten) {
      return entry;
    }
  }
  return nullptr;
}

std::vector<LeftBehindThread> ThreadRegistry::LeftBehind() const {
  std::vector<LeftBehindThread> threads;
  threads.reserve(left_behind_.size());
  for (const auto& [id, entry] : left_behind_) {
    threads.push_back({entry->info, entry->stop_requested_at});
  }
  return threads;
}

void ThreadRegistry::Unindex(const Entry& entry) {
  if (!entry.info.is_os_thread) return;
  const auto found = by_os_thread_.find(entry.info.thread_id);
  if (found == by_os_thread_.end()) return;
  std::uint64_t* link = &found->second;
  while (*link != entry.info.id) {
    const auto over = Find(*link);
    if (!over) return;
    link = &over->entered_over;
  }
  *link = entry.entered_over;
  if (found->second == 0) by_os_thread_.erase(found);
}

}  // namespace allstop::core
