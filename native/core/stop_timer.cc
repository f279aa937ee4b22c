// Invariants, cited below by number.
//
//  1. A scheduled stop is in scheduled_, and is due or not. Whoever takes it out of scheduled_ owns
//     it: CancelScheduledStop, while it is not due, or a courier.
//  2. Requesting a stop runs the program's stop callbacks, so the helper thread does not do it, and
//     no lock is held meanwhile. A courier, a thread that ends when nothing is due, does. One that
//     is kept by a callback keeps no other stop: while stops are due, and no courier has taken one
//     for kPatience, another courier is started.
//  3. A stop that is due is requested, also without memory (the courier tries again) and without a
//     thread for a courier (the helper thread is one then).
#include "stop_timer.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>
#include <utility>

#include "alarm.h"
#include "background_thread.h"
#include "fault_point.h"
#include "of_this_process.h"

namespace allstop::core {
namespace {

class StopTimer;

struct ScheduledStop final : Alarm {
  explicit ScheduledStop(StopTimer& owner) : timer(owner) {}
  ~ScheduledStop() { End(); }
  void Ring() noexcept override;

  StopTimer& timer;
  std::uint64_t id = 0;
  std::uint64_t link = 0;  // from Coordinator::AddLink; 0: without a description
  std::shared_ptr<Coordinator> coordinator;
  StopRequest request;
  // Guarded by StopTimer::mutex_.
  bool is_due = false;
  ScheduledStop* next_due = nullptr;
};

class StopTimer {
 public:
  ~StopTimer() { patience_.End(); }

  std::uint64_t Add(const std::shared_ptr<Coordinator>& coordinator, Clock::time_point at,
                    StopRequest request, std::string description) {
    auto stop = std::make_unique<ScheduledStop>(*this);
    stop->coordinator = coordinator;
    stop->request = std::move(request);
    if (!description.empty()) stop->link = coordinator->AddLink(std::move(description));
    // Not an id of a parent process, which may still be cancelled in a forked one.
    static std::atomic<std::uint64_t> next_id{1};
    const std::uint64_t id = stop->id = next_id++;
    ScheduledStop* const added = stop.get();
    const std::uint64_t link = stop->link;
    try {
      const std::lock_guard<std::mutex> lock(mutex_);
      scheduled_.emplace(id, std::move(stop));
      added->RingAt(at);  // under the mutex: nobody can cancel it before
    } catch (...) {
      coordinator->RemoveLink(link);
      throw;
    }
    return id;
  }

  bool Remove(std::uint64_t id) {
    Scheduled::node_type removed;  // destroyed after the lock is released
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = scheduled_.find(id);
      if (found == scheduled_.end() || found->second->is_due) return false;
      removed = scheduled_.extract(found);
    }
    removed.mapped()->coordinator->RemoveLink(removed.mapped()->link);
    return true;
  }

  // On the helper thread.
  void IsDue(ScheduledStop& stop) noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (scheduled_.count(stop.id) == 0) return;  // cancelled
      stop.is_due = true;
      (first_due_ == nullptr ? first_due_ : last_due_->next_due) = &stop;
      last_due_ = &stop;
      patience_.RingAt(Clock::now() + kPatience);
      if (couriers_ > 0) return;
    }
    StartCourier();  // which may destroy `stop`
  }

 private:
  using Scheduled = std::unordered_map<std::uint64_t, std::unique_ptr<ScheduledStop>>;
  static constexpr std::chrono::milliseconds kPatience{20};

  struct Patience final : Alarm {
    explicit Patience(StopTimer& owner) : timer(owner) {}
    void Ring() noexcept override { timer.IsOutOfPatience(); }
    StopTimer& timer;
  };

  // On the helper thread.
  void IsOutOfPatience() noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (first_due_ == nullptr) return;
      patience_.RingAt(Clock::now() + kPatience);
      if (std::exchange(is_taken_, false)) return;
    }
    StartCourier();
  }

  // On the helper thread.
  void StartCourier() noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++couriers_;
    }
    try {
      StartBackgroundThread([this] { Run(); });
    } catch (...) {
      Run();
    }
  }

  // A courier.
  void Run() noexcept {
    while (const auto due = Take()) {
      ALLSTOP_FAULT_POINT(kTimerIsDue);
      due->coordinator->RemoveLink(due->link);
      Deliver(*due);
    }
  }

  // Null: nothing is due, and the courier has ended.
  std::unique_ptr<ScheduledStop> Take() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_due_ == nullptr) {
      --couriers_;
      return nullptr;
    }
    ScheduledStop& taken = *first_due_;
    first_due_ = taken.next_due;
    is_taken_ = true;
    return std::move(scheduled_.extract(taken.id).mapped());
  }

  // A request that finds no memory has changed nothing, so it is made again until it finds
  // some. A deadline that was dropped would let threads run without a limit.
  static void Deliver(ScheduledStop& due) noexcept {
    for (;;) {
      try {
        due.coordinator->RequestStop(due.request);
        return;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
  }

  std::mutex mutex_;  // before the helper thread's
  Patience patience_{*this};
  // Guarded by mutex_.
  Scheduled scheduled_;
  ScheduledStop* first_due_ = nullptr;  // in the order in which they became due
  ScheduledStop* last_due_ = nullptr;   // valid unless first_due_ is null
  bool is_taken_ = false;               // a courier has taken one since patience_ rang last
  int couriers_ = 0;                    // started, and not ended
};

void ScheduledStop::Ring() noexcept { timer.IsDue(*this); }

}  // namespace

std::uint64_t ScheduleStop(const std::shared_ptr<Coordinator>& coordinator, Deadline deadline,
                           StopRequest request, std::string description) {
  if (deadline.IsNever()) return 0;
  return OfThisProcess<StopTimer>::Get().Add(coordinator, *deadline.at(), std::move(request),
                                             std::move(description));
}

bool CancelScheduledStop(std::uint64_t id) {
  StopTimer* const timer = OfThisProcess<StopTimer>::Find();
  return timer != nullptr && timer->Remove(id);
}

}  // namespace allstop::core
