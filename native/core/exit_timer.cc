// Invariants, cited below by number.
//
//  1. The coordinator alone decides whether a countdown runs, and since when: the timer's thread
//     reads the current stop (View) each time a watch is `changed_`, and once more before it ends
//     the process. OnStop and OnClear carry no state, they only set `changed_`. This matters
//     because observers are called with no lock held: a stop and the clear that followed it may
//     arrive here in the wrong order.
//  2. No coordinator is called, and no watch destroyed, while mutex_ is held. This matters because
//     a coordinator calls OnStop on any thread, which takes mutex_.
//  3. After the thread has been started, the way to the end of the process allocates nothing that
//     it could not do without: a report that finds no memory is left out, the end comes all the
//     same.
//  4. The thread waits for nobody: it writes to standard error only what the other end has room
//     for, and reads the requester as far as it is known. This matters because the program that
//     hangs may be the reader of standard error, or the formatter of the stack.
#include "exit_timer.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "condition_variable.h"
#include "exit_report.h"

namespace allstop::core {
namespace {

class ExitTimer {
 public:
  // Never destroyed, since its thread never ends.
  static ExitTimer& Get() {
    static ExitTimer* const timer = new ExitTimer;
    return *timer;
  }

  std::uint64_t Add(const std::shared_ptr<Coordinator>& coordinator, double ms,
                    std::optional<int> exit_code, std::string description) {
    auto watch = std::make_shared<Watch>();
    watch->coordinator = coordinator;
    watch->ms = ms;
    watch->exit_code = exit_code;
    watch->link = coordinator->AddLink(std::move(description));
    std::uint64_t id = 0;
    try {
      coordinator->AddObserver(watch, nullptr);
      coordinator->SetInterested(*watch, true);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!running_) {
        std::thread([this] { Run(); }).detach();
        running_ = true;
      }
      id = next_id_++;
      watches_.emplace(id, watch);
    } catch (...) {
      Detach(*watch);
      throw;
    }
    changed_.notify_one();  // it is `changed` from the beginning: the coordinator may be stopped
    return id;
  }

  void Remove(std::uint64_t id) {
    std::shared_ptr<Watch> removed;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = watches_.find(id);
      if (found == watches_.end()) return;
      removed = std::move(found->second);
      watches_.erase(found);
    }
    Detach(*removed);
  }

 private:
  struct Watch : Observer {
    std::shared_ptr<Coordinator> coordinator;
    double ms = 0;
    std::optional<int> exit_code;
    std::uint64_t link = 0;
    Clock::time_point began = Clock::now();

    // Guarded by ExitTimer::mutex_.
    bool changed = true;
    std::optional<Clock::time_point> end;  // of the countdown; empty: none runs

    void OnStop() override { Get().Changed(*this); }
    void OnClear() override { Get().Changed(*this); }
  };

  void Changed(Watch& watch) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      watch.changed = true;
    }
    changed_.notify_one();
  }

  // Breaks the circle of references between the watch and the coordinator.
  static void Detach(Watch& watch) {
    watch.coordinator->RemoveObserver(watch);
    watch.coordinator->RemoveLink(watch.link);
  }

  // When the countdown of the watch ends, as its coordinator is now; empty: it is not stopped.
  static std::optional<Clock::time_point> EndOf(const Watch& watch) {
    try {
      const auto record = watch.coordinator->View().record;
      if (!record) return std::nullopt;
      return Deadline::After(watch.ms, std::max(record->requested_at, watch.began)).at();
    } catch (...) {  // no memory
      return Clock::now() + std::chrono::milliseconds(50);
    }
  }

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      std::shared_ptr<Watch> next;
      for (const auto& [id, watch] : watches_) {
        if (watch->changed || !next || IsSooner(*watch, *next)) next = watch;
        if (watch->changed) break;
      }
      if (!next || (!next->changed && !next->end)) {
        next.reset();
        changed_.wait(lock);
        continue;
      }
      const bool is_due = !next->changed && Clock::now() >= *next->end;
      if (!next->changed && !is_due) {
        const Clock::time_point nearest = *next->end;
        next.reset();
        changed_.wait_until(lock, nearest);
        continue;
      }
      next->changed = false;
      lock.unlock();
      const std::optional<Clock::time_point> end = EndOf(*next);
      if (is_due && end && Clock::now() >= *end) {
        EndProcess(*next->coordinator, next->ms, next->exit_code);
      }
      lock.lock();
      next->end = end;
      // A watch that was removed meanwhile must not be destroyed under the lock (invariant 2).
      lock.unlock();
      next.reset();
      lock.lock();
    }
  }

  static bool IsSooner(const Watch& a, const Watch& b) {
    return a.end && (!b.end || *a.end < *b.end);
  }

  std::mutex mutex_;
  ConditionVariable changed_;
  // Guarded by mutex_.
  bool running_ = false;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, std::shared_ptr<Watch>> watches_;
};

}  // namespace

std::uint64_t ExitAfterStop(const std::shared_ptr<Coordinator>& coordinator, double ms,
                            std::optional<int> exit_code, std::string description) {
  if (Deadline::After(ms).IsNever()) return 0;
  return ExitTimer::Get().Add(coordinator, ms, exit_code, std::move(description));
}

void CancelExitAfterStop(std::uint64_t id) {
  if (id != 0) ExitTimer::Get().Remove(id);
}

}  // namespace allstop::core
