// Many producers and consumers, stops, closes, and consumers that die: each item is delivered
// once or is still in the queue, and the items of one producer come out in order.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/bounded_queue.h"
#include "seed.h"

namespace allstop::core {
namespace {

struct Number {
  std::uint32_t producer;
  std::uint32_t sequence;
};

QueueItem ToItem(Number number) { return QueueItem(&number, sizeof(number)); }
Number ToNumber(const QueueItem& item) {
  Number number;
  std::memcpy(&number, item.data(), sizeof(number));
  return number;
}

constexpr std::uint32_t kProducers = 4;
constexpr std::uint32_t kConsumers = 4;

// The items that each consumer has dequeued, in order.
using Received = std::vector<std::vector<Number>>;

void ExpectEachOnce(const Received& received, const std::vector<std::uint32_t>& enqueued) {
  std::vector<std::vector<int>> times(enqueued.size());
  for (std::size_t i = 0; i < enqueued.size(); ++i) times[i].resize(enqueued[i]);
  for (const auto& each : received) {
    for (const Number number : each) {
      ASSERT_LT(number.sequence, enqueued[number.producer]);
      ++times[number.producer][number.sequence];
    }
  }
  for (const auto& each : times) {
    ASSERT_TRUE(std::all_of(each.begin(), each.end(), [](int count) { return count == 1; }));
  }
}

void ExpectOrder(const Received& received) {
  for (const auto& each : received) {
    std::map<std::uint32_t, std::uint32_t> next;
    for (const Number number : each) {
      ASSERT_GE(number.sequence, next[number.producer]);
      next[number.producer] = number.sequence + 1;
    }
  }
}

TEST(BoundedQueueStressTest, EveryItemOnceAndInOrder) {
  std::mt19937 random(test::Seed());
  for (int round = 0; round < 20; ++round) {
    const auto queue = BoundedQueue::Create({"", 1 + random() % 64, {}, nullptr});
    const std::uint32_t count = 2'000;
    std::vector<std::thread> producers;
    for (std::uint32_t id = 0; id < kProducers; ++id) {
      producers.emplace_back([&, id, seed = random()] {
        std::mt19937 own(seed);
        for (std::uint32_t sent = 0; sent < count;) {
          std::vector<QueueItem> batch;
          for (std::uint32_t i = own() % 5; batch.size() <= i && sent + batch.size() < count;) {
            batch.push_back(ToItem({id, sent + static_cast<std::uint32_t>(batch.size())}));
          }
          std::size_t enqueued = 0;
          const auto deadline = own() % 4 == 0 ? Deadline::Passed() : Deadline::After(own() % 3);
          queue->Enqueue(batch.data(), batch.size(), deadline, enqueued);
          sent += static_cast<std::uint32_t>(enqueued);
        }
      });
    }
    Received received(kConsumers);
    std::vector<std::thread> consumers;
    for (std::uint32_t id = 0; id < kConsumers; ++id) {
      consumers.emplace_back([&, id, seed = random()] {
        std::mt19937 own(seed);
        QueueItem items[7];
        while (true) {
          std::size_t dequeued = 0;
          const std::size_t max = 1 + own() % 7;
          const std::size_t least =
              1 + own() % std::min<std::size_t>(max, queue->options().capacity);
          const Status status =
              queue->Dequeue(items, max, Deadline::After(own() % 3), dequeued, least);
          if (status == Status::kOutOfRange) return;
          for (std::size_t i = 0; i < dequeued; ++i) received[id].push_back(ToNumber(items[i]));
        }
      });
    }
    for (auto& thread : producers) thread.join();
    queue->Close(false);
    for (auto& thread : consumers) thread.join();
    ExpectEachOnce(received, std::vector<std::uint32_t>(kProducers, count));
    ExpectOrder(received);
  }
}

// No deadline comes to the rescue of a thread whose wake-up was lost: the queue is small, and the
// test would hang.
TEST(BoundedQueueStressTest, ConsumersThatWaitForDifferentNumbersOfItemsLoseNoWakeUp) {
  std::mt19937 random(test::Seed());
  for (int round = 0; round < 30; ++round) {
    const std::size_t capacity = kConsumers + random() % 3;
    const auto queue = BoundedQueue::Create({"", capacity, {}, nullptr});
    const std::uint32_t count = 1'000;
    std::vector<std::thread> producers;
    for (std::uint32_t id = 0; id < kProducers; ++id) {
      producers.emplace_back([&, id] {
        for (std::uint32_t sent = 0; sent < count; ++sent) {
          QueueItem item = ToItem({id, sent});
          std::size_t enqueued = 0;
          queue->Enqueue(&item, 1, Deadline::Never(), enqueued);
        }
      });
    }
    Received received(kConsumers);
    std::vector<std::thread> consumers;
    for (std::uint32_t id = 0; id < kConsumers; ++id) {
      consumers.emplace_back([&, least = 1 + (round % 2 == 0 ? id : random() % kConsumers), id] {
        std::vector<QueueItem> items(kConsumers);
        for (bool ended = false; !ended;) {
          std::size_t dequeued = 0;
          const Status status =
              queue->Dequeue(items.data(), items.size(), Deadline::Never(), dequeued, least);
          ended = dequeued < least;
          EXPECT_TRUE(!ended || queue->closed());
          EXPECT_EQ(status, dequeued > 0 ? Status::kOk : Status::kOutOfRange);
          for (std::size_t i = 0; i < dequeued; ++i) received[id].push_back(ToNumber(items[i]));
        }
      });
    }
    for (auto& thread : producers) thread.join();
    queue->Close(false);
    for (auto& thread : consumers) thread.join();
    ExpectEachOnce(received, std::vector<std::uint32_t>(kProducers, count));
    ExpectOrder(received);
  }
}

// Consumers, among them listed waiters, die after they have dequeued items, and return these
// items. Then a stop, or a close that cancels, comes at a random time.
TEST(BoundedQueueStressTest, NothingIsLostWhenConsumersDieAndStopsCome) {
  class Waiter final : public QueueWaiter {
   public:
    void OnProgress() override { told = true; }
    std::atomic<bool> told{false};
  };
  std::mt19937 random(test::Seed());
  for (int round = 0; round < 40; ++round) {
    const auto coordinator = Coordinator::Create({});
    const auto queue = BoundedQueue::Create({"", 1 + random() % 16, {}, coordinator});
    // The item with this number ends the round, so that a busy machine takes no longer rounds.
    const std::uint64_t last = 1 + random() % 3'000;
    const bool is_stop = random() % 2 == 0;
    std::atomic<std::uint64_t> enqueued_by_all{0};
    std::vector<std::uint32_t> sent(kProducers);
    Received received(kConsumers + 1);
    std::vector<std::thread> threads;
    for (std::uint32_t id = 0; id < kProducers; ++id) {
      threads.emplace_back([&, id] {
        while (true) {
          QueueItem item = ToItem({id, sent[id]});
          std::size_t enqueued = 0;
          if (queue->Enqueue(&item, 1, Deadline::Never(), enqueued) != Status::kOk) return;
          ++sent[id];
          if (++enqueued_by_all != last) continue;
          if (is_stop) {
            coordinator->RequestStop({});
          } else {
            queue->Close(true);
          }
        }
      });
    }
    for (std::uint32_t id = 0; id < kConsumers; ++id) {
      threads.emplace_back([&, id, seed = random()] {
        std::mt19937 own(seed);
        const auto waiter = std::make_shared<Waiter>();
        QueueItem items[4];
        while (true) {
          std::size_t dequeued = 0;
          Status status;
          if (own() % 2 == 0) {
            const std::size_t max = 1 + own() % 4;
            const std::size_t least =
                own() % 4 > 0 ? 1 : std::min<std::size_t>(max, queue->options().capacity);
            status = queue->Dequeue(items, max, Deadline::Never(), dequeued, least);
          } else {
            status = queue->Dequeue(items, 1, Deadline::Passed(), dequeued);
            if (status == Status::kDeadlineExceeded) {
              queue->Await(BoundedQueue::Side::kConsumers, queue->BeginWait(), waiter);
              std::this_thread::yield();
              queue->Forget(BoundedQueue::Side::kConsumers, *waiter);
              continue;
            }
          }
          if (status != Status::kOk) return;
          if (own() % 8 == 0) {
            ASSERT_TRUE(queue->Return(items, dequeued));
            continue;
          }
          for (std::size_t i = 0; i < dequeued; ++i) received[id].push_back(ToNumber(items[i]));
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (QueueItem left;;) {
      std::size_t dequeued = 0;
      if (queue->Dequeue(&left, 1, Deadline::Passed(), dequeued) != Status::kOk) break;
      received[kConsumers].push_back(ToNumber(left));
    }
    ExpectEachOnce(received, sent);
  }
}

}  // namespace
}  // namespace allstop::core
