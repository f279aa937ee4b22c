#include "spawned_workers.h"

#include <algorithm>
#include <utility>

#include "../core/deadline.h"

namespace allstop::binding {

SpawnedWorkers& SpawnedWorkers::Get() {
  static SpawnedWorkers* const workers = new SpawnedWorkers;
  return *workers;
}

std::uint64_t SpawnedWorkers::Begin(std::uint32_t parent_thread_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  in_progress_.emplace(next_ticket_, parent_thread_id);
  return next_ticket_++;
}

void SpawnedWorkers::End(std::uint64_t ticket) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_progress_.erase(ticket);
  }
  ended_.notify_all();
}

void SpawnedWorkers::Add(std::uint32_t thread_id, Spawned spawned) {
  const std::lock_guard<std::mutex> lock(mutex_);
  spawned_[thread_id] = std::move(spawned);
}

void SpawnedWorkers::Remove(std::uint32_t thread_id) {
  // Destroyed after the lock is released: it may be the coordinator's last owner.
  std::optional<Spawned> removed;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = spawned_.find(thread_id);
  if (found == spawned_.end()) return;
  removed = std::move(found->second);
  spawned_.erase(found);
}

std::uint64_t SpawnedWorkers::NextTicket() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_ticket_;
}

SpawnedWorkers::Found SpawnedWorkers::Find(std::uint32_t thread_id, std::uint64_t before,
                                           double ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_known = [&] {
    if (spawned_.count(thread_id) != 0) return true;
    return std::none_of(in_progress_.begin(), in_progress_.end(), [&](const auto& spawn) {
      return spawn.first < before && spawn.second < thread_id;
    });
  };
  if (!core::Deadline::After(ms).Wait(ended_, lock, is_known)) return {};
  const auto found = spawned_.find(thread_id);
  if (found == spawned_.end()) return {true, std::nullopt};
  return {true, found->second};
}

std::list<SpawnedWorkers::Uncaught>::reverse_iterator SpawnedWorkers::LatestOf(
    std::uint32_t thread_id) {
  return std::find_if(uncaught_.rbegin(), uncaught_.rend(),
                      [=](const Uncaught& entry) { return entry.thread_id == thread_id; });
}

void SpawnedWorkers::NoteUncaught(std::uint32_t thread_id, std::string encoded, bool is_fatal) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (uncaught_.size() == kMaxUncaught) uncaught_.pop_front();
  uncaught_.push_back({thread_id, std::move(encoded), is_fatal});
}

std::optional<std::string> SpawnedWorkers::TakeUncaught(std::uint32_t thread_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // The newest error is the one that the worker died of: the worker survived the earlier ones.
  const auto found = LatestOf(thread_id);
  if (found == uncaught_.rend()) return std::nullopt;
  std::string encoded = std::move(found->encoded);
  uncaught_.remove_if([=](const Uncaught& entry) { return entry.thread_id == thread_id; });
  return encoded;
}

std::optional<std::string> SpawnedWorkers::FatalError(std::uint32_t thread_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = LatestOf(thread_id);
  if (found == uncaught_.rend() || !found->is_fatal) return std::nullopt;
  return found->encoded;
}

}  // namespace allstop::binding
