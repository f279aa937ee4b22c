// The process-wide registry: from a coordinator's id to the coordinator.
#ifndef ALLSTOP_CORE_REGISTRY_H_
#define ALLSTOP_CORE_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace allstop::core {

class Coordinator;

// Owns nothing: whoever published a handle holds the coordinator. Any thread.
class Registry {
 public:
  // Allocated once and never destroyed, since threads outlive process.exit().
  static Registry& Get();

  std::uint64_t NextId();  // never used twice
  void Add(std::uint64_t id, std::weak_ptr<Coordinator> coordinator);
  void Remove(std::uint64_t id);
  // Null if there is none, it is gone, or it was removed.
  std::shared_ptr<Coordinator> Find(std::uint64_t id) const;

 private:
  mutable std::mutex mutex_;  // first in the lock order; guards what follows
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, std::weak_ptr<Coordinator>> coordinators_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_REGISTRY_H_
