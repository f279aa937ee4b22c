#include "stop_timer.h"

#include <chrono>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>
#include <utility>

#include "condition_variable.h"
#include "fault_point.h"

namespace allstop::core {
namespace {

class StopTimer {
 public:
  // Never destroyed, since its thread never ends.
  static StopTimer& Get() {
    static StopTimer* const timer = new StopTimer;
    return *timer;
  }

  std::uint64_t Add(const std::shared_ptr<Coordinator>& coordinator, Clock::time_point at,
                    StopRequest request, std::string description) {
    const std::uint64_t link =
        description.empty() ? 0 : coordinator->AddLink(std::move(description));
    try {
      return AddItem(at, Item{0, link, coordinator, std::move(request)});
    } catch (...) {
      coordinator->RemoveLink(link);
      throw;
    }
  }

  bool Remove(std::uint64_t id) {
    Item removed;  // destroyed after the lock is released: it may be the coordinator's last owner
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = positions_.find(id);
      if (found == positions_.end()) return false;
      removed = std::move(found->second->second);
      queue_.erase(found->second);
      positions_.erase(found);
    }
    removed.coordinator->RemoveLink(removed.link);
    return true;
  }

 private:
  struct Item {
    std::uint64_t id = 0;
    std::uint64_t link = 0;  // from Coordinator::AddLink; 0: without a description
    std::shared_ptr<Coordinator> coordinator;
    StopRequest request;
  };
  using Queue = std::multimap<Clock::time_point, Item>;

  std::uint64_t AddItem(Clock::time_point at, Item item) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!running_) {
      std::thread([this] { Run(); }).detach();
      running_ = true;
    }
    const std::uint64_t id = item.id = next_id_++;
    const auto position = queue_.emplace(at, std::move(item));
    try {
      positions_.emplace(id, position);
    } catch (...) {  // a stop that is not in positions_ could not be cancelled
      queue_.erase(position);
      throw;
    }
    if (position == queue_.begin()) nearest_changed_.notify_one();
    return id;
  }

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (queue_.empty()) {
        nearest_changed_.wait(lock);
        continue;
      }
      const Clock::time_point nearest = queue_.begin()->first;
      if (Clock::now() < nearest) {
        nearest_changed_.wait_until(lock, nearest);
        continue;
      }
      Item due = std::move(queue_.begin()->second);
      positions_.erase(due.id);
      queue_.erase(queue_.begin());
      lock.unlock();
      ALLSTOP_FAULT_POINT(kTimerIsDue);
      due.coordinator->RemoveLink(due.link);
      Deliver(due);
      due.coordinator.reset();
      lock.lock();
    }
  }

  // A request that finds no memory has changed nothing, so it is made again until it finds
  // some. A deadline that was dropped would let threads run without a limit.
  static void Deliver(Item& due) {
    for (;;) {
      try {
        due.coordinator->RequestStop(due.request);
        return;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
  }

  std::mutex mutex_;  // taken with no other lock held
  ConditionVariable nearest_changed_;
  // Guarded by mutex_.
  bool running_ = false;
  std::uint64_t next_id_ = 1;
  Queue queue_;
  std::unordered_map<std::uint64_t, Queue::iterator> positions_;
};

}  // namespace

std::uint64_t ScheduleStop(const std::shared_ptr<Coordinator>& coordinator, Deadline deadline,
                           StopRequest request, std::string description) {
  if (deadline.IsNever()) return 0;
  return StopTimer::Get().Add(coordinator, *deadline.at(), std::move(request),
                              std::move(description));
}

bool CancelScheduledStop(std::uint64_t id) { return id != 0 && StopTimer::Get().Remove(id); }

}  // namespace allstop::core
