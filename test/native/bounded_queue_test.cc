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

Status Push(BoundedQueue& queue, const std::string& text, const Deadline& deadline) {
  QueueItem item(text.data(), text.size());
  std::size_t pushed = 0;
  return queue.Push(&item, 1, deadline, pushed);
}
Status Push(BoundedQueue& queue, const std::string& text) {
  return Push(queue, text, Deadline::Never());
}
Status TryPush(BoundedQueue& queue, const std::string& text) {
  return Push(queue, text, Deadline::Passed());
}

std::string Text(const QueueItem& item) {
  return std::string(reinterpret_cast<const char*>(item.data()), item.size());
}

struct Popped {
  Status status = Status::kOk;
  std::vector<std::string> texts;
  bool operator==(const Popped& other) const {
    return status == other.status && texts == other.texts;
  }
};

Popped Pop(BoundedQueue& queue, const Deadline& deadline, std::size_t max = 1) {
  std::vector<QueueItem> items(max);
  std::size_t count = 0;
  Popped popped;
  popped.status = queue.Pop(items.data(), max, deadline, count);
  for (std::size_t i = 0; i < count; ++i) popped.texts.push_back(Text(items[i]));
  return popped;
}
Popped Pop(BoundedQueue& queue) { return Pop(queue, Deadline::Never()); }
Popped TryPop(BoundedQueue& queue, std::size_t max = 1) {
  return Pop(queue, Deadline::Passed(), max);
}

Popped Got(std::vector<std::string> texts) { return {Status::kOk, std::move(texts)}; }
Popped Ended(Status status) { return {status, {}}; }

// Opens a gate when it is told.
class GateWaiter final : public QueueWaiter {
 public:
  void OnProgress() override { told.Open(); }
  Gate told;
};

// Threads that are in a wait of the queue, or so near to it that it cannot matter:
// each says so just before. What they wait for must come out the same either way.
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
  for (const std::size_t size : {0u, 1u, 48u, 49u, 100'000u}) {
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
  EXPECT_EQ(TryPush(*queue, "a"), Status::kOk);
  EXPECT_EQ(TryPush(*queue, "b"), Status::kOk);
  EXPECT_EQ(TryPush(*queue, "c"), Status::kDeadlineExceeded);
  EXPECT_EQ(queue->size(), 2u);
  EXPECT_EQ(TryPop(*queue), Got({"a"}));
  EXPECT_EQ(TryPush(*queue, "c"), Status::kOk);
  EXPECT_EQ(TryPop(*queue, 10), Got({"b", "c"}));
  EXPECT_EQ(TryPop(*queue), Ended(Status::kDeadlineExceeded));
}

TEST(BoundedQueueTest, KeepsTheOrderWhileItGrowsAndGoesRound) {
  const auto queue = MakeQueue(10'000);
  int pushed = 0;
  int popped = 0;
  while (popped < 9'000) {
    for (int i = 0; i < 3 && pushed < 9'000; ++i) TryPush(*queue, std::to_string(pushed++));
    for (int i = 0; i < 1 + (pushed == 9'000); ++i) {
      const Popped one = TryPop(*queue);
      if (one.status != Status::kOk) break;
      ASSERT_EQ(one, Got({std::to_string(popped++)}));
    }
  }
}

TEST(BoundedQueueTest, ABatchGoesInAsThereIsRoom) {
  const auto queue = MakeQueue(2);
  std::vector<QueueItem> items;
  for (const char* text : {"a", "b", "c"}) items.emplace_back(text, 1);
  std::size_t pushed = 0;
  EXPECT_EQ(queue->Push(items.data(), 3, Deadline::Passed(), pushed), Status::kDeadlineExceeded);
  EXPECT_EQ(pushed, 2u);
  EXPECT_EQ(Text(items[2]), "c") << "what was not pushed stays the caller's";
  std::thread consumer([&] { EXPECT_EQ(Pop(*queue), Got({"a"})); });
  EXPECT_EQ(queue->Push(&items[2], 1, Deadline::Never(), pushed), Status::kOk);
  consumer.join();
  EXPECT_EQ(TryPop(*queue, 2), Got({"b", "c"}));
}

TEST(BoundedQueueTest, HoldsAProducerUpUntilThereIsRoom) {
  const auto queue = MakeQueue(1);
  Push(*queue, "a");
  Gate pushed;
  std::thread producer([&] {
    EXPECT_EQ(Push(*queue, "b"), Status::kOk);
    pushed.Open();
  });
  EXPECT_FALSE(pushed.OpensWrongly());
  EXPECT_EQ(Pop(*queue), Got({"a"}));
  producer.join();
  EXPECT_EQ(Pop(*queue), Got({"b"}));
}

TEST(BoundedQueueTest, HoldsAConsumerUpUntilThereIsAnItem) {
  const auto queue = MakeQueue(1);
  Gate popped;
  std::thread consumer([&] {
    EXPECT_EQ(Pop(*queue), Got({"a"}));
    popped.Open();
  });
  EXPECT_FALSE(popped.OpensWrongly());
  Push(*queue, "a");
  consumer.join();
}

TEST(BoundedQueueTest, WaitsNoLongerThanTheDeadline) {
  const auto queue = MakeQueue(1);
  EXPECT_EQ(Pop(*queue, Deadline::After(5)), Ended(Status::kDeadlineExceeded));
  Push(*queue, "a");
  EXPECT_EQ(Push(*queue, "b", Deadline::After(5)), Status::kDeadlineExceeded);
  EXPECT_EQ(queue->size(), 1u);
}

// ---------------------------------------------------------------- close

TEST(BoundedQueueTest, AClosedOneTakesNothingMoreAndIsDrained) {
  const auto queue = MakeQueue(4);
  Push(*queue, "a");
  EXPECT_FALSE(queue->closed());
  queue->Close(false);
  EXPECT_TRUE(queue->closed());
  EXPECT_EQ(Push(*queue, "b"), Status::kCancelled);
  EXPECT_EQ(Pop(*queue), Got({"a"}));
  EXPECT_EQ(Pop(*queue), Ended(Status::kOutOfRange));
}

TEST(BoundedQueueTest, CloseEndsAllWhoWaitForAnItem) {
  const auto queue = MakeQueue(1);
  Blocked consumers;
  for (int i = 0; i < 4; ++i) {
    consumers.Start([&] { EXPECT_EQ(Pop(*queue), Ended(Status::kOutOfRange)); });
  }
  consumers.AllArrive();
  queue->Close(false);
  consumers.Join();
}

TEST(BoundedQueueTest, CloseLetsTheWaitingPushesIn) {
  const auto queue = MakeQueue(1);
  Push(*queue, "a");
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginPush(wait));
  queue->Close(false);
  BoundedQueue::Wait late = queue->BeginWait();
  EXPECT_FALSE(queue->BeginPush(late));
  EXPECT_EQ(Pop(*queue), Got({"a"}));
  EXPECT_EQ(TryPop(*queue), Ended(Status::kDeadlineExceeded)) << "one is yet to come";
  QueueItem item("b", 1);
  std::size_t pushed = 0;
  EXPECT_EQ(queue->ContinuePush(wait, &item, 1, Deadline::Passed(), pushed), Status::kOk);
  queue->EndPush();
  EXPECT_EQ(Pop(*queue), Got({"b"}));
  EXPECT_EQ(Pop(*queue), Ended(Status::kOutOfRange));
}

TEST(BoundedQueueTest, TheEndComesWhenTheLastWaitingPushGivesUp) {
  const auto queue = MakeQueue(1);
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginPush(wait));
  queue->Close(false);
  Gate ended;
  std::thread consumer([&] {
    EXPECT_EQ(Pop(*queue), Ended(Status::kOutOfRange));
    ended.Open();
  });
  EXPECT_FALSE(ended.OpensWrongly());
  queue->EndPush();
  consumer.join();
}

TEST(BoundedQueueTest, CloseCancelsTheWaitingPushesIfAsked) {
  const auto queue = MakeQueue(1);
  Push(*queue, "a");
  Blocked producers;
  for (int i = 0; i < 4; ++i) {
    producers.Start([&] { EXPECT_EQ(Push(*queue, "b"), Status::kCancelled); });
  }
  producers.AllArrive();
  queue->Close(true);
  producers.Join();
  EXPECT_EQ(Pop(*queue), Got({"a"}));
  EXPECT_EQ(Pop(*queue), Ended(Status::kOutOfRange));
}

TEST(BoundedQueueTest, ASecondCloseMayCancelWhatTheFirstLetIn) {
  const auto queue = MakeQueue(1);
  Push(*queue, "a");
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginPush(wait));
  queue->Close(false);
  queue->Close(true);
  QueueItem item("b", 1);
  std::size_t pushed = 0;
  EXPECT_EQ(queue->ContinuePush(wait, &item, 1, Deadline::Never(), pushed), Status::kCancelled);
  queue->EndPush();
}

// ---------------------------------------------------------------- stop

TEST(BoundedQueueTest, AStopReleasesSixteenProducersAndSixteenConsumers) {
  const auto coordinator = Coordinator::Create({});
  const auto full = MakeQueue(1, coordinator);
  const auto empty = MakeQueue(1, coordinator);
  Push(*full, "a");
  Blocked threads;
  for (int i = 0; i < 16; ++i) {
    threads.Start([&] { EXPECT_EQ(Push(*full, "b"), Status::kCancelled); });
    threads.Start([&] { EXPECT_EQ(Pop(*empty), Ended(Status::kCancelled)); });
  }
  threads.AllArrive();
  coordinator->RequestStop({});
  threads.Join();
}

TEST(BoundedQueueTest, AfterAStopNothingGoesInAndWhatIsThereComesOut) {
  const auto coordinator = Coordinator::Create({});
  const auto queue = MakeQueue(4, coordinator);
  Push(*queue, "a");
  coordinator->RequestStop({});
  EXPECT_EQ(Push(*queue, "b"), Status::kCancelled);
  EXPECT_EQ(Pop(*queue), Got({"a"}));
  EXPECT_EQ(Pop(*queue), Ended(Status::kCancelled));
}

TEST(BoundedQueueTest, AStopThatIsClearedAtOnceEndsTheWaitsThatHadBegun) {
  const auto coordinator = Coordinator::Create({});
  const auto queue = MakeQueue(1, coordinator);
  const BoundedQueue::Wait before = queue->BeginWait();
  coordinator->RequestStop({});
  coordinator->ClearStop();
  QueueItem item;
  std::size_t popped = 0;
  EXPECT_EQ(queue->ContinuePop(before, &item, 1, Deadline::Never(), popped), Status::kCancelled);
  EXPECT_EQ(TryPop(*queue), Ended(Status::kDeadlineExceeded)) << "a wait of today goes on";
  EXPECT_EQ(Push(*queue, "a"), Status::kOk);
}

TEST(BoundedQueueTest, OutlivesItsCoordinatorsOtherOwnersAndTheReverse) {
  auto coordinator = Coordinator::Create({});
  auto queue = MakeQueue(1, coordinator);
  const std::weak_ptr<Coordinator> kept = coordinator;
  coordinator.reset();
  ASSERT_FALSE(kept.expired());
  const auto again = kept.lock();
  queue.reset();
  again->RequestStop({});  // the queue is gone from its observers
}

// ---------------------------------------------------------------- waiters that do not block

TEST(QueueWaiterTest, IsToldOfAnItemAndThenNoMore) {
  const auto queue = MakeQueue(4);
  const auto waiter = std::make_shared<GateWaiter>();
  ASSERT_TRUE(queue->Await(Side::kConsumers, queue->BeginWait(), waiter));
  Push(*queue, "a");
  EXPECT_TRUE(waiter->told.is_open());
  EXPECT_FALSE(queue->Await(Side::kConsumers, queue->BeginWait(), waiter)) << "there is one";
}

TEST(QueueWaiterTest, OneItemIsToldToOneWaiter) {
  const auto queue = MakeQueue(4);
  const auto first = std::make_shared<GateWaiter>();
  const auto second = std::make_shared<GateWaiter>();
  queue->Await(Side::kConsumers, queue->BeginWait(), first);
  queue->Await(Side::kConsumers, queue->BeginWait(), second);
  Push(*queue, "a");
  EXPECT_TRUE(first->told.is_open());
  EXPECT_FALSE(second->told.is_open());
  Push(*queue, "b");
  EXPECT_TRUE(second->told.is_open());
}

TEST(QueueWaiterTest, WhoForgetsWhatItWasToldOfPassesItOn) {
  const auto queue = MakeQueue(4);
  const auto dies = std::make_shared<GateWaiter>();
  const auto lives = std::make_shared<GateWaiter>();
  queue->Await(Side::kConsumers, queue->BeginWait(), dies);
  queue->Await(Side::kConsumers, queue->BeginWait(), lives);
  Push(*queue, "a");
  queue->Forget(Side::kConsumers, *dies);
  EXPECT_TRUE(lives->told.is_open());
}

TEST(QueueWaiterTest, PassesItOnToAThreadThatBlocks) {
  const auto queue = MakeQueue(4);
  const auto dies = std::make_shared<GateWaiter>();
  queue->Await(Side::kConsumers, queue->BeginWait(), dies);
  Push(*queue, "a");
  Blocked consumer;
  consumer.Start([&] { EXPECT_EQ(Pop(*queue), Got({"a"})); });
  consumer.AllArrive();
  queue->Forget(Side::kConsumers, *dies);
  consumer.Join();
}

TEST(QueueWaiterTest, WhoHasForgottenIsNotTold) {
  const auto queue = MakeQueue(4);
  const auto gone = std::make_shared<GateWaiter>();
  queue->Await(Side::kConsumers, queue->BeginWait(), gone);
  queue->Forget(Side::kConsumers, *gone);
  Push(*queue, "a");
  EXPECT_FALSE(gone->told.is_open());
}

TEST(QueueWaiterTest, AProducerIsToldOfRoom) {
  const auto queue = MakeQueue(1);
  Push(*queue, "a");
  const auto waiter = std::make_shared<GateWaiter>();
  BoundedQueue::Wait wait = queue->BeginWait();
  ASSERT_TRUE(queue->BeginPush(wait));
  ASSERT_TRUE(queue->Await(Side::kProducers, wait, waiter));
  Pop(*queue);
  EXPECT_TRUE(waiter->told.is_open());
  queue->EndPush();
}

TEST(QueueWaiterTest, BothSidesAreToldOfAStopAndOfAClose) {
  const auto coordinator = Coordinator::Create({});
  for (const bool stop : {true, false}) {
    const auto queue = MakeQueue(1, coordinator);
    Push(*queue, "a");
    const auto producer = std::make_shared<GateWaiter>();
    BoundedQueue::Wait wait = queue->BeginWait();
    ASSERT_TRUE(queue->BeginPush(wait));
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
    queue->EndPush();
  }
}

TEST(QueueWaiterTest, WhatWasNotDeliveredGoesBackToTheFrontAndIsTold) {
  const auto queue = MakeQueue(3);
  for (const char* text : {"a", "b", "c"}) Push(*queue, text);
  QueueItem items[2];
  std::size_t popped = 0;
  queue->Pop(items, 2, Deadline::Passed(), popped);
  Push(*queue, "d");
  Push(*queue, "e");
  EXPECT_TRUE(queue->Return(items, popped));
  EXPECT_EQ(queue->size(), 5u) << "for a moment more than its capacity";
  EXPECT_EQ(TryPush(*queue, "f"), Status::kDeadlineExceeded);
  EXPECT_EQ(TryPop(*queue, 9), Got({"a", "b", "c", "d", "e"}));

  const auto waiter = std::make_shared<GateWaiter>();
  Push(*queue, "g");
  queue->Pop(items, 1, Deadline::Passed(), popped);
  ASSERT_TRUE(queue->Await(Side::kConsumers, queue->BeginWait(), waiter));
  queue->Return(items, 1);
  EXPECT_TRUE(waiter->told.is_open());
}

TEST(QueueWaiterTest, TakesTurnsWithThreadsThatBlock) {
  const auto queue = MakeQueue(1'000);
  Blocked consumer;
  std::atomic<int> popped{0};
  consumer.Start([&] {
    while (Pop(*queue).status == Status::kOk) ++popped;
  });
  consumer.AllArrive();
  const auto waiter = std::make_shared<GateWaiter>();
  for (int i = 0; i < 1'000 && !waiter->told.is_open(); ++i) {
    if (!queue->Await(Side::kConsumers, queue->BeginWait(), waiter)) continue;
    Push(*queue, "a");
    Push(*queue, "b");
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
