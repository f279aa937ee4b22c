// allstop_queue_enqueue_many with more items than the library converts at a time.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "abi/table.h"
#include "allstop/allstop_queue.h"
#include "requests.h"

namespace allstop {
namespace {

using test::kForever;

using core::BoundedQueue;

constexpr std::size_t kCount = 100;
constexpr std::size_t kCapacity = 4;

// A thread that enqueues kCount items at a queue of kCapacity, which is full before the last one.
class EnqueueManyTest : public testing::Test {
 protected:
  EnqueueManyTest() {
    for (std::size_t i = 0; i < kCount; ++i) {
      items_[i] = {};
      items_[i].size = 1;
      items_[i].in_place[0] = static_cast<unsigned char>(i);
    }
    producer_ = std::thread([this] {
      const allstop_queue handle = Handle();
      status_ = allstop_queue_enqueue_many(&handle, items_.data(), kCount, kForever, &enqueued_);
    });
  }
  ~EnqueueManyTest() override {
    if (producer_.joinable()) producer_.join();
  }

  allstop_queue Handle() const { return {&abi::Table(), abi::ToState(queue_.get())}; }

  // Returns when the call waits for room.
  void AwaitAFullQueue() const {
    while (queue_->size() < kCapacity || queue_->waiting(BoundedQueue::Side::kProducers) == 0) {
      std::this_thread::yield();
    }
  }

  allstop_status Dequeue(unsigned char& value) const {
    const allstop_queue handle = Handle();
    allstop_item item;
    const allstop_status status = allstop_queue_dequeue(&handle, &item, kForever);
    if (status == ALLSTOP_OK) value = item.in_place[0];
    return status;
  }

  const std::shared_ptr<core::Coordinator> coordinator_ = test::MakeCoordinator();
  const std::shared_ptr<BoundedQueue> queue_ =
      BoundedQueue::Create({"many", kCapacity, BoundedQueue::Codec::kBytes, coordinator_});
  std::vector<allstop_item> items_ = std::vector<allstop_item>(kCount);
  allstop_status status_ = ALLSTOP_INVALID_ARGUMENT;
  std::size_t enqueued_ = 0;
  std::thread producer_;
};

TEST_F(EnqueueManyTest, ACloseLetsAllOfThemInIfTheCallWaited) {
  AwaitAFullQueue();
  queue_->Close(/*cancel_pending=*/false);
  unsigned char value = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(Dequeue(value), ALLSTOP_OK) << "item " << i;
    EXPECT_EQ(value, i);
  }
  EXPECT_EQ(Dequeue(value), ALLSTOP_OUT_OF_RANGE);
  producer_.join();
  EXPECT_EQ(status_, ALLSTOP_OK);
  EXPECT_EQ(enqueued_, kCount);
}

TEST_F(EnqueueManyTest, ACloseThatCancelsLeavesTheOthersToTheCaller) {
  constexpr std::size_t kTaken = 36;  // more than the library converts at a time
  AwaitAFullQueue();
  unsigned char value = 0;
  for (std::size_t i = 0; i < kTaken; ++i) ASSERT_EQ(Dequeue(value), ALLSTOP_OK);
  AwaitAFullQueue();
  queue_->Close(/*cancel_pending=*/true);
  producer_.join();
  EXPECT_EQ(status_, ALLSTOP_CANCELLED);
  ASSERT_EQ(enqueued_, kTaken + kCapacity);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(items_[i].size, i < enqueued_ ? 0u : 1u);
    if (i < enqueued_) continue;
    EXPECT_EQ(items_[i].in_place[0], i);
  }
}

TEST_F(EnqueueManyTest, AStopThatIsClearedAtOnceEndsTheWaitOfAllOfThem) {
  AwaitAFullQueue();
  coordinator_->RequestStop(test::Plain());
  coordinator_->ClearStop();
  producer_.join();
  EXPECT_EQ(status_, ALLSTOP_CANCELLED);
  EXPECT_EQ(enqueued_, kCapacity);
}

}  // namespace
}  // namespace allstop
