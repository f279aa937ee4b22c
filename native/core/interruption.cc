#include "interruption.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#endif

namespace allstop::core {
namespace {

constexpr std::chrono::milliseconds kLongest{100};

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
  callback_ = coordinator_->OnStop(
      [](void* self) { static_cast<Interruption*>(self)->RingAt(Clock::time_point::min()); }, this);
}

Interruption::~Interruption() {
  if (callback_) coordinator_->RemoveStopCallback(*callback_);
  Alarm::End();
}

void Interruption::Ring() noexcept {
  kick_.Kick();
  RingAt(Clock::now() + distance_);
  distance_ = std::min<Clock::duration>(2 * distance_, kLongest);
}

}  // namespace allstop::core
