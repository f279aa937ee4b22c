// Named points at which a build with ALLSTOP_FAULT_INJECTION (an option of CMakeLists.txt) delays
// the calling thread, so that a race is forced and not waited for. docs/testing.md says how they
// are used.
//
// Invariants.
//
//  1. Without the option ALLSTOP_FAULT_POINT is no code, and this header declares nothing. This
//     matters because the published binaries must not pay for the points.
//  2. The delay depends on the seed, on the point, and on how many points this thread has passed
//     before, and on nothing else. This matters because a seed then repeats the delays of a
//     failure. How the system schedules the threads it does not repeat.
//  3. A point changes nothing but its thread's count, takes no lock, allocates nothing and throws
//     nothing. This matters because points stand under locks, in destructors and in noexcept
//     functions. A signal handler has none.
//  4. Every delay ends after a few milliseconds, and waits for nothing. This matters because
//     a delay must not make a deadlock that the program does not have.
//  5. Without a seed (0) there is no delay, so that other tests can run in such a build.
#ifndef ALLSTOP_CORE_FAULT_POINT_H_
#define ALLSTOP_CORE_FAULT_POINT_H_

#ifndef ALLSTOP_FAULT_INJECTION

#define ALLSTOP_FAULT_POINT(point) static_cast<void>(0)

#else

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#define ALLSTOP_FAULT_POINT(point) \
  ::allstop::core::PassFaultPoint(::allstop::core::FaultPoint::point)

namespace allstop::core {

// Where the points stand. A point that a comment puts "under the mutex" makes other threads
// wait at that mutex; all others open a window between two steps.
enum class FaultPoint : std::uint8_t {
  kSleep,              // ConditionVariable: the predicate was tested, the thread is not asleep yet
  kWoken,              // ConditionVariable: the thread has woken and has its mutex again
  kNotify,             // ConditionVariable: the state has changed, nobody is notified yet
  kChildrenLatched,    // Latch, under the mutex: the children are stopped, this one is not
  kStopWordWritten,    // Latch, under the mutex: the stop word is written, the mirrors are not
  kMirrorWritten,      // Latch and ClearStop, under the mutex: after each mirror
  kRecordCleared,      // ClearStop, under the mutex: the record is gone, the stop word is not
  kEffects,            // Effects: the mutex is released, nobody is woken yet
  kWaitersWoken,       // Effects: the waiting threads are woken, the observers not called yet
  kObserversCalled,    // Effects: the observers are called, the requester is not known yet
  kCallbackTaken,      // RunCallback: the callback is marked as running, but not called yet
  kCallbackReturned,   // RunCallback: the callback has returned, but is not marked as done yet
  kJoinsListed,        // AnswerStop, under the mutex: the joins to tell are known, no answer yet
  kThreadEnded,        // EndThread, under the mutex: the entry has ended, its joins do not know
  kJoinIsOver,         // BlockingJoin: its wait is over, FinishJoin has not begun
  kFinishJoin,         // NativeAttachment::FinishJoin: before the core's
  kOriginLocated,      // Origin::Complete: the requester is located, not published yet
  kWaitBegins,         // BoundedQueue: a first try has failed, the wait has not begun
  kQueueNotifies,      // BoundedQueue: the mutex is released, nobody is notified yet
  kQueueHearsStop,     // BoundedQueue::OnStop: the generation is read, the waits do not know it
  kTimerIsDue,         // StopTimer: a courier has taken the stop, not requested yet
  kBellIsMarked,       // Doorbell::Ring: the bell counts as rung, the event loop is not called yet
  kBellIsServed,       // Doorbell::Serve: the bell counts as unrung, JavaScript has not looked yet
  kEnvironmentCloses,  // Environment::Close: the doorbell is silent, the threads have not ended
  kWatchedEnded,       // Environment::Close: the threads have ended, attachments still observe
  kAttachmentsClosed,  // Environment::Close: the spawn tickets are still held
  kDetach,             // NativeAttachment::Detach: before it stops observing
  kDetached,           // NativeAttachment::Detach: its mirror is released, its joins are not
  kSignalTaken,        // SignalHub: the signal is read from the pipe, no link is stopped yet
  kCount
};

inline std::uint64_t Mixed(std::uint64_t bits) noexcept {  // the finalizer of SplitMix64
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

inline std::atomic<std::uint64_t>& FaultSeed() noexcept {
  static std::atomic<std::uint64_t> seed{[] {
    const char* const given = std::getenv("ALLSTOP_FAULT_SEED");
    return given ? std::strtoull(given, nullptr, 10) : 0;
  }()};
  return seed;
}

// For tests. The environment variable ALLSTOP_FAULT_SEED gives the seed of the beginning.
inline void SetFaultSeed(std::uint64_t seed) noexcept { FaultSeed().store(seed); }

inline void DelayAtFault(std::uint64_t point, bool is_chosen) noexcept {
  thread_local std::uint64_t passed = 0;
  const std::uint64_t seed = FaultSeed().load(std::memory_order_relaxed);
  const std::uint64_t drawn = Mixed(Mixed(seed ^ Mixed(point + 1)) + ++passed);
  const std::uint64_t kind = drawn % 64;
  const auto part = static_cast<std::int64_t>(drawn >> 32) % 1000;
  if (is_chosen ? kind < 40 : kind == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(is_chosen ? 4 * part : part / 2));
  } else if (kind < 4) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(20 * part);
    while (std::chrono::steady_clock::now() < until) {
    }
  } else if (kind < 10) {
    std::this_thread::yield();
  }
}

// A seed that leaves a rest of 1 or 2 when divided by 4 is directed: it delays one of the named
// points heavily, which forces a window that is rare otherwise. All seeds delay all points lightly.
inline void PassFaultPoint(FaultPoint point) noexcept {
  const std::uint64_t seed = FaultSeed().load(std::memory_order_relaxed);
  if (seed == 0) return;
  const auto count = static_cast<std::uint64_t>(FaultPoint::kCount);
  const bool is_directed = seed % 4 == 1 || seed % 4 == 2;
  const auto own = static_cast<std::uint64_t>(point);
  DelayAtFault(own, is_directed && Mixed(seed) % count == own);
}

// Called before each lock and after each unlock of a mutex (test/faults/mutexes.cc). `place` is
// the call's place in the binary. A seed that leaves a rest of 3 when divided by 4 chooses one of
// 16 places.
inline void PassMutexPoint(std::uint64_t place) noexcept {
  const std::uint64_t seed = FaultSeed().load(std::memory_order_relaxed);
  if (seed == 0) return;
  const std::uint64_t point = place + static_cast<std::uint64_t>(FaultPoint::kCount);
  DelayAtFault(point, seed % 4 == 3 && Mixed(seed ^ Mixed(point)) % 16 == 0);
}

}  // namespace allstop::core

#endif  // ALLSTOP_FAULT_INJECTION

#endif  // ALLSTOP_CORE_FAULT_POINT_H_
