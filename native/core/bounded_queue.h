// A queue of bytes between threads, native ones and JavaScript's. Producers wait while it is
// full.
#ifndef ALLSTOP_CORE_BOUNDED_QUEUE_H_
#define ALLSTOP_CORE_BOUNDED_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "condition_variable.h"
#include "coordinator.h"
#include "deadline.h"
#include "foreign_references.h"
#include "queue_ring.h"
#include "status.h"

namespace allstop::core {

// A producer or a consumer that waits at a queue and cannot block its thread. The queue calls
// OnProgress once after each BoundedQueue::Await, when an item or room may be there, with no
// lock held, on the thread that made the change. It calls all listed waiters, so one of them
// may find the item gone. OnProgress must not block, must not throw, and must not wait for
// JavaScript.
class QueueWaiter {
 public:
  virtual ~QueueWaiter() = default;
  virtual void OnProgress() = 0;

 private:
  friend class BoundedQueue;
  // Guarded by BoundedQueue::mutex_.
  bool is_listed_ = false;
  std::list<std::shared_ptr<QueueWaiter>>::iterator place_;  // valid while is_listed_
};

// Producers enqueue at one side, consumers dequeue at the other; first in, first out.
//
// Every method may be called on any thread that holds a reference; a method blocks only if its
// comment says so. With a coordinator, a stop ends every wait at once: from then on nothing is
// enqueued, and the items in the queue can still be dequeued.
class BoundedQueue : public ForeignReferences<BoundedQueue> {
 public:
  enum class Codec : std::uint8_t { kStructured, kBytes };  // as in lib/native/binding.ts
  enum class Side : std::uint8_t { kProducers, kConsumers };

  struct Options {
    std::string name;
    std::uint64_t capacity = 1;  // in items, not 0
    Codec codec = Codec::kBytes;
    std::shared_ptr<Coordinator> coordinator;  // may be null
  };

  static std::shared_ptr<BoundedQueue> Create(Options options);
  ~BoundedQueue();
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  std::uint64_t id() const { return id_; }
  const Options& options() const { return options_; }

  // Other threads may change the queue at once, so these values may be out of date.
  std::size_t size() const;
  bool closed() const;
  // How many enqueues wait for room; how many threads wait to dequeue (a JavaScript thread counts
  // once). For people.
  std::size_t waiting(Side side) const;

  // Enqueues as many of the `count` items as it can until the deadline, in order, and sets
  // `enqueued` to their number; the caller keeps the others. Blocks, unless the deadline has
  // passed. kOk: all; kDeadlineExceeded; kCancelled: the queue is closed, or a stop.
  Status Enqueue(QueueItem* items, std::size_t count, const Deadline& deadline,
                 std::size_t& enqueued);
  // Waits until the queue has `least` items, and dequeues up to `max` of those that it has.
  // Dequeues fewer than `least`, but not none, if the deadline passes, if the queue is stopped,
  // or if it is closed and no enqueue is waiting any more. Blocks, unless the deadline has
  // passed. `least` is 1 to `max`, and not above the capacity. kOk: 1 to `max` items; when the
  // queue is empty: kDeadlineExceeded; kCancelled: a stop; kOutOfRange: closed.
  Status Dequeue(QueueItem* items, std::size_t max, const Deadline& deadline, std::size_t& dequeued,
                 std::size_t least = 1);
  // For one item, if nobody has to wait and only threads that wait for one item or place have to be
  // told: the same as Enqueue and Dequeue, without their preparations. False: nothing has changed.
  bool QuickEnqueue(const unsigned char (&bytes)[QueueItem::kInPlace], std::size_t size) noexcept;
  // `take` is given the item, which it leaves empty, under mutex_.
  template <typename Take>
  bool QuickDequeue(Take take) noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      Counts& producers = CountsAt(Side::kProducers);
      if (items_.empty() || Room() + 1 >= producers.wanted) return false;
      take(items_.First());
      items_.Removed();
      if (producers.blocked == producers.notified) return true;
      ++producers.notified;
    }
    WaitersAt(Side::kProducers).changed.notify_one();
    return true;
  }
  // Puts items that were dequeued and not delivered back at the front, in their order. The
  // queue may then hold more items than its capacity. False: no memory.
  bool Return(QueueItem* items, std::size_t count) noexcept;

  // From now on no enqueue begins. An enqueue that waits already may still end with kOk, as
  // consumers make room, or, with `cancel_pending`, ends with kCancelled. May be called again.
  void Close(bool cancel_pending);

  // One enqueue whose items the caller has in parts. Like one call of Enqueue with all of them:
  // once it has waited for room, Close lets every later part in, too.
  class PartialEnqueue;

  // The steps of a wait, for callers that cannot block until its end (JavaScript).

  struct Wait {
    // The coordinator's generation at the beginning of the wait: a later stop ends the wait,
    // even if the stop is cleared again. The default is for a call that does not wait: only a
    // stop that stands now ends it.
    std::uint64_t generation = std::numeric_limits<std::uint64_t>::max();
    bool admitted = false;  // this enqueue began to wait before the queue was closed
    // The number of items that this dequeue waits for. It reserves none of them meanwhile.
    std::size_t least = 1;
  };
  Wait BeginWait() const;
  // Begins an enqueue that waits: Close does not end it. True: the caller must call EndEnqueue
  // once. False: the queue is closed, or stopped.
  bool BeginEnqueue(Wait& wait);
  void EndEnqueue();
  Status ContinueEnqueue(const Wait& wait, QueueItem* items, std::size_t count,
                         const Deadline& deadline, std::size_t& enqueued);
  // Dequeues nothing if the deadline passes with fewer than `wait.least` items: the caller may
  // then dequeue with a `least` of 1. `wait.least` must not be above `max`.
  Status ContinueDequeue(const Wait& wait, QueueItem* items, std::size_t max,
                         const Deadline& deadline, std::size_t& dequeued);
  // Whether a dequeue with this wait would get no further items however long it waited: the
  // queue is stopped, or closed and no enqueue is waiting any more.
  bool IsAtItsLast(const Wait& wait) const;
  // Lists `waiter`, so that its OnProgress is called when it should continue. False: it should
  // continue now, and is not listed.
  bool Await(Side side, const Wait& wait, const std::shared_ptr<QueueWaiter>& waiter);
  // Takes `waiter` off the list. A call of OnProgress that has begun may still be running.
  void Forget(Side side, QueueWaiter& waiter);

 private:
  class StopObserver;

  static constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();
  // What the waiting threads and waiters at one side wait for.
  struct Counts {
    std::uint32_t blocked = 0;   // threads that wait on Waiters::changed
    std::uint32_t notified = 0;  // of these, threads notified that do not run yet (at most)
    // The smallest number of items (for producers: of free places) that a listed waiter or a
    // patient thread waits for, or a smaller number (invariant 5).
    std::size_t wanted = kNothing;
  };
  // The waiting threads and waiters at one side. A patient thread waits for more than one item.
  struct Waiters {
    ConditionVariable changed;                       // threads that wait for one item or place
    ConditionVariable changed_enough;                // patient threads
    std::list<std::shared_ptr<QueueWaiter>> listed;  // in the order of Await
    std::uint32_t patient = 0;                       // threads that wait on changed_enough
  };

  // The threads and waiters to notify when mutex_ is released. Must be declared before the
  // lock, since its destructor notifies them.
  class Notifications {
   public:
    Notifications() = default;
    ~Notifications();
    Notifications(const Notifications&) = delete;
    Notifications& operator=(const Notifications&) = delete;

   private:
    friend class BoundedQueue;
    void TellWaiters() const;
    Waiters* notified_ = nullptr;  // null: no threads to notify
    std::uint32_t threads_ = 0;    // how many threads to notify that are not patient
    bool all_threads_ = false;
    bool patient_threads_ = false;  // all of them
    std::list<std::shared_ptr<QueueWaiter>> waiters_;
  };

  explicit BoundedQueue(Options options);
  void OnStop();

  Counts& CountsAt(Side side) { return counts_[static_cast<std::size_t>(side)]; }
  Waiters& WaitersAt(Side side) { return waiters_[static_cast<std::size_t>(side)]; }

  // mutex_ is held during all of these. Status::kDeadlineExceeded: the call would have to wait.
  bool IsStopped(const Wait& wait) const;
  Status MayEnqueue(const Wait& wait) const;
  Status MayDequeue(const Wait& wait) const;
  bool MayProgress(Side side, const Wait& wait) const;
  std::size_t Room() const;
  void Notify(Side side, std::size_t how_many, Notifications& notifications);
  void NotifyAll(Side side, Notifications& notifications);
  void NotifyWanting(Side side, Notifications& notifications);
  bool Block(Side side, std::size_t least, std::unique_lock<std::mutex>& lock,
             const Deadline& deadline);

  const std::uint64_t id_;
  const Options options_;
  std::shared_ptr<StopObserver> stop_observer_;  // null without a coordinator

  // Every field below is guarded by mutex_. Those down to stops_seen_ are touched by each
  // enqueue and dequeue. They fill two cache lines: moving these lines from one processor to
  // another is most of the cost of an enqueue.
  alignas(64) mutable std::mutex mutex_;
  QueueRing items_;
  Counts counts_[2];
  bool closed_ = false;
  bool pending_cancelled_ = false;
  std::uint32_t pending_enqueues_ = 0;        // enqueues that wait (BeginEnqueue)
  Deadline full_noted_ = Deadline::Passed();  // until then the timeline has it that it is full
  std::uint64_t stops_seen_ = 0;              // the coordinator's generation at the last OnStop
  alignas(64) Waiters waiters_[2];
};

// Belongs to one thread, which makes it, adds the parts, and destroys it. Parts are added until
// one of them does not end with kOk.
class BoundedQueue::PartialEnqueue {
 public:
  PartialEnqueue(BoundedQueue& queue, const Deadline& deadline)
      : queue_(queue), deadline_(deadline) {}
  ~PartialEnqueue() {
    if (wait_.admitted) queue_.EndEnqueue();
  }
  PartialEnqueue(const PartialEnqueue&) = delete;
  PartialEnqueue& operator=(const PartialEnqueue&) = delete;

  // As Enqueue, for the next items.
  Status Add(QueueItem* items, std::size_t count, std::size_t& enqueued);

 private:
  friend class BoundedQueue;

  // Adds those of `items` that are not among the first `enqueued`, as there is room.
  Status AddTheRest(QueueItem* items, std::size_t count, std::size_t& enqueued);

  BoundedQueue& queue_;
  const Deadline deadline_;
  Wait wait_;  // admitted from the first part on that has to wait: invariant 3
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_BOUNDED_QUEUE_H_
