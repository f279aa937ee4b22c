#include "identity.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>

#if defined(_WIN32)
#include <process.h>
#include <windows.h>
#else
#include <unistd.h>
#if defined(__APPLE__)
#include <pthread.h>
#else
#include <sys/syscall.h>
#endif
#endif

namespace allstop::core {

const std::string& World() {
  // Never destroyed, since threads may outlive static destructors.
  static const std::string* const world = [] {
    std::random_device random;
    char text[33];
    std::snprintf(text, sizeof(text), "%08x%08x%08x%08x", random(), random(), random(), random());
    return new std::string(text);
  }();
  return *world;
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
