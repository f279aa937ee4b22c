// Invariants, cited below by number.
//
//  1. items_ holds every item that was enqueued and not dequeued; an enqueue or a dequeue
//     moves items and counts them under one hold of mutex_. This matters because each item
//     must be delivered exactly once.
//  2. items_ holds at most `capacity` items, apart from those that were returned. This matters
//     because producers must wait when consumers are slow; a returned item must not wait,
//     since its consumer may be ending.
//  3. pending_enqueues_ counts the enqueues that wait. While it is not 0, a closed queue does
//     not report its end, unless the pending enqueues are cancelled. This matters because a
//     pending enqueue may still add an item after the last one was dequeued.
//  4. A waiter is in the list of its side exactly while its is_listed_ is true. This matters
//     because Forget uses place_, which is valid only then.
//  5. Counts::wanted of a side is at most the number of items, or of free places, that any
//     listed waiter and any patient thread there waits for, apart from those that are in a
//     Notifications already. This matters because an enqueue notifies them only if the queue
//     holds `wanted` items. It may be smaller, as when a patient thread has given up: then they
//     are notified once too often.
//  6. A dequeue that waits for `least` items finds them there or takes none, and takes at least
//     `least` of them under one hold of mutex_. This matters because another consumer may take
//     the rest between two holds, and because a wait reserves no item.
//
// No wake-up is lost. A thread that blocks tests its predicate under mutex_, and every change
// that can make a predicate true (an item, room, the end of the pending enqueues, Close, a stop)
// is made under mutex_ and notifies after it. For each item, and each free place, one blocked
// thread that was not notified yet is notified, if there is one. When that thread runs it takes
// the item, even if its deadline has passed meanwhile, as it tests its predicate before its
// deadline. In addition all listed waiters and all patient threads are notified, if there are
// enough items for one of them: the JavaScript thread of one waiter may be busy for long, or end,
// and the item must not wait for that. A thread or waiter that begins to wait later tests the
// predicate first, so it sees the change. A notified thread or waiter may find that another has
// taken the item.
//
// A patient thread takes no notification from a thread that would take the item. It waits on a
// condition variable of its own, changed_enough: on `changed`, notify_one could wake the patient
// thread, which would find too few items and block again, while the other thread slept beside
// an item. And since its predicate becomes true only when items are added, and all patient
// threads are notified of that, none of them depends on what another one takes.
//
// A wait learns of a stop in two ways. Each try asks ShouldStop(). OnStop comes after that, and
// ends the waits that began before the stop, even if the stop is cleared again: IsStopped
// compares the generation that the wait read at its beginning with the one that OnStop read.
// The coordinator's mutex is never taken while mutex_ is held.
//
// Nothing deadlocks: mutex_ is taken with no other lock held, and no foreign code is called while
// it is held (Notifications run when it is released). Items are freed by their owners.
#include "bounded_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cancellation.h"
#include "fault_point.h"
#include "registry.h"

namespace allstop::core {
namespace {

// The most items that are moved under one hold of mutex_. More would let a thread that waits
// for mutex_ go to sleep, which takes longer than moving 64 items.
constexpr std::size_t kMostAtOnce = 64;

// A full queue is normal where producers are faster than consumers: its events, ten a second at
// most, must not push all others out of the coordinator's timeline.
constexpr double kFullNotedMs = 100;

}  // namespace

// The coordinator's reference to a queue. It is weak, since the queue keeps the coordinator
// alive.
class BoundedQueue::StopObserver final : public Observer {
 public:
  explicit StopObserver(std::weak_ptr<BoundedQueue> queue) : queue_(std::move(queue)) {}
  void OnStop() override {
    if (const auto queue = queue_.lock()) queue->OnStop();
  }

 private:
  const std::weak_ptr<BoundedQueue> queue_;
};

BoundedQueue::Notifications::~Notifications() {
  ALLSTOP_FAULT_POINT(kQueueNotifies);
  if (all_threads_) {
    notified_->changed.notify_all();
  } else {
    for (; threads_ > 0; --threads_) notified_->changed.notify_one();
  }
  if (patient_threads_) notified_->changed_enough.notify_all();
  if (!waiters_.empty()) TellWaiters();
}

void BoundedQueue::Notifications::TellWaiters() const {
  const CancellationDisabled disabled;  // an event loop is woken by a write
  for (const auto& waiter : waiters_) waiter->OnProgress();
}

std::shared_ptr<BoundedQueue> BoundedQueue::Create(Options options) {
  std::shared_ptr<BoundedQueue> queue(new BoundedQueue(std::move(options)));
  if (Coordinator* const coordinator = queue->options_.coordinator.get()) {
    queue->stop_observer_ = std::make_shared<StopObserver>(queue);
    coordinator->AddObserver(queue->stop_observer_, nullptr);
    coordinator->SetInterested(*queue->stop_observer_, true);
  }
  Registry<BoundedQueue>::Get().Add(queue->id_, queue);
  return queue;
}

BoundedQueue::BoundedQueue(Options options)
    : id_(Registry<BoundedQueue>::NextId()), options_(std::move(options)) {}

BoundedQueue::~BoundedQueue() {
  Registry<BoundedQueue>::Get().Remove(id_);
  if (stop_observer_) options_.coordinator->RemoveObserver(*stop_observer_);
}

std::size_t BoundedQueue::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return items_.size();
}

bool BoundedQueue::closed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

std::size_t BoundedQueue::waiting(Side side) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (side == Side::kProducers) return pending_enqueues_;
  const auto index = static_cast<std::size_t>(side);
  return counts_[index].blocked + waiters_[index].patient + waiters_[index].listed.size();
}

// ---------------------------------------------------------------- checks

bool BoundedQueue::IsStopped(const Wait& wait) const {
  if (!options_.coordinator) return false;
  return options_.coordinator->ShouldStop() || stops_seen_ > wait.generation;
}

std::size_t BoundedQueue::Room() const {
  const std::size_t size = items_.size();
  return size < options_.capacity ? static_cast<std::size_t>(options_.capacity - size) : 0;
}

Status BoundedQueue::MayEnqueue(const Wait& wait) const {
  if (IsStopped(wait) || pending_cancelled_) return Status::kCancelled;
  if (closed_ && !wait.admitted) return Status::kCancelled;
  return Room() > 0 ? Status::kOk : Status::kDeadlineExceeded;
}

Status BoundedQueue::MayDequeue(const Wait& wait) const {
  if (items_.size() >= wait.least) return Status::kOk;
  if (IsStopped(wait)) return items_.empty() ? Status::kCancelled : Status::kOk;
  // Invariant 3.
  const bool may_come = !closed_ || (pending_enqueues_ > 0 && !pending_cancelled_);
  if (may_come) return Status::kDeadlineExceeded;
  return items_.empty() ? Status::kOutOfRange : Status::kOk;
}

bool BoundedQueue::MayProgress(Side side, const Wait& wait) const {
  const Status status = side == Side::kProducers ? MayEnqueue(wait) : MayDequeue(wait);
  return status != Status::kDeadlineExceeded;
}

// ---------------------------------------------------------------- enqueueing, dequeueing

Status BoundedQueue::Enqueue(QueueItem* items, std::size_t count, const Deadline& deadline,
                             std::size_t& enqueued) {
  // Not by PartialEnqueue::Add: to make a PartialEnqueue costs an enqueue that need not wait.
  const Status status = ContinueEnqueue(Wait(), items, count, Deadline::Passed(), enqueued);
  if (status != Status::kDeadlineExceeded || deadline.HasPassed()) return status;
  return PartialEnqueue(*this, deadline).AddTheRest(items, count, enqueued);
}

bool BoundedQueue::QuickEnqueue(const unsigned char (&bytes)[QueueItem::kInPlace],
                                std::size_t size) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t count = items_.size();
    Counts& consumers = CountsAt(Side::kConsumers);
    if (closed_ || pending_cancelled_ || count >= options_.capacity || count == items_.capacity() ||
        count + 1 >= consumers.wanted || IsStopped(Wait())) {
      return false;
    }
    items_.Next().SetInPlace(bytes, size);
    items_.Added();
    if (consumers.blocked == consumers.notified) return true;
    ++consumers.notified;
  }
  WaitersAt(Side::kConsumers).changed.notify_one();
  return true;
}

Status BoundedQueue::PartialEnqueue::Add(QueueItem* items, std::size_t count,
                                         std::size_t& enqueued) {
  enqueued = 0;
  if (!wait_.admitted) {
    const Status status = queue_.ContinueEnqueue(wait_, items, count, Deadline::Passed(), enqueued);
    if (status != Status::kDeadlineExceeded || deadline_.HasPassed()) return status;
  }
  return AddTheRest(items, count, enqueued);
}

Status BoundedQueue::PartialEnqueue::AddTheRest(QueueItem* items, std::size_t count,
                                                std::size_t& enqueued) {
  if (!wait_.admitted) {
    ALLSTOP_FAULT_POINT(kWaitBegins);
    wait_ = queue_.BeginWait();
    if (!queue_.BeginEnqueue(wait_)) return Status::kCancelled;
  }
  // Counts the items that went in, also if ContinueEnqueue throws.
  struct Count {
    std::size_t& all;
    std::size_t more = 0;
    ~Count() { all += more; }
  } counted{enqueued};
  return queue_.ContinueEnqueue(wait_, items + enqueued, count - enqueued, deadline_, counted.more);
}

Status BoundedQueue::Dequeue(QueueItem* items, std::size_t max, const Deadline& deadline,
                             std::size_t& dequeued, std::size_t least) {
  Wait wait;
  wait.least = least;
  Status status = ContinueDequeue(wait, items, max, Deadline::Passed(), dequeued);
  if (status == Status::kDeadlineExceeded && !deadline.HasPassed()) {
    ALLSTOP_FAULT_POINT(kWaitBegins);
    wait = BeginWait();
    wait.least = least;
    status = ContinueDequeue(wait, items, max, deadline, dequeued);
  }
  if (status != Status::kDeadlineExceeded || least == 1) return status;
  // The time is over, so the items that came are enough.
  return ContinueDequeue(Wait(), items, max, Deadline::Passed(), dequeued);
}

bool BoundedQueue::IsAtItsLast(const Wait& wait) const {
  Wait for_more = wait;
  for_more.least = kNothing;
  const std::lock_guard<std::mutex> lock(mutex_);
  return MayProgress(Side::kConsumers, for_more);
}

BoundedQueue::Wait BoundedQueue::BeginWait() const {
  Wait wait;
  wait.generation = options_.coordinator ? options_.coordinator->generation() : 0;
  return wait;
}

bool BoundedQueue::BeginEnqueue(Wait& wait) {
  bool is_news = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_ || IsStopped(wait)) return false;
    ++pending_enqueues_;
    wait.admitted = true;
    is_news = options_.coordinator && Room() == 0 && full_noted_.HasPassed();
    if (is_news) full_noted_ = Deadline::After(kFullNotedMs);
  }
  if (is_news) options_.coordinator->NoteQueueFull(options_.name);
  return true;
}

void BoundedQueue::EndEnqueue() {
  Notifications notifications;
  const std::lock_guard<std::mutex> lock(mutex_);
  // With the last pending enqueue a closed queue comes to its end (invariant 3).
  if (--pending_enqueues_ == 0 && closed_) NotifyAll(Side::kConsumers, notifications);
}

Status BoundedQueue::ContinueEnqueue(const Wait& wait, QueueItem* items, std::size_t count,
                                     const Deadline& deadline, std::size_t& enqueued) {
  enqueued = 0;
  while (true) {
    Notifications notifications;
    std::unique_lock<std::mutex> lock(mutex_);
    Status status = MayEnqueue(wait);
    while (status == Status::kDeadlineExceeded) {
      if (!Block(Side::kProducers, 1, lock, deadline)) return status;
      status = MayEnqueue(wait);
    }
    if (status != Status::kOk) return status;
    const std::size_t fit = std::min({count - enqueued, Room(), kMostAtOnce});
    try {
      items_.Reserve(fit);
    } catch (...) {
      // This thread may have been notified of a free place that it does not use.
      Notify(Side::kProducers, 1, notifications);
      throw;
    }
    for (std::size_t i = 0; i < fit; ++i) items_.Push(std::move(items[enqueued++]));
    Notify(Side::kConsumers, fit, notifications);
    if (enqueued == count) return Status::kOk;
  }
}

Status BoundedQueue::ContinueDequeue(const Wait& given, QueueItem* items, std::size_t max,
                                     const Deadline& deadline, std::size_t& dequeued) {
  Wait wait = given;
  dequeued = 0;
  do {
    Notifications notifications;
    std::unique_lock<std::mutex> lock(mutex_);
    Status status = MayDequeue(wait);
    while (status == Status::kDeadlineExceeded && dequeued == 0) {
      if (!Block(Side::kConsumers, wait.least, lock, deadline)) return status;
      status = MayDequeue(wait);
    }
    if (status != Status::kOk) return dequeued > 0 ? Status::kOk : status;
    const std::size_t most = std::max(kMostAtOnce, wait.least);  // invariant 6
    const std::size_t count = std::min({max - dequeued, items_.size(), most});
    for (std::size_t i = 0; i < count; ++i) items_.Pop(items[dequeued++]);
    Notify(Side::kProducers, count, notifications);
    wait.least = 1;  // the others of `max` are those that the queue has now
  } while (dequeued < max);
  return Status::kOk;
}

bool BoundedQueue::Return(QueueItem* items, std::size_t count) noexcept {
  Notifications notifications;
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    items_.Reserve(count);
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (std::size_t i = count; i > 0; --i) items_.PushFront(std::move(items[i - 1]));
  Notify(Side::kConsumers, count, notifications);
  return true;
}

void BoundedQueue::Close(bool cancel_pending) {
  Notifications producers;
  Notifications consumers;
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  if (cancel_pending) pending_cancelled_ = true;
  if (cancel_pending) NotifyAll(Side::kProducers, producers);
  NotifyAll(Side::kConsumers, consumers);
}

void BoundedQueue::OnStop() {
  options_.coordinator->TakeUnseen(*stop_observer_);  // or the coordinator would keep the record
  const std::uint64_t generation = options_.coordinator->generation();
  ALLSTOP_FAULT_POINT(kQueueHearsStop);
  Notifications producers;
  Notifications consumers;
  const std::lock_guard<std::mutex> lock(mutex_);
  stops_seen_ = std::max(stops_seen_, generation);
  NotifyAll(Side::kProducers, producers);
  NotifyAll(Side::kConsumers, consumers);
}

// ---------------------------------------------------------------- waiting

bool BoundedQueue::Block(Side side, std::size_t least, std::unique_lock<std::mutex>& lock,
                         const Deadline& deadline) {
  if (deadline.HasPassed()) return false;
  Counts& counts = CountsAt(side);
  const bool is_patient = least > 1;
  if (is_patient) {
    counts.wanted = std::min(counts.wanted, least);  // invariant 5
  } else {
    ++counts.blocked;
  }
  Waiters& waiters = WaitersAt(side);
  if (is_patient) ++waiters.patient;
  ConditionVariable& changed = is_patient ? waiters.changed_enough : waiters.changed;
  if (const auto at = deadline.at()) {
    changed.wait_until(lock, *at);
  } else {
    changed.wait(lock);
  }
  if (is_patient) {
    --waiters.patient;
    return true;
  }
  --counts.blocked;
  // A wake-up by the deadline or a spurious one may take another thread off the count. Then one
  // thread is notified once too often, which does no harm.
  if (counts.notified > 0) --counts.notified;
  return true;
}

bool BoundedQueue::Await(Side side, const Wait& wait, const std::shared_ptr<QueueWaiter>& waiter) {
  auto& listed = WaitersAt(side).listed;
  const std::size_t least = side == Side::kProducers ? 1 : wait.least;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (MayProgress(side, wait)) return false;
  if (!waiter->is_listed_) waiter->place_ = listed.insert(listed.end(), waiter);
  waiter->is_listed_ = true;  // invariant 4
  Counts& counts = CountsAt(side);
  counts.wanted = std::min(counts.wanted, least);  // invariant 5
  return true;
}

void BoundedQueue::Forget(Side side, QueueWaiter& waiter) {
  std::list<std::shared_ptr<QueueWaiter>> unlisted;  // freed after the lock is released
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!std::exchange(waiter.is_listed_, false)) return;
  unlisted.splice(unlisted.end(), WaitersAt(side).listed, waiter.place_);
}

void BoundedQueue::Notify(Side side, std::size_t how_many, Notifications& notifications) {
  Counts& counts = CountsAt(side);
  const std::size_t sleeping = counts.blocked - counts.notified;
  const auto threads = static_cast<std::uint32_t>(std::min(how_many, sleeping));
  if (threads > 0) {
    counts.notified += threads;
    notifications.threads_ += threads;
    notifications.notified_ = &WaitersAt(side);
  }
  const std::size_t available = side == Side::kProducers ? Room() : items_.size();
  if (available >= counts.wanted) NotifyWanting(side, notifications);
}

void BoundedQueue::NotifyAll(Side side, Notifications& notifications) {
  Notify(side, std::numeric_limits<std::size_t>::max(), notifications);
  NotifyWanting(side, notifications);
  notifications.all_threads_ = true;  // one broadcast is cheaper than a signal per thread
}

// Notifies the listed waiters and the patient threads.
void BoundedQueue::NotifyWanting(Side side, Notifications& notifications) {
  Waiters& waiters = WaitersAt(side);
  notifications.notified_ = &waiters;
  notifications.patient_threads_ = true;
  for (const auto& waiter : waiters.listed) waiter->is_listed_ = false;
  notifications.waiters_.splice(notifications.waiters_.end(), waiters.listed);
  CountsAt(side).wanted = kNothing;
}

}  // namespace allstop::core
