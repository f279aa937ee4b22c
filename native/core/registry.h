// Finds a coordinator or queue by the id in its handle. One registry per class and process; that of
// a forked process does not know the objects of its parent.
#ifndef ALLSTOP_CORE_REGISTRY_H_
#define ALLSTOP_CORE_REGISTRY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "of_this_process.h"

namespace allstop::core {

// Holds weak references only: the environment that published a handle keeps the object alive.
// Any thread.
template <typename Object>
class Registry {
 public:
  static Registry& Get() { return OfThisProcess<Registry>::Get(); }

  // An id that no other object of this kind gets, nor had in the process that forked this one.
  static std::uint64_t NextId() {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
  }

  void Add(std::uint64_t id, std::weak_ptr<Object> object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_[id] = std::move(object);
  }

  void Remove(std::uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.erase(id);
  }

  // Null if no object has this id, or the object has died or was removed.
  std::shared_ptr<Object> Find(std::uint64_t id) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(id);
    return found == objects_.end() ? nullptr : found->second.lock();
  }

  // All objects that are alive. The result is released by the caller: the destructor of an object
  // calls Remove.
  std::vector<std::shared_ptr<Object>> All() const {
    std::vector<std::shared_ptr<Object>> all;  // outlives the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    all.reserve(objects_.size());
    for (const auto& [id, object] : objects_) {
      if (auto alive = object.lock()) all.push_back(std::move(alive));
    }
    return all;
  }

 private:
  mutable std::mutex mutex_;                                          // first in the lock order
  std::unordered_map<std::uint64_t, std::weak_ptr<Object>> objects_;  // guarded by mutex_
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_REGISTRY_H_
