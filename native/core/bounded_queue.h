// A queue of bytes between threads, native ones and JavaScript's, that holds
// producers up when it is full.
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

// Somebody who waits at a queue and cannot block: told once that there may be something
// for it, and others with it, with no lock held, on whatever thread made the change. It
// must not block, must not throw, and must not wait for JavaScript.
class QueueWaiter {
 public:
  virtual ~QueueWaiter() = default;
  virtual void OnProgress() = 0;

 private:
  friend class BoundedQueue;
  // Guarded by the queue's mutex.
  bool is_listed_ = false;
  std::list<std::shared_ptr<QueueWaiter>>::iterator place_;  // while it is
};

// Producers enqueue at one side, consumers dequeue at the other; first in, first out.
//
// Every method may be called on any thread that holds a reference; none blocks
// unless it says so. With a coordinator, a stop ends every wait at once: from then
// on nothing is enqueued, and what is there can still be dequeued.
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

  // Best-effort guesses, as others go on.
  std::size_t size() const;
  bool closed() const;

  // Enqueues in order as many of the `count` items as it can until the deadline, and
  // tells how many; the others stay the caller's. Blocks, unless the deadline has
  // passed. kOk: all; kDeadlineExceeded; kCancelled: closed, or a stop.
  Status Enqueue(QueueItem* items, std::size_t count, const Deadline& deadline,
                 std::size_t& enqueued);
  // Dequeues 1 to `max` items: those that are there, once there is one. Blocks, unless
  // the deadline has passed. kOk; kDeadlineExceeded; and when it is empty: kCancelled:
  // a stop; kOutOfRange: closed, and nobody's enqueue is waiting any more.
  Status Dequeue(QueueItem* items, std::size_t max, const Deadline& deadline,
                 std::size_t& dequeued);
  // Puts back at the front, in their order, what was dequeued and not delivered. For a
  // moment there may be more items than the capacity. False: no memory.
  bool Return(QueueItem* items, std::size_t count) noexcept;

  // From now on nobody begins to enqueue. Who waits to enqueue already is let in as
  // consumers make room, or, with `cancel_pending`, is told kCancelled. May be
  // called again.
  void Close(bool cancel_pending);

  // For those who wait in several steps.

  struct Wait {
    // Stops since then end it, also if they are cleared. By default none are news, and
    // only one that stands matters: for what ends at once.
    std::uint64_t generation = std::numeric_limits<std::uint64_t>::max();
    bool admitted = false;  // it began before the queue was closed
  };
  Wait BeginWait() const;
  // An enqueue that will wait: as long as it does, it is one that Close lets in. False:
  // closed, or stopped. True: EndEnqueue is owed, once.
  bool BeginEnqueue(Wait& wait);
  void EndEnqueue();
  Status ContinueEnqueue(const Wait& wait, QueueItem* items, std::size_t count,
                         const Deadline& deadline, std::size_t& enqueued);
  Status ContinueDequeue(const Wait& wait, QueueItem* items, std::size_t max,
                         const Deadline& deadline, std::size_t& dequeued);
  // Has `waiter` told when continuing may come to something. False: it may now.
  bool Await(Side side, const Wait& wait, const std::shared_ptr<QueueWaiter>& waiter);
  // It waits no longer, and is not notifications.
  void Forget(Side side, QueueWaiter& waiter);

 private:
  class StopObserver;

  // How many wait at one side.
  struct Counts {
    std::uint32_t blocked = 0;   // threads in Waiters::changed.wait
    std::uint32_t notified = 0;  // of those, at most; not yet running again
    std::uint32_t listed = 0;
  };
  // And who they are.
  struct Waiters {
    ConditionVariable changed;
    std::list<std::shared_ptr<QueueWaiter>> listed;  // the longest first
  };

  // Whom to tell when the mutex is released.
  class Notifications {
   public:
    Notifications() = default;
    ~Notifications();
    Notifications(const Notifications&) = delete;
    Notifications& operator=(const Notifications&) = delete;

   private:
    friend class BoundedQueue;
    ConditionVariable* changed_ = nullptr;
    std::uint32_t threads_ = 0;  // to notify
    bool all_threads_ = false;
    std::list<std::shared_ptr<QueueWaiter>> waiters_;
  };

  explicit BoundedQueue(Options options);
  void OnStop();

  Counts& CountsAt(Side side) { return counts_[static_cast<std::size_t>(side)]; }
  Waiters& WaitersAt(Side side) { return waiters_[static_cast<std::size_t>(side)]; }

  // All of these: the mutex is held. kDeadlineExceeded: it would have to wait.
  bool IsStopped(const Wait& wait) const;
  Status MayEnqueue(const Wait& wait) const;
  Status MayDequeue(const Wait& wait) const;
  bool MayProgress(Side side, const Wait& wait) const;
  std::size_t Room() const;
  void Notify(Side side, std::size_t how_many, Notifications& notifications);
  void NotifyAll(Side side, Notifications& notifications);
  bool Block(Side side, std::unique_lock<std::mutex>& lock, const Deadline& deadline);

  const std::uint64_t id_;
  const Options options_;
  std::shared_ptr<StopObserver> stop_observer_;  // null without a coordinator

  // What each enqueue and dequeue touches, in two lines of the cache: they go from one
  // processor to another each time, and that is what takes the time.
  alignas(64) mutable std::mutex mutex_;  // guards all that follows
  QueueRing items_;
  Counts counts_[2];
  bool closed_ = false;
  bool pending_cancelled_ = false;
  std::uint32_t pending_enqueues_ = 0;  // those that wait
  std::uint64_t stops_seen_ = 0;        // the coordinator's generation, as OnStop found it
  alignas(64) Waiters waiters_[2];
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_BOUNDED_QUEUE_H_
