#include "spawned_workers.h"

#include <algorithm>

namespace allstop::binding {

SpawnedWorkers& SpawnedWorkers::Get() {
  static SpawnedWorkers* const workers = new SpawnedWorkers;
  return *workers;
}

std::uint64_t SpawnedWorkers::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  in_progress_.insert(next_ticket_);
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
  std::optional<Spawned> removed;  // destroyed after the lock: its coordinator may die with it
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = spawned_.find(thread_id);
  if (found == spawned_.end()) return;
  removed = std::move(found->second);
  spawned_.erase(found);
}

std::optional<SpawnedWorkers::Spawned> SpawnedWorkers::Find(std::uint32_t thread_id) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::uint64_t later = next_ticket_;
  ended_.wait(lock, [&] {
    return spawned_.count(thread_id) != 0 || in_progress_.empty() || *in_progress_.begin() >= later;
  });
  const auto found = spawned_.find(thread_id);
  if (found == spawned_.end()) return std::nullopt;
  return found->second;
}

void SpawnedWorkers::NoteUncaught(std::uint32_t thread_id, std::string error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (uncaught_.size() == kMaxUncaught) uncaught_.pop_front();
  uncaught_.emplace_back(thread_id, std::move(error));
}

std::optional<std::string> SpawnedWorkers::TakeUncaught(std::uint32_t thread_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // The newest error is the one that the worker died of: the worker survived the earlier ones.
  const auto found = std::find_if(uncaught_.rbegin(), uncaught_.rend(),
                                  [=](const auto& entry) { return entry.first == thread_id; });
  if (found == uncaught_.rend()) return std::nullopt;
  std::string error = std::move(found->second);
  uncaught_.remove_if([=](const auto& entry) { return entry.first == thread_id; });
  return error;
}

}  // namespace allstop::binding
