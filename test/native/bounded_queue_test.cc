#include "core/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "gate.h"

namespace allstop::core {
namespace {

using test::Gate;
using Side = BoundedQueue::Side;

std::shared_ptr<BoundedQueue> MakeQueue(std::uint64_t capacity,
                                        std::shared_ptr<Coordinator> coordinator = nullptr) {
  return BoundedQueue::Create(
      {"numbers", capacity, BoundedQueue::Codec::kBytes, std::move(coordinator)});
}

Status Enqueue(BoundedQueue& queue, const std::string& text, const Deadline& deadline) {
  QueueItem item(text.data(), text.size());
  std::size_t enqueued = 0;
  return queue.Enqueue(&item, 1, deadline, enqueued);
}
Status Enqueue(BoundedQueue& queue, const std::string& text) {
  return Enqueue(queue, text, Deadline::Never());
}
Status TryEnqueue(BoundedQueue& queue, const std::string& text) {
  return Enqueue(queue, text, Deadline::Passed());
}

std::string Text(const QueueItem& item) {
  return std::string(reinterpret_cast<const char*>(item.data()), item.size());
}

struct Dequeued {
  Status status = Status::kOk;
  std::vector<std::string> texts;
  bool operator==(const Dequeued& other) const {
    return status == other.status && texts == other.texts;
  }
};

Dequeued Dequeue(BoundedQueue& queue, const Deadline& deadline, std::size_t max = 1,
                 std::size_t least = 1) {
  std::vector<QueueItem> items(max);
  std::size_t count = 0;
  Dequeued dequeued;
  dequeued.status = queue.Dequeue(items.data(), max, deadline, count, least);
  for (std::size_t i = 0; i < count; ++i) dequeued.texts.push_back(Text(items[i]));
  return dequeued;
}
Dequeued Dequeue(BoundedQueue& queue) { return Dequeue(queue, Deadline::Never()); }
Dequeued TryDequeue(BoundedQueue& queue, std::size_t max = 1) {
  return Dequeue(queue, Deadline::Passed(), max);
}

Dequeued Got(std::vector<std::string> texts) { return {Status::kOk, std::move(texts)}; }
Dequeued Ended(Status status) { return {status, {}}; }

// Opens a gate when OnProgress is called.
class GateWaiter final : public QueueWaiter {
 public:
  void OnProgress() override { told.Open(); }
  Gate told;
};

// Threads that block at the queue. AllArrive returns just before they block, so a test must expect
// the same result whether they block already or not.
class Blocked {
 public:
  template <typename Body>
  void Start(Body body) {
    ++started_;
    threads_.emplace_back([this, body] {
      ++arrived_;
      body();
    });
  }
  void AllArrive() {
    while (arrived_ < started_) std::this_thread::yield();
  }
  void Join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::atomic<int> arrived_{0};
  int started_ = 0;
  std::vector<std::thread> threads_;
};

TEST(QueueItemTest, HoldsShortAndLongBytesAndMoves) {
  for (const std::size_t size : {0u, 1u, 32u, 33u, 100'000u}) {
    const std::string text(size, 'x');
    QueueItem item(text.data(), text.size());
    QueueItem moved(std::move(item));
    EXPECT_EQ(Text(moved), text);
    EXPECT_EQ(item.size(), 0u);
    item = std::move(moved);
    EXPECT_EQ(Text(item), text);
  }
}

TEST(QueueItemTest, ReleasesAdoptedBytesOnce) {
  int released = 0;
  char bytes[] = "abc";
  {
    QueueItem item(
        bytes, 3, [](void*, std::size_t, void* count) { ++*static_cast<int*>(count); }, &released);
    const QueueItem moved(std::move(item));
    EXPECT_EQ(moved.data(), reinterpret_cast<unsigned char*>(bytes));
  }
  EXPECT_EQ(released, 1);
}

TEST(BoundedQueueTest, IsFirstInFirstOutAndHoldsNoMoreThanItsCapacity) {
  const auto queue = MakeQueue(2);
  EXPECT_EQ(TryEnqueue(*queue, "a"), Status::kOk);
  EXPECT_EQ(TryEnqueue(*queue, "b"), Status::kOk);
  EXPECT_EQ(TryEnqueue(*queue, "c"), Status::kDeadlineExceeded);
  EXPECT_EQ(queue->size(), 2u);
  EXPECT_EQ(TryDequeue(*queue), Got({"a"}));
  EXPECT_EQ(TryEnqueue(*queue, "c"), Status::kOk);
  EXPECT_EQ(TryDequeue(*queue, 10), Got({"b", "c"}));
  EXPECT_EQ(TryDequeue(*queue), Ended(Status::kDeadlineExceeded));
}

TEST(BoundedQueueTest, KeepsTheOrderWhileItGrowsAndGoesRound) {
  const auto queue = MakeQueue(10'000);
  int enqueued = 0;
  int dequeued = 0;
  while (dequeued < 9'000) {
    for (int i = 0; i < 3 && enqueued < 9'000; ++i) TryEnqueue(*queue, std::to_string(enqueued++));
    for (int i = 0; i < 1 + (enqueued == 9'000); ++i) {
      const Dequeued one = TryDequeue(*queue);
      if (one.status != Status::kOk) break;
      ASSERT_EQ(one, Got({std::to_string(dequeued++)}));
    }
  }
}

TEST(BoundedQueueTest, ABatchGoesInAsThereIsRoom) {
  const auto queue = MakeQueue(2);
  std::vector<QueueItem> items;
  for (const char* text : {"a", "b", "c"}) items.emplace_back(text, 1);
  std::size_t enqueued = 0;
  EXPECT_EQ(queue->Enqueue(items.data(), 3, Deadline::Passed(), enqueued),
            Status::kDeadlineExceeded);
  EXPECT_EQ(enqueued, 2u);
  EXPECT_EQ(Text(items[2]), "c") << "what was not enqueued stays the caller's";
  std::thread consumer([&] { EXPECT_EQ(Dequeue(*queue), Got({"a"})); });
  EXPECT_EQ(queue->Enqueue(&items[2], 1, Deadline::Never(), enqueued), Status::kOk);
  consumer.join();
  EXPECT_EQ(TryDequeue(*queue, 2), Got({"b", "c"}));
}

TEST(BoundedQueueTest, HoldsAProducerUpUntilThereIsRoom) {
  const auto queue = MakeQueue(1);
  Enqueue(*queue, "a");
  Gate enqueued;
  std::thread producer([&] {
    EXPECT_EQ(Enqueue(*queue, "b"), Status::kOk);
    enqueued.Open();
  });
  EXPECT_FALSE(enqueued.OpensWrongly());
  EXPECT_EQ(Dequeue(*queue), Got({"a"}));
  producer.join();
  EXPECT_EQ(Dequeue(*queue), Got({"b"}));
}

TEST(BoundedQueueTest, HoldsAConsumerUpUntilThereIsAnItem) {
  const auto queue = MakeQueue(1);
  Gate dequeued;
  std::thread consumer([&] {
    EXPECT_EQ(Dequeue(*queue), Got({"a"}));
    dequeued.Open();
  });
  EXPECT_FALSE(dequeued.OpensWrongly());
  Enqueue(*queue, "a");
  consumer.join();
}

TEST(BoundedQueueTest, WaitsNoLongerThanTheDeadline) {
  const auto queue = MakeQueue(1);
  EXPECT_EQ(Dequeue(*queue, Deadline::After(5)), Ended(Status::kDeadlineExceeded));
  Enqueue(*queue, "a");
  EXPECT_EQ(Enqueue(*queue, "b", Deadline::After(5)), Status::kDeadlineExceeded);
  EXPECT_EQ(queue->size(), 1u);
}

// ---------------------------------------------------------------- several at least

TEST(BoundedQueueLeastTest, WaitsForThatManyAndTakesMoreUpToMax) {
  const auto queue = MakeQueue(8);
  Enqueue(*queue, "a");
  Enqueue(*queue, "b");
  Gate dequeued;
  std::thread consumer([&] {
    EXPECT_EQ(Dequeue(*queue, Deadline::Never(), 4, 3), Got({"a", "b", "c"}));
    dequeued.Open();
  });
  EXPECT_FALSE(dequeued.OpensWrongly());
  EXPECT_EQ(queue->size(), 2u) << "it reserves nothing while it waits";
  Enqueue(*queue, "c");
  consumer.join();
  for (const char* text : {"d", "e", "f", "g", "h"}) Enqueue(*queue, text);
  EXPECT_EQ(TryDequeue(*queue, 4).texts.size(), 4u);
  EXPECT_EQ(Dequeue(*queue, Deadline::Never(), 1, 1), Got({"h"}));
}

TEST(BoundedQueueLeastTest, TakesMoreThanOneHoldOfTheMutexMoves) {
  constexpr int kCount = 200;  // more than kMostAtOnce
  const auto queue = MakeQueue(kCount);
  std::thread consumer([&] {
    EXPECT_EQ(Dequeue(*queue, Deadline::Never(), kCount, kCount).texts.size(), kCount + 0u);
  });
  for (int i = 0; i < kCount; ++i) Enqueue(*queue, std::to_string(i));
  consumer.join();
  EXPECT_EQ(queue->size(), 0u);
}

TEST(BoundedQueueLeastTest, TheDeadlineGivesTheItemsThatCame) {
  const auto queue = MakeQueue(4);
  EXPECT_EQ(Dequeue(*queue, Deadline::After(5), 4, 4), Ended(Status::kDeadlineExceeded));
  Enqueue(*queue, "a");
  EXPECT_EQ(Dequeue(*queue, Deadline::After(5), 4, 4), Got({"a"}));
  Enqueue(*queue, "b");
  EXPECT_EQ(Dequeue(*queue, Deadline::Passed(), 4, 4), Got({"b"}));
}

TEST(BoundedQueueLeastTest, ACloseAndAStopGiveTheRest) {
  for (const bool stop : {true, false}) {
    const auto coordinator = Coordinator::Create({});
    const auto queue = MakeQueue(4, coordinator);
    Enqueue(*queue, "a");
    Blocked consumers;
    std::atomic<int> items{0};
    const Status end = stop ? Status::kCancelled : Status::kOutOfRange;
    for (int i = 0; i < 4; ++i) {
      consumers.Start([&] {
        const Dequeued got = Dequeue(*queue, Deadline::Never(), 4, 4);
        if (got.texts.empty()) EXPECT_EQ(got.status, end);
        items += static_cast<int>(got.texts.size());
      });
    }
    consumers.AllArrive();
    if (stop) coordinator->RequestStop({});
    if (!stop) queue->Close(false);
    consumers.Join();
    EXPECT_EQ(items, 1);
    EXPECT_EQ(Dequeue(*queue, Deadline::Never(), 4, 4), Ended(end));
  }
}

TEST(BoundedQueueLeastTest, AClosedQueueIsAwaitedWhileEnqueuesWait) {
  const auto queue = MakeQueue(2);
  Enqueue(*queue, "a");
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginEnqueue(wait));
  queue->Close(false);
  Gate dequeued;
  std::thread consumer([&] {
    EXPECT_EQ(Dequeue(*queue, Deadline::Never(), 2, 2), Got({"a", "b"}));
    dequeued.Open();
  });
  EXPECT_FALSE(dequeued.OpensWrongly());
  QueueItem item("b", 1);
  std::size_t enqueued = 0;
  EXPECT_EQ(queue->ContinueEnqueue(wait, &item, 1, Deadline::Passed(), enqueued), Status::kOk);
  queue->EndEnqueue();
  consumer.join();
}

// The thread that waits for two must not be woken instead of the one that waits for one.
TEST(BoundedQueueLeastTest, AThreadThatWaitsForSeveralKeepsNoItemFromOneThatWaitsForOne) {
  for (int round = 0; round < 500; ++round) {
    const auto queue = MakeQueue(4);
    Blocked patient;
    patient.Start([&] { Dequeue(*queue, Deadline::Never(), 2, 2); });
    if (round % 2 == 0) patient.AllArrive();
    Blocked consumer;
    consumer.Start([&] { EXPECT_EQ(Dequeue(*queue), Got({"a"})); });
    if (round % 3 == 0) consumer.AllArrive();
    Enqueue(*queue, "a");
    consumer.Join();
    queue->Close(false);
    patient.Join();
  }
}

TEST(BoundedQueueLeastTest, AWaiterIsToldWhenThereAreEnough) {
  const auto queue = MakeQueue(4);
  const auto waiter = std::make_shared<GateWaiter>();
  BoundedQueue::Wait wait = queue->BeginWait();
  wait.least = 2;
  ASSERT_TRUE(queue->Await(Side::kConsumers, wait, waiter));
  Enqueue(*queue, "a");
  EXPECT_FALSE(waiter->told.is_open());
  EXPECT_FALSE(queue->IsAtItsLast(wait));
  Enqueue(*queue, "b");
  EXPECT_TRUE(waiter->told.is_open());
  queue->Close(false);
  EXPECT_TRUE(queue->IsAtItsLast(wait));
}

TEST(BoundedQueueLeastTest, AWaiterForOneIsToldBesideOneForSeveral) {
  const auto queue = MakeQueue(4);
  const auto patient = std::make_shared<GateWaiter>();
  const auto waiter = std::make_shared<GateWaiter>();
  BoundedQueue::Wait wait = queue->BeginWait();
  wait.least = 3;
  ASSERT_TRUE(queue->Await(Side::kConsumers, wait, patient));
  ASSERT_TRUE(queue->Await(Side::kConsumers, queue->BeginWait(), waiter));
  Enqueue(*queue, "a");
  EXPECT_TRUE(waiter->told.is_open());
}

// ---------------------------------------------------------------- close

TEST(BoundedQueueTest, AClosedOneTakesNothingMoreAndIsDrained) {
  const auto queue = MakeQueue(4);
  Enqueue(*queue, "a");
  EXPECT_FALSE(queue->closed());
  queue->Close(false);
  EXPECT_TRUE(queue->closed());
  EXPECT_EQ(Enqueue(*queue, "b"), Status::kCancelled);
  EXPECT_EQ(Dequeue(*queue), Got({"a"}));
  EXPECT_EQ(Dequeue(*queue), Ended(Status::kOutOfRange));
}

TEST(BoundedQueueTest, CloseEndsAllWhoWaitForAnItem) {
  const auto queue = MakeQueue(1);
  Blocked consumers;
  for (int i = 0; i < 4; ++i) {
    consumers.Start([&] { EXPECT_EQ(Dequeue(*queue), Ended(Status::kOutOfRange)); });
  }
  consumers.AllArrive();
  queue->Close(false);
  consumers.Join();
}

TEST(BoundedQueueTest, CloseLetsTheWaitingEnqueuesIn) {
  const auto queue = MakeQueue(1);
  Enqueue(*queue, "a");
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginEnqueue(wait));
  queue->Close(false);
  BoundedQueue::Wait late = queue->BeginWait();
  EXPECT_FALSE(queue->BeginEnqueue(late));
  EXPECT_EQ(Dequeue(*queue), Got({"a"}));
  EXPECT_EQ(TryDequeue(*queue), Ended(Status::kDeadlineExceeded)) << "one is yet to come";
  QueueItem item("b", 1);
  std::size_t enqueued = 0;
  EXPECT_EQ(queue->ContinueEnqueue(wait, &item, 1, Deadline::Passed(), enqueued), Status::kOk);
  queue->EndEnqueue();
  EXPECT_EQ(Dequeue(*queue), Got({"b"}));
  EXPECT_EQ(Dequeue(*queue), Ended(Status::kOutOfRange));
}

TEST(BoundedQueueTest, TheEndComesWhenTheLastWaitingEnqueueGivesUp) {
  const auto queue = MakeQueue(1);
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginEnqueue(wait));
  queue->Close(false);
  Gate ended;
  std::thread consumer([&] {
    EXPECT_EQ(Dequeue(*queue), Ended(Status::kOutOfRange));
    ended.Open();
  });
  EXPECT_FALSE(ended.OpensWrongly());
  queue->EndEnqueue();
  consumer.join();
}

TEST(BoundedQueueTest, CloseCancelsTheWaitingEnqueuesIfAsked) {
  const auto queue = MakeQueue(1);
  Enqueue(*queue, "a");
  Blocked producers;
  for (int i = 0; i < 4; ++i) {
    producers.Start([&] { EXPECT_EQ(Enqueue(*queue, "b"), Status::kCancelled); });
  }
  producers.AllArrive();
  queue->Close(true);
  producers.Join();
  EXPECT_EQ(Dequeue(*queue), Got({"a"}));
  EXPECT_EQ(Dequeue(*queue), Ended(Status::kOutOfRange));
}

TEST(BoundedQueueTest, CancelledEnqueuesDoNotHoldUpTheEnd) {
  const auto queue = MakeQueue(1);
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginEnqueue(wait));
  queue->Close(false);
  queue->Close(true);
  EXPECT_EQ(Dequeue(*queue), Ended(Status::kOutOfRange));  // although EndEnqueue was not called yet
  queue->EndEnqueue();
}

TEST(BoundedQueueTest, ASecondCloseMayCancelWhatTheFirstLetIn) {
  const auto queue = MakeQueue(1);
  Enqueue(*queue, "a");
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginEnqueue(wait));
  queue->Close(false);
  queue->Close(true);
  QueueItem item("b", 1);
  std::size_t enqueued = 0;
  EXPECT_EQ(queue->ContinueEnqueue(wait, &item, 1, Deadline::Never(), enqueued),
            Status::kCancelled);
  queue->EndEnqueue();
}

// ---------------------------------------------------------------- stop

TEST(BoundedQueueTest, AStopReleasesSixteenProducersAndSixteenConsumers) {
  const auto coordinator = Coordinator::Create({});
  const auto full = MakeQueue(1, coordinator);
  const auto empty = MakeQueue(1, coordinator);
  Enqueue(*full, "a");
  Blocked threads;
  for (int i = 0; i < 16; ++i) {
    threads.Start([&] { EXPECT_EQ(Enqueue(*full, "b"), Status::kCancelled); });
    threads.Start([&] { EXPECT_EQ(Dequeue(*empty), Ended(Status::kCancelled)); });
  }
  threads.AllArrive();
  coordinator->RequestStop({});
  threads.Join();
}

TEST(BoundedQueueTest, AfterAStopNothingGoesInAndWhatIsThereComesOut) {
  const auto coordinator = Coordinator::Create({});
  const auto queue = MakeQueue(4, coordinator);
  Enqueue(*queue, "a");
  coordinator->RequestStop({});
  EXPECT_EQ(Enqueue(*queue, "b"), Status::kCancelled);
  EXPECT_EQ(Dequeue(*queue), Got({"a"}));
  EXPECT_EQ(Dequeue(*queue), Ended(Status::kCancelled));
}

TEST(BoundedQueueTest, AStopThatIsClearedAtOnceEndsTheWaitsThatHadBegun) {
  const auto coordinator = Coordinator::Create({});
  const auto queue = MakeQueue(1, coordinator);
  const BoundedQueue::Wait before = queue->BeginWait();
  coordinator->RequestStop({});
  coordinator->ClearStop();
  QueueItem item;
  std::size_t dequeued = 0;
  EXPECT_EQ(queue->ContinueDequeue(before, &item, 1, Deadline::Never(), dequeued),
            Status::kCancelled);
  EXPECT_EQ(TryDequeue(*queue), Ended(Status::kDeadlineExceeded)) << "a wait of today goes on";
  EXPECT_EQ(Enqueue(*queue, "a"), Status::kOk);
}

TEST(BoundedQueueTest, OutlivesItsCoordinatorsOtherOwnersAndTheReverse) {
  auto coordinator = Coordinator::Create({});
  auto queue = MakeQueue(1, coordinator);
  const std::weak_ptr<Coordinator> kept = coordinator;
  coordinator.reset();
  ASSERT_FALSE(kept.expired());
  const auto again = kept.lock();
  queue.reset();
  again->RequestStop({});  // must not call the queue, which is destroyed
}

// ---------------------------------------------------------------- waiters that do not block

TEST(QueueWaiterTest, IsToldOfAnItemAndThenNoMore) {
  const auto queue = MakeQueue(4);
  const auto waiter = std::make_shared<GateWaiter>();
  ASSERT_TRUE(queue->Await(Side::kConsumers, queue->BeginWait(), waiter));
  Enqueue(*queue, "a");
  EXPECT_TRUE(waiter->told.is_open());
  EXPECT_FALSE(queue->Await(Side::kConsumers, queue->BeginWait(), waiter)) << "there is one";
}

// All of them are notified, since the thread of any one may be busy for long.
TEST(QueueWaiterTest, AnItemIsToldToAllWhoCannotBlock) {
  const auto queue = MakeQueue(4);
  const auto first = std::make_shared<GateWaiter>();
  const auto second = std::make_shared<GateWaiter>();
  queue->Await(Side::kConsumers, queue->BeginWait(), first);
  queue->Await(Side::kConsumers, queue->BeginWait(), second);
  Enqueue(*queue, "a");
  EXPECT_TRUE(first->told.is_open());
  EXPECT_TRUE(second->told.is_open());
}

TEST(QueueWaiterTest, WhoIsToldAndTakesNothingKeepsItFromNobody) {
  const auto queue = MakeQueue(4);
  const auto busy = std::make_shared<GateWaiter>();
  Blocked consumer;
  consumer.Start([&] { EXPECT_EQ(Dequeue(*queue), Got({"a"})); });
  consumer.AllArrive();
  queue->Await(Side::kConsumers, queue->BeginWait(), busy);
  Enqueue(*queue, "a");
  consumer.Join();
  EXPECT_TRUE(busy->told.is_open());
}

TEST(QueueWaiterTest, WhoHasForgottenIsNotTold) {
  const auto queue = MakeQueue(4);
  const auto gone = std::make_shared<GateWaiter>();
  queue->Await(Side::kConsumers, queue->BeginWait(), gone);
  queue->Forget(Side::kConsumers, *gone);
  Enqueue(*queue, "a");
  EXPECT_FALSE(gone->told.is_open());
}

TEST(QueueWaiterTest, AProducerIsToldOfRoom) {
  const auto queue = MakeQueue(1);
  Enqueue(*queue, "a");
  const auto waiter = std::make_shared<GateWaiter>();
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginEnqueue(wait));
  ASSERT_TRUE(queue->Await(Side::kProducers, wait, waiter));
  Dequeue(*queue);
  EXPECT_TRUE(waiter->told.is_open());
  queue->EndEnqueue();
}

TEST(QueueWaiterTest, BothSidesAreToldOfAStopAndOfAClose) {
  const auto coordinator = Coordinator::Create({});
  for (const bool stop : {true, false}) {
    const auto queue = MakeQueue(1, coordinator);
    Enqueue(*queue, "a");
    const auto producer = std::make_shared<GateWaiter>();
    BoundedQueue::Wait wait = queue->BeginWait();
    ASSERT_TRUE(queue->BeginEnqueue(wait));
    ASSERT_TRUE(queue->Await(Side::kProducers, wait, producer));
    const auto empty = MakeQueue(1, coordinator);
    const auto consumer = std::make_shared<GateWaiter>();
    ASSERT_TRUE(empty->Await(Side::kConsumers, empty->BeginWait(), consumer));
    if (stop) {
      coordinator->RequestStop({});
      coordinator->ClearStop();
    } else {
      queue->Close(true);
      empty->Close(false);
    }
    EXPECT_TRUE(producer->told.is_open());
    EXPECT_TRUE(consumer->told.is_open());
    queue->EndEnqueue();
  }
}

TEST(QueueWaiterTest, WhatWasNotDeliveredGoesBackToTheFrontAndIsTold) {
  const auto queue = MakeQueue(3);
  for (const char* text : {"a", "b", "c"}) Enqueue(*queue, text);
  QueueItem items[2];
  std::size_t dequeued = 0;
  queue->Dequeue(items, 2, Deadline::Passed(), dequeued);
  Enqueue(*queue, "d");
  Enqueue(*queue, "e");
  EXPECT_TRUE(queue->Return(items, dequeued));
  EXPECT_EQ(queue->size(), 5u) << "for a moment more than its capacity";
  EXPECT_EQ(TryEnqueue(*queue, "f"), Status::kDeadlineExceeded);
  EXPECT_EQ(TryDequeue(*queue, 9), Got({"a", "b", "c", "d", "e"}));

  const auto waiter = std::make_shared<GateWaiter>();
  Enqueue(*queue, "g");
  queue->Dequeue(items, 1, Deadline::Passed(), dequeued);
  ASSERT_TRUE(queue->Await(Side::kConsumers, queue->BeginWait(), waiter));
  queue->Return(items, 1);
  EXPECT_TRUE(waiter->told.is_open());
}

// Threads that block get an item even if the thread of a notified waiter is busy.
TEST(QueueWaiterTest, IsToldBesideThreadsThatBlock) {
  const auto queue = MakeQueue(1'000);
  Blocked consumer;
  std::atomic<int> dequeued{0};
  consumer.Start([&] {
    while (Dequeue(*queue).status == Status::kOk) ++dequeued;
  });
  consumer.AllArrive();
  const auto waiter = std::make_shared<GateWaiter>();
  for (int i = 0; i < 1'000 && !waiter->told.is_open(); ++i) {
    if (!queue->Await(Side::kConsumers, queue->BeginWait(), waiter)) continue;
    Enqueue(*queue, "a");
    Enqueue(*queue, "b");
  }
  EXPECT_TRUE(waiter->told.is_open()) << "a thread that is always there must not take all";
  queue->Close(true);
  consumer.Join();
}

TEST(BoundedQueueTest, IsFoundByItsIdWhileItLives) {
  auto queue = MakeQueue(1);
  const std::uint64_t id = queue->id();
  EXPECT_EQ(Registry<BoundedQueue>::Get().Find(id), queue);
  queue.reset();
  EXPECT_EQ(Registry<BoundedQueue>::Get().Find(id), nullptr);
}

}  // namespace
}  // namespace allstop::core
