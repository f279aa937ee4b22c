#include "requester.h"

#include <utility>

#include "deadline.h"
#include "fault_point.h"
#include "identity.h"

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace allstop::core {
namespace {

std::string OsThreadName(std::uint64_t thread_id) {
#if !defined(_WIN32)
  char name[64] = {};
  if (pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 && name[0] != '\0') return name;
#endif
  return "native-" + std::to_string(thread_id);
}

}  // namespace

void Origin::Begin(Requester known) noexcept {
  if (known.at_ms == 0) known.at_ms = WallClockMs();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    completing_thread_ = std::this_thread::get_id();
    requester_ = std::move(known);
    is_begun_ = true;
  }
  changed_.notify_all();
}

void Origin::Complete(const Describe& locate) noexcept {
  Requester located;
  bool is_begun = false;
  try {
    if (locate) {
      located = requester_;  // without mutex_, since only this thread writes it
      is_begun = true;
      locate(located);
    }
  } catch (...) {  // the fields that `locate` has set so far are kept
  }
  if (located.at_ms == 0) located.at_ms = requester_.at_ms;
  ALLSTOP_FAULT_POINT(kOriginLocated);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_begun) requester_ = std::move(located);
    is_complete_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

Requester Origin::GetWithin(double patience_ms) const {
  const auto is_complete = [this] { return is_complete_.load(std::memory_order_acquire); };
  if (is_complete()) return requester_;
  std::unique_lock<std::mutex> lock(mutex_);
  Deadline::After(1000).Wait(changed_, lock, [this] { return is_begun_; });
  if (completing_thread_ != std::this_thread::get_id()) {
    Deadline::After(patience_ms).Wait(changed_, lock, is_complete);
  }
  return requester_;
}

Requester ThisNativeThread(Via via) {
  Requester requester;
  requester.language = Language::kNative;
  requester.via = via;
  requester.thread_id = OsThreadId();
  requester.thread_name = OsThreadName(requester.thread_id);
  requester.pid = ProcessId();
  return requester;
}

}  // namespace allstop::core
