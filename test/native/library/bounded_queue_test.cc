// allstop::BoundedQueue in a C++ program, and the C functions of allstop_queue.h under it.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <limits>
#include <string>
#include <vector>

namespace allstop {
namespace {

constexpr Milliseconds kNow{0};

std::vector<std::string> Texts(const std::vector<Item>& items) {
  std::vector<std::string> texts;
  for (const Item& item : items) texts.emplace_back(item.bytes());
  return texts;
}

TEST(LibraryQueueTest, AnEmptyObjectRefusesEverything) {
  const BoundedQueue none;
  EXPECT_FALSE(none);
  Item item;
  std::vector<Item> items;
  EXPECT_EQ(none.Enqueue("bytes"), ALLSTOP_INVALID_HANDLE);
  EXPECT_EQ(none.Enqueue(Item()), ALLSTOP_INVALID_HANDLE);
  EXPECT_EQ(none.Dequeue(item), ALLSTOP_INVALID_HANDLE);
  EXPECT_EQ(none.DequeueMany(items, 2), ALLSTOP_INVALID_HANDLE);
  EXPECT_EQ(none.DequeueMany(items, 2, 1), ALLSTOP_INVALID_HANDLE);
  none.Close();
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.capacity(), 0u);
  EXPECT_FALSE(none.closed());
  EXPECT_EQ(none.name(), "");
}

TEST(LibraryQueueTest, TakesBytesOfAnyLengthInOrder) {
  const BoundedQueue queue(Coordinator::Create(), 8, "frames");
  const std::vector<std::string> texts = {"", "a", std::string(32, 'b'), std::string(33, 'c'),
                                          std::string(1'000'000, 'd')};
  for (const std::string& text : texts) ASSERT_EQ(queue.Enqueue(text), ALLSTOP_OK);
  EXPECT_EQ(queue.size(), 5u);
  EXPECT_EQ(queue.capacity(), 8u);
  EXPECT_EQ(queue.name(), "frames");
  Item first;
  EXPECT_EQ(queue.Dequeue(first), ALLSTOP_OK);
  EXPECT_EQ(first.bytes(), "");
  std::vector<Item> items;
  EXPECT_EQ(queue.DequeueMany(items, 100), ALLSTOP_OK);
  EXPECT_EQ(Texts(items), std::vector<std::string>(texts.begin() + 1, texts.end()));
}

TEST(LibraryQueueTest, TimesOutAndComesToItsEnd) {
  const BoundedQueue queue(Coordinator::Create(), 1);
  Item item;
  EXPECT_EQ(queue.Dequeue(item, kNow), ALLSTOP_DEADLINE_EXCEEDED);
  EXPECT_EQ(queue.Enqueue("a"), ALLSTOP_OK);
  EXPECT_EQ(queue.Enqueue("b", kNow), ALLSTOP_DEADLINE_EXCEEDED);
  queue.Close();
  EXPECT_TRUE(queue.closed());
  EXPECT_EQ(queue.Enqueue("b"), ALLSTOP_CANCELLED);
  EXPECT_EQ(queue.Dequeue(item), ALLSTOP_OK);
  EXPECT_EQ(queue.Dequeue(item), ALLSTOP_OUT_OF_RANGE);
  std::vector<Item> items;
  EXPECT_EQ(queue.DequeueMany(items, 3), ALLSTOP_OUT_OF_RANGE);
}

TEST(LibraryQueueTest, AStopOfItsCoordinatorReleasesThreadsThatItKnows) {
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue queue(coord, 1);
  const BoundedQueue empty(coord, 1);
  queue.Enqueue("a");
  std::vector<Thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(coord, "producer",
                         [queue] { EXPECT_EQ(queue.Enqueue("b"), ALLSTOP_CANCELLED); });
    threads.emplace_back(coord, "consumer", [empty] {
      Item item;
      EXPECT_EQ(empty.Dequeue(item), ALLSTOP_CANCELLED);
    });
  }
  coord.RequestStop();
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
}

TEST(LibraryQueueTest, PassesAdoptedBytesOnWithoutACopyAndReleasesThemOnce) {
  static int released;
  released = 0;
  static char bytes[64] = "adopted";
  const auto release = [](void* data, std::size_t size, void* context) {
    EXPECT_EQ(data, bytes);
    EXPECT_EQ(size, sizeof(bytes));
    ++*static_cast<int*>(context);
  };
  {
    const BoundedQueue queue(Coordinator::Create(), 1);
    EXPECT_EQ(queue.Enqueue(Item(bytes, sizeof(bytes), release, &released)), ALLSTOP_OK);
    Item kept(bytes, sizeof(bytes), release, &released);
    EXPECT_EQ(queue.Enqueue(std::move(kept), kNow), ALLSTOP_DEADLINE_EXCEEDED);
    EXPECT_EQ(kept.bytes().data(), bytes) << "what did not go in is still the caller's";
    Item item;
    EXPECT_EQ(queue.Dequeue(item), ALLSTOP_OK);
    EXPECT_EQ(item.bytes().data(), bytes);
    EXPECT_EQ(released, 0);
    queue.Enqueue(std::move(item));
  }
  EXPECT_EQ(released, 2) << "one was in the queue when it was freed, one was kept";
}

TEST(LibraryQueueTest, BatchesOfAnySizeGoInAndComeOut) {
  constexpr std::size_t kCount = 100;  // the library moves 32 items at a time (kBatch)
  const BoundedQueue queue(Coordinator::Create(), kCount - 1);
  std::vector<allstop_item> batch(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::string text = std::to_string(i) + std::string(i, '.');
    ASSERT_EQ(allstop_item_copy(queue.handle(), text.data(), text.size(), &batch[i]), ALLSTOP_OK);
  }
  std::size_t enqueued = 0;
  EXPECT_EQ(allstop_queue_enqueue_many(queue.handle(), batch.data(), kCount, 0, &enqueued),
            ALLSTOP_DEADLINE_EXCEEDED);
  EXPECT_EQ(enqueued, kCount - 1);
  EXPECT_EQ(batch[0].size, 0u);
  const Item last(batch[kCount - 1]);
  EXPECT_EQ(last.bytes().substr(0, 2), "99") << "still the caller's";
  std::vector<Item> items;
  EXPECT_EQ(queue.DequeueMany(items, 70), ALLSTOP_OK);
  EXPECT_EQ(items.size(), 70u);
  EXPECT_EQ(queue.DequeueMany(items, 70), ALLSTOP_OK);
  ASSERT_EQ(items.size(), kCount - 1);
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].bytes(), std::to_string(i) + std::string(i, '.'));
  }
}

TEST(LibraryQueueTest, RefusesToWaitForMoreThanAVectorHolds) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  const BoundedQueue queue(Coordinator::Create(), kMost);
  std::vector<Item> items;
  EXPECT_EQ(queue.DequeueMany(items, kMost, kMost / 4), ALLSTOP_RESOURCE_EXHAUSTED);
}

TEST(LibraryQueueTest, WaitsForAsManyAsAreWantedAtLeast) {
  constexpr std::size_t kCount = 100;
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue queue(coord, kCount);
  for (const std::size_t least : {std::size_t{2}, std::size_t{32}, std::size_t{33}, kCount}) {
    std::vector<Item> items;
    Thread consumer(coord, "consumer",
                    [&] { EXPECT_EQ(queue.DequeueMany(items, kCount, least), ALLSTOP_OK); });
    for (std::size_t i = 0; i < least; ++i) ASSERT_EQ(queue.Enqueue("a"), ALLSTOP_OK);
    EXPECT_EQ(coord.Join(), ALLSTOP_OK);
    EXPECT_EQ(items.size(), least);
  }
  for (const std::size_t least : {std::size_t{2}, kCount}) {
    std::vector<Item> items;
    EXPECT_EQ(queue.DequeueMany(items, kCount, least, kNow), ALLSTOP_DEADLINE_EXCEEDED);
    queue.Enqueue("a");
    EXPECT_EQ(queue.DequeueMany(items, kCount, least, kNow), ALLSTOP_OK);
    EXPECT_EQ(items.size(), 1u);
  }
  queue.Enqueue("a");
  queue.Close();
  std::vector<Item> items;
  EXPECT_EQ(queue.DequeueMany(items, kCount, kCount), ALLSTOP_OK);
  EXPECT_EQ(items.size(), 1u);
  EXPECT_EQ(queue.DequeueMany(items, kCount, kCount), ALLSTOP_OUT_OF_RANGE);
}

TEST(LibraryQueueTest, TakesTheOthersToo) {
  const BoundedQueue queue(Coordinator::Create(), 200);
  for (int i = 0; i < 150; ++i) queue.Enqueue("a");
  std::vector<Item> items;
  EXPECT_EQ(queue.DequeueMany(items, 120, 50), ALLSTOP_OK);
  EXPECT_EQ(items.size(), 120u);
  std::vector<allstop_item> batch(100);
  std::size_t count = 0;
  EXPECT_EQ(allstop_queue_dequeue_least(queue.handle(), batch.data(), 100, 30, 0, &count),
            ALLSTOP_OK);
  EXPECT_EQ(count, 30u);
  for (std::size_t i = 0; i < count; ++i) allstop_item_release(&batch[i]);
}

// Otherwise a vector that many batches are appended to moves all its items for each of them.
TEST(LibraryQueueTest, AppendsToAVectorThatGrowsAsVectorsDo) {
  constexpr std::size_t kBatches = 500;
  constexpr std::size_t kBatch = 32;
  const BoundedQueue queue(Coordinator::Create(), kBatch);
  for (const bool wants_least : {false, true}) {
    std::vector<Item> items;
    std::size_t moves = 0;
    for (std::size_t i = 0; i < kBatches; ++i) {
      for (std::size_t j = 0; j < kBatch; ++j) ASSERT_EQ(queue.Enqueue("a", kNow), ALLSTOP_OK);
      const std::size_t before = items.capacity();
      ASSERT_EQ(wants_least ? queue.DequeueMany(items, kBatch, kBatch, kNow)
                            : queue.DequeueMany(items, kBatch, kNow),
                ALLSTOP_OK);
      if (items.capacity() != before) ++moves;
    }
    EXPECT_EQ(items.size(), kBatches * kBatch);
    EXPECT_LT(moves, 20u);
  }
}

TEST(LibraryQueueTest, RefusesWhatItCannotUnderstandAndChangesNothing) {
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue none(coord, 0);
  EXPECT_FALSE(none);
  const BoundedQueue queue(coord, 2);
  allstop_item item = {};
  std::size_t count = 7;
  for (const double timeout : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(allstop_queue_enqueue_many(queue.handle(), &item, 1, timeout, &count),
              ALLSTOP_INVALID_ARGUMENT);
    EXPECT_EQ(allstop_queue_dequeue(queue.handle(), &item, timeout), ALLSTOP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(allstop_queue_dequeue_many(queue.handle(), &item, 0, 0, &count),
            ALLSTOP_INVALID_ARGUMENT);
  allstop_item three[3] = {};
  for (const std::size_t least : {0, 2, 3}) {  // above max, or above the capacity
    const std::size_t max = least == 3 ? 3 : 1;
    EXPECT_EQ(allstop_queue_dequeue_least(queue.handle(), three, max, least, 0, &count),
              ALLSTOP_INVALID_ARGUMENT);
    std::vector<Item> items;
    EXPECT_EQ(queue.DequeueMany(items, max, least, kNow), ALLSTOP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(allstop_queue_dequeue_least(queue.handle(), &item, 1, 1, -1, &count),
            ALLSTOP_INVALID_ARGUMENT);
  item.size = ALLSTOP_ITEM_IN_PLACE + 1;  // too long to be in place, and without a `release`
  EXPECT_EQ(allstop_queue_enqueue_many(queue.handle(), &item, 1, 0, &count),
            ALLSTOP_INVALID_ARGUMENT);
  if constexpr (sizeof(std::size_t) > 4) {
    item.size = std::size_t{1} << 32;  // longer than a Uint8Array of JavaScript
    item.release = [](void*, std::size_t, void*) { ADD_FAILURE() << "it was not taken"; };
    EXPECT_EQ(allstop_queue_enqueue_many(queue.handle(), &item, 1, 0, &count),
              ALLSTOP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(allstop_queue_close(queue.handle(), 2), ALLSTOP_INVALID_ARGUMENT);
  allstop_queue_info info = {};
  EXPECT_EQ(allstop_queue_read(queue.handle(), &info), ALLSTOP_INVALID_ARGUMENT);
  allstop_queue_options options = {};
  allstop_queue made = {};
  EXPECT_EQ(allstop_queue_create(queue.handle()->table, &options, &made), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(allstop_queue_create(queue.handle()->table, nullptr, &made), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_FALSE(queue.closed());
}

TEST(LibraryQueueTest, AnItemThatWasMovedFromIsEmpty) {
  int released = 0;
  const auto release = [](void*, std::size_t, void* count) { ++*static_cast<int*>(count); };
  char bytes[] = "first and second";
  Item kept(bytes, 5, release, &released);
  Item moved(bytes + 10, 6, release, &released);
  kept = std::move(moved);
  EXPECT_EQ(kept.bytes(), "second");
  EXPECT_EQ(moved.bytes(), "");  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(released, 1);
}

TEST(LibraryQueueTest, AnOlderPackageCreatesNoQueue) {
  allstop_table older = *allstop_library_table();
  older.size = offsetof(allstop_table, queue_create);
  allstop_queue_options options = {};
  options.size = sizeof(options);
  options.capacity = 1;
  allstop_queue made = {};
  EXPECT_EQ(allstop_queue_create(&older, &options, &made), ALLSTOP_UNAVAILABLE);
}

TEST(LibraryQueueTest, AnOlderPackageDoesNotWaitForSeveral) {
  const BoundedQueue queue(Coordinator::Create(), 1);
  allstop_table older = *allstop_library_table();
  older.size = offsetof(allstop_table, queue_dequeue_least);
  const allstop_queue handle = {&older, queue.handle()->state};
  queue.Enqueue("a");
  allstop_item item = {};
  std::size_t count = 7;
  EXPECT_EQ(allstop_queue_dequeue_least(&handle, &item, 1, 1, 0, &count), ALLSTOP_UNAVAILABLE);
  EXPECT_EQ(count, 0u);
}

TEST(LibraryQueueTest, LivesAsLongAsSomebodyHoldsItAndItsCoordinatorWithIt) {
  BoundedQueue queue;
  EXPECT_FALSE(queue);
  {
    const BoundedQueue made(Coordinator::Create(), 1);
    queue = made;
  }
  EXPECT_EQ(queue.Enqueue("a"), ALLSTOP_OK);
}

}  // namespace
}  // namespace allstop
