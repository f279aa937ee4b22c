#include "registry.h"

#include <utility>

namespace allstop::core {

Registry& Registry::Get() {
  static Registry* const registry = new Registry;
  return *registry;
}

std::uint64_t Registry::NextId() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_id_++;
}

void Registry::Add(std::uint64_t id, std::weak_ptr<Coordinator> coordinator) {
  const std::lock_guard<std::mutex> lock(mutex_);
  coordinators_[id] = std::move(coordinator);
}

void Registry::Remove(std::uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  coordinators_.erase(id);
}

std::shared_ptr<Coordinator> Registry::Find(std::uint64_t id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = coordinators_.find(id);
  return found == coordinators_.end() ? nullptr : found->second.lock();
}

}  // namespace allstop::core
