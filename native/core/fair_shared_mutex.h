// A mutex that several readers, or one writer, hold; std::shared_lock and std::unique_lock work
// with it. (std::shared_mutex may prefer readers, so that a stream of them keeps writers out for
// ever, and costs an uncontended writer more.)
//
// Invariants, cited by number:
//
//  1. A writer holds turn_ from lock() to unlock(). A reader holds it only while it comes in.
//  2. readers_ is how many readers are in. It grows only while turn_ is held, so for a writer,
//     which has turn_, it only falls. The writer goes on when it is 0. Readers and writers that
//     come later wait at turn_ meanwhile: no stream of readers keeps a writer out.
//  3. A reader goes out without turn_, which a writer may hold while it waits for that reader.
//  4. A writer waits for readers_ == 0 under drained_mutex_, and the last reader takes that mutex
//     between its step to 0 and its notify: so the writer sees the 0, or is woken.
//  5. A reader's reads are before its release decrement, and a writer's writes are after its
//     acquire load of the 0 that the last decrement left. (Increments between two decrements are
//     read-modify-writes, so each decrement is before the load.)
#ifndef ALLSTOP_CORE_FAIR_SHARED_MUTEX_H_
#define ALLSTOP_CORE_FAIR_SHARED_MUTEX_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "condition_variable.h"

namespace allstop::core {

// Any thread. A thread that holds it must not lock it again, shared neither.
class FairSharedMutex {
 public:
  void lock() {
    turn_.lock();
    if (readers_.load(std::memory_order_acquire) != 0) AwaitReaders();
  }
  void unlock() { turn_.unlock(); }

  void lock_shared() {
    const std::lock_guard<std::mutex> turn(turn_);
    readers_.fetch_add(1, std::memory_order_relaxed);
  }
  void unlock_shared() {
    if (readers_.fetch_sub(1, std::memory_order_release) != 1) return;
    const std::lock_guard<std::mutex> lock(drained_mutex_);
    drained_.notify_one();  // at most one writer waits: the one that has turn_
  }

 private:
  void AwaitReaders() {
    std::unique_lock<std::mutex> lock(drained_mutex_);
    while (readers_.load(std::memory_order_acquire) != 0) drained_.wait(lock);
  }

  std::mutex turn_;
  std::atomic<std::uint32_t> readers_{0};
  std::mutex drained_mutex_;  // taken last
  ConditionVariable drained_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_FAIR_SHARED_MUTEX_H_
