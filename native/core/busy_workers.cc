#include "busy_workers.h"

#include <utility>

#include "made_once.h"

namespace allstop::core {

BusyWorkers& BusyWorkers::Get() {
  static MadeOnce<BusyWorkers> workers;
  return workers.Get([] { return new BusyWorkers; });
}

void BusyWorkers::Set(const void* owner, std::vector<BusyWorker> workers) {
  if (workers.empty()) {
    Remove(owner);
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  by_owner_[owner] = std::move(workers);
}

void BusyWorkers::Remove(const void* owner) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  by_owner_.erase(owner);
}

std::vector<BusyWorker> BusyWorkers::All() const {
  std::vector<BusyWorker> all;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [owner, workers] : by_owner_) {
    all.insert(all.end(), workers.begin(), workers.end());
  }
  return all;
}

}  // namespace allstop::core
