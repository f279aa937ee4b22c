// The effects of a change of a coordinator on waiting threads, observers and callbacks. They
// run when no lock is held; the top of coordinator.cc says why. Private to the coordinator.
#ifndef ALLSTOP_CORE_COORDINATOR_EFFECTS_H_
#define ALLSTOP_CORE_COORDINATOR_EFFECTS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cancellation.h"
#include "coordinator.h"
#include "fault_point.h"

namespace allstop::core {

// A coordinator whose waiting threads are to wake and whose callbacks are to run.
struct Coordinator::Stopped {
  std::shared_ptr<Coordinator> coordinator;  // null if it is dying
  std::uint32_t waiters = 0;                 // the number of threads to wake; 0: none
  std::list<std::shared_ptr<StopCallback>> callbacks;
};

// Must be declared before the lock of mutex_: the destructor of Effects carries them out, so it
// has to run after the lock is released. It also runs when an exception (no memory) leaves the
// function half-way.
class Coordinator::Effects {
 public:
  explicit Effects(Coordinator& self) : self_(self) {}
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  // Wakes native threads first: they run at once, while JavaScript is reached through an event
  // loop.
  ~Effects() {
    ALLSTOP_FAULT_POINT(kEffects);
    std::uint32_t woken = Wake(own);
    for (const Stopped& each : descendants) woken += Wake(each);
    if (joins_changed) self_.join_changed_.notify_all();
    ALLSTOP_FAULT_POINT(kWaitersWoken);
    TellObservers();
    self_.TellEvents();
    for (const Stopped& each : descendants) {
      if (each.coordinator) each.coordinator->TellEvents();
    }
    ALLSTOP_FAULT_POINT(kObserversCalled);
    if (origin_) {
      origin_->Begin(Described());
      if (!request_->locate) origin_->Complete({});
    }
    RunCallbacks(own);
    for (const Stopped& each : descendants) RunCallbacks(each);
    if (!origin_ || !request_->locate) return;
    // If at least as many threads were woken as there are processors, one of them needs the
    // processor of this thread. That thread runs first, since `locate` may take long.
    static const std::uint32_t processors = std::thread::hardware_concurrency();
    if (woken >= processors && woken > 0) std::this_thread::yield();
    origin_->Complete(request_->locate);
  }

  // `origin` will be completed from `request`, which must outlive this object.
  void WillComplete(std::shared_ptr<Origin> origin, const StopRequest& request) {
    origin_ = std::move(origin);
    request_ = &request;
  }

  // As WillComplete, for an error that comes beside the record. mutex_ is held.
  void WillKeep(std::shared_ptr<Origin> origin, const StopRequest& request) {
    for (const auto& observer : self_.observers_) {
      if (observer->interested_) on_error.push_back(observer);
    }
    WillComplete(std::move(origin), request);
  }

  Stopped own;  // of self_; an element of `descendants` would cost each stop an allocation
  std::list<Stopped> descendants;
  std::vector<std::shared_ptr<Observer>> on_stop;
  std::vector<std::shared_ptr<Observer>> on_clear;
  std::vector<std::shared_ptr<Observer>> on_error;
  std::list<std::shared_ptr<Observer>> on_join_progress;  // elements may be null
  bool joins_changed = false;

 private:
  static std::uint32_t Wake(const Stopped& stopped) {
    if (!stopped.coordinator || stopped.waiters == 0) return 0;
    stopped.coordinator->stop_changed_.notify_all();
    stopped.coordinator->join_changed_.notify_all();
    return stopped.waiters;
  }

  void TellObservers() const {
    if (on_stop.empty() && on_clear.empty() && on_error.empty() && on_join_progress.empty()) return;
    const CancellationDisabled disabled;  // an event loop is woken by a write
    for (const auto& observer : on_stop) observer->OnStop();
    for (const auto& observer : on_clear) observer->OnClear();
    for (const auto& observer : on_error) observer->OnError();
    for (const auto& waiter : on_join_progress) {
      if (waiter) waiter->OnJoinProgress();
    }
  }

  // The requester as far as there is memory for it: at least its language and via.
  Requester Described() const noexcept {
    Requester requester;
    requester.language = request_->requester.language;
    requester.via = request_->requester.via;
    try {
      requester = request_->requester;
      if (request_->describe) request_->describe(requester);
    } catch (...) {
    }
    return requester;
  }

  static void RunCallbacks(const Stopped& stopped) {
    for (const auto& callback : stopped.callbacks) RunCallback(*stopped.coordinator, *callback);
  }

  static void RunCallback(Coordinator& coordinator, StopCallback& callback) {
    {
      const std::lock_guard<std::mutex> lock(coordinator.mutex_);
      if (callback.phase_ == StopCallback::Phase::kDone) return;  // by RemoveStopCallback
      callback.phase_ = StopCallback::Phase::kRunning;
      callback.runner_ = std::this_thread::get_id();
    }
    ALLSTOP_FAULT_POINT(kCallbackTaken);
    callback.Run();
    ALLSTOP_FAULT_POINT(kCallbackReturned);
    {
      const std::lock_guard<std::mutex> lock(coordinator.mutex_);
      callback.phase_ = StopCallback::Phase::kDone;
    }
    coordinator.callback_done_.notify_all();
  }

  Coordinator& self_;
  std::shared_ptr<Origin> origin_;        // null: nothing was recorded
  const StopRequest* request_ = nullptr;  // null if origin_ is null
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_COORDINATOR_EFFECTS_H_
