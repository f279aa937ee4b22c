#include "interruption.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "condition_variable.h"

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <unistd.h>
#endif

// Invariants.
//
//  1. A thread is kicked under mutex_, and only while its Interruption is in stopped_. The
//     destructor takes it out under mutex_, on the thread itself. So the thread is alive whenever
//     it is kicked, and its id is its own.
//  2. When Remove has returned, the stop callback has been removed before, so nothing puts the
//     Interruption back.
//  3. mutex_ is a leaf: no other lock is taken under it, and no function that may block is called.
//     A stop callback, which must not block, may take it.
//  4. A stop needs neither memory nor a new thread: the thread was started by the first
//     Interruption, and the nodes of stopped_ belong to the Interruptions.

namespace allstop::core {

class Interrupter {
 public:
  // Never destroyed, since its thread never ends.
  static Interrupter& Get() {
    static Interrupter* const interrupter = new Interrupter;
    return *interrupter;
  }

  void Start() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (running_) return;
    std::thread([this] { Run(); }).detach();
    running_ = true;
  }

  // A stop callback: any thread.
  void OnStop(Interruption& interruption) {
    const std::lock_guard<std::mutex> lock(mutex_);
    interruption.is_stopped_ = true;
    interruption.due_ = Clock::time_point::min();
    interruption.distance_ = std::chrono::milliseconds(1);
    stopped_.splice(stopped_.end(), interruption.unlisted_, interruption.place_);
    stopped_changed_.notify_one();
  }

  void Remove(Interruption& interruption) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!interruption.is_stopped_) return;
    interruption.unlisted_.splice(interruption.unlisted_.end(), stopped_, interruption.place_);
  }

 private:
  static constexpr std::chrono::milliseconds kLongest{100};

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (stopped_.empty()) {
        stopped_changed_.wait(lock);
        continue;
      }
      const Clock::time_point now = Clock::now();
      Clock::time_point nearest = Clock::time_point::max();
      for (Interruption* const each : stopped_) {
        if (each->due_ <= now) {
          each->kick_.Kick();
          each->due_ = now + each->distance_;
          each->distance_ = std::min<Clock::duration>(2 * each->distance_, kLongest);
        }
        nearest = std::min(nearest, each->due_);
      }
      stopped_changed_.wait_until(lock, nearest);
    }
  }

  std::mutex mutex_;
  ConditionVariable stopped_changed_;
  // Guarded by mutex_.
  bool running_ = false;
  std::list<Interruption*> stopped_;
};

namespace {

long ThisProcess() {
#ifdef _WIN32
  return 0;  // no process is forked
#else
  return getpid();
#endif
}

// Restores what a failed system call has left for its caller.
class KeptError {
 public:
#ifdef _WIN32
  ~KeptError() {
    SetLastError(last_error_);
    errno = errno_;
  }
#else
  ~KeptError() { errno = errno_; }
#endif

 private:
  const int errno_ = errno;
#ifdef _WIN32
  const DWORD last_error_ = GetLastError();
#endif
};

}  // namespace

Interruption* Interruption::Begin(std::shared_ptr<Coordinator> coordinator) {
  const KeptError kept;
  return new Interruption(std::move(coordinator));
}

void Interruption::End(Interruption* interruption) noexcept {
  const KeptError kept;
  if (interruption == nullptr) return;
  if (interruption->process_ == ThisProcess()) {
    delete interruption;
  } else {
    interruption->kick_.~ThreadKick();
  }
}

Interruption::Interruption(std::shared_ptr<Coordinator> coordinator)
    : coordinator_(std::move(coordinator)), process_(ThisProcess()) {
  Interrupter::Get().Start();
  callback_ = coordinator_->OnStop(
      [](void* self) { Interrupter::Get().OnStop(*static_cast<Interruption*>(self)); }, this);
}

Interruption::~Interruption() {
  if (callback_) coordinator_->RemoveStopCallback(*callback_);
  Interrupter::Get().Remove(*this);
}

}  // namespace allstop::core
