#include "identity.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>

#if defined(_WIN32)
#include <process.h>
#include <windows.h>
#else
#include <pthread.h>
#include <unistd.h>
#if !defined(__APPLE__)
#include <sys/syscall.h>
#endif
#endif

namespace allstop::core {

namespace {

// A forked process has a world of its own. Invariants:
//
//  1. `forks` changes only in a process that was just forked, which has one thread.
//  2. A Named is never freed or changed: threads may outlive static destructors, and callers keep
//     references to its text. `before` lets leak checkers find that of the parent process.
struct Named {
  std::string world;
  std::uint32_t forks;
  const Named* before;
};

std::atomic<std::uint32_t> forks{0};  // how many forks are between the first process and this one
std::atomic<const Named*> named{nullptr};

bool WatchForks() {
#ifdef _WIN32
  return false;  // no process is forked
#else
  // The handler allocates nothing: other threads may have held any lock at the fork.
  return pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); }) ==
         0;
#endif
}

std::string RandomName() {
  std::random_device random;
  char text[33];
  std::snprintf(text, sizeof(text), "%08x%08x%08x%08x", random(), random(), random(), random());
  return text;
}

}  // namespace

const std::string& World() {
  [[maybe_unused]] static const bool watches_forks = WatchForks();
  const Named* known = named.load(std::memory_order_acquire);
  for (;;) {
    const std::uint32_t now = forks.load(std::memory_order_relaxed);  // invariant 1
    if (known != nullptr && known->forks == now) return known->world;
    auto made = std::make_unique<const Named>(Named{RandomName(), now, known});
    // Threads that find none at the same time may each make one: the first one stays.
    if (named.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      return made.release()->world;
    }
  }
}

std::string NextIdentity() {
  static std::atomic<std::uint64_t> next{1};
  return World() + "." + std::to_string(next.fetch_add(1, std::memory_order_relaxed));
}

std::uint64_t OsThreadId() {
#if defined(_WIN32)
  return GetCurrentThreadId();
#elif defined(__APPLE__)
  std::uint64_t id = 0;
  pthread_threadid_np(nullptr, &id);
  return id;
#else
  return static_cast<std::uint64_t>(syscall(SYS_gettid));
#endif
}

std::int64_t ProcessId() {
#if defined(_WIN32)
  return _getpid();
#else
  return getpid();
#endif
}

std::int64_t WallClockMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace allstop::core
