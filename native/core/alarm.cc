// Invariants, cited below by number.
//
//  1. An alarm is in queue_, or has its node: so setting it allocates nothing, and a stop callback
//     that sets one cannot fail.
//  2. Ring is called with no lock held, and ringing_ names its alarm meanwhile; End waits until it
//     does not. So no alarm is destroyed while it rings, and Ring may take any lock that callers of
//     End do not hold. The helper thread itself does not wait: it would wait for itself.
//  3. mutex_ is a leaf: no lock is taken, and nothing that may block is called, while it is held.
#include "alarm.h"

#include <mutex>
#include <thread>

#include "background_thread.h"
#include "condition_variable.h"
#include "of_this_process.h"

namespace allstop::core {

class HelperThread {
 public:
  // Starts the thread, if it does not run.
  static HelperThread& Get() {
    auto& helper = OfThisProcess<HelperThread>::Get();
    const std::lock_guard<std::mutex> lock(helper.mutex_);
    if (!helper.is_running_) {
      StartBackgroundThread([&helper] { helper.Run(); });
      helper.is_running_ = true;
    }
    return helper;
  }

  // Not in a forked process, if this is the parent's.
  bool IsOfThisProcess() const noexcept { return process_ == ThisProcess(); }

  void Set(Alarm& alarm, Clock::time_point at) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (alarm.is_ended_) return;
    if (alarm.node_.empty()) {
      if (alarm.place_->first <= at) return;
      alarm.node_ = queue_.extract(alarm.place_);
    }
    alarm.node_.key() = at;
    alarm.place_ = queue_.insert(std::move(alarm.node_));
    if (alarm.place_ == queue_.begin()) nearest_changed_.notify_one();
  }

  void End(Alarm& alarm) {
    std::unique_lock<std::mutex> lock(mutex_);
    alarm.is_ended_ = true;
    if (alarm.node_.empty()) alarm.node_ = queue_.extract(alarm.place_);
    if (std::this_thread::get_id() == own_id_) return;
    rung_.wait(lock, [&] { return ringing_ != &alarm; });
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    own_id_ = std::this_thread::get_id();
    for (;;) {
      if (queue_.empty()) {
        nearest_changed_.wait(lock);
        continue;
      }
      const auto nearest = queue_.begin();
      if (const Clock::time_point at = nearest->first; Clock::now() < at) {
        nearest_changed_.wait_until(lock, at);
        continue;
      }
      ringing_ = nearest->second;
      ringing_->node_ = queue_.extract(nearest);
      lock.unlock();
      ringing_->Ring();
      lock.lock();
      ringing_ = nullptr;
      rung_.notify_all();
    }
  }

  const long process_ = ThisProcess();
  std::mutex mutex_;
  ConditionVariable nearest_changed_;
  ConditionVariable rung_;
  // Guarded by mutex_. The helper thread alone writes ringing_, so it reads it without.
  bool is_running_ = false;
  std::thread::id own_id_;
  Alarm::Queue queue_;
  Alarm* ringing_ = nullptr;
};

Alarm::Alarm() : helper_(HelperThread::Get()) {
  Queue one;
  node_ = one.extract(one.emplace(Clock::time_point(), this));
}

Alarm::~Alarm() = default;

void Alarm::RingAt(Clock::time_point at) noexcept {
  if (helper_.IsOfThisProcess()) helper_.Set(*this, at);
}

void Alarm::End() noexcept {
  if (helper_.IsOfThisProcess()) helper_.End(*this);
}

}  // namespace allstop::core
