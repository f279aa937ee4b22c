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
#include <unistd.h>
#if defined(__APPLE__)
#include <pthread.h>
#else
#include <sys/mman.h>
#include <sys/syscall.h>

#include <new>
#endif
#endif

namespace allstop::core {

namespace {

// A forked process has a world of its own. Invariants:
//
//  1. A process is told from the one that forked it by its id. (No handler of fork() does so: it
//     would have to outlive the library, which a runtime may unload.)
//  2. A Named is never freed or changed: threads may outlive static destructors, and callers keep
//     references to its text. `before` lets leak checkers find that of the parent process.
struct Named {
  std::string world;
  std::int64_t process;
  const Named* before;
};

std::atomic<const Named*> named{nullptr};

std::string RandomName() {
  std::random_device random;
  char text[33];
  std::snprintf(text, sizeof(text), "%08x%08x%08x%08x", random(), random(), random(), random());
  return text;
}

}  // namespace

const std::string& World() {
  const std::int64_t process = ProcessId();
  const Named* known = named.load(std::memory_order_acquire);
  for (;;) {
    if (known != nullptr && known->process == process) return known->world;
    auto made = std::make_unique<const Named>(Named{RandomName(), process, known});
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

#if defined(MADV_WIPEONFORK)
namespace {

// The id of this process, for which the kernel is asked once: in a forked process the kernel has
// written 0 over it. Never freed. `kNone`: this kernel cannot do that.
using KnownId = std::atomic<pid_t>;
KnownId no_id{-1};
KnownId* const kNone = &no_id;
std::atomic<KnownId*> known_id{nullptr};

KnownId* MakeKnownId() noexcept {
  KnownId* made = kNone;
  void* const page =
      mmap(nullptr, sizeof(KnownId), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED && madvise(page, sizeof(KnownId), MADV_WIPEONFORK) == 0) {
    made = new (page) KnownId{0};
  } else if (page != MAP_FAILED) {
    munmap(page, sizeof(KnownId));
  }
  KnownId* known = nullptr;
  if (known_id.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made;
  if (made != kNone) munmap(page, sizeof(KnownId));  // another thread was faster
  return known;
}

}  // namespace
#endif

std::int64_t ProcessId() noexcept {
#if defined(_WIN32)
  return _getpid();
#elif defined(MADV_WIPEONFORK)
  KnownId* known = known_id.load(std::memory_order_acquire);
  if (known == nullptr) known = MakeKnownId();
  if (known == kNone) return getpid();
  pid_t id = known->load(std::memory_order_relaxed);
  if (id == 0) known->store(id = getpid(), std::memory_order_relaxed);
  return id;
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
