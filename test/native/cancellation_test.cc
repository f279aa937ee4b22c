// Threads that pthread_cancel has been called for, in functions of the C interface.
#ifndef _WIN32
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "abi/table.h"
#include "allstop/allstop.h"
#include "allstop/allstop_queue.h"
#include "gate.h"
#include "requests.h"

namespace allstop {
namespace {

using test::kForever;

constexpr double kShortMs = 1;  // long enough for the call to block

using Body = std::function<allstop_status()>;

struct Cancelled {
  Body body;
  allstop_status status = ALLSTOP_INVALID_ARGUMENT;
  bool returned = false;
};

extern "C" void* RunCancelled(void* opaque) {
  auto& thread = *static_cast<Cancelled*>(opaque);
  pthread_cancel(pthread_self());  // takes effect at the next cancellation point
  thread.status = thread.body();
  thread.returned = true;
  pthread_testcancel();
  return nullptr;
}

// Calls `body` on a thread that has been cancelled, and expects that `body` returns and that the
// thread ends after that, at its next cancellation point. The process would be aborted if it
// ended inside the library, whose functions no exception leaves.
allstop_status OnACancelledThread(Body body) {
  Cancelled cancelled{std::move(body)};
  pthread_t thread;
  EXPECT_EQ(pthread_create(&thread, nullptr, RunCancelled, &cancelled), 0);
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_TRUE(cancelled.returned);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  return cancelled.status;
}

class CancellationTest : public testing::Test {
 protected:
  CancellationTest()
      : coord_{&abi::Table(), abi::ToState(coordinator_.get()),
               abi::Table().stop_word(abi::ToState(coordinator_.get()))},
        queue_handle_{&abi::Table(), abi::ToState(queue_.get())} {}

  allstop_status Enqueue(double timeout_ms) const {
    return allstop_queue_enqueue(&queue_handle_, "x", 1, timeout_ms);
  }
  allstop_status Dequeue(std::size_t least, double timeout_ms) const {
    allstop_item items[2];
    std::size_t dequeued = 0;
    return allstop_queue_dequeue_least(&queue_handle_, items, 2, least, timeout_ms, &dequeued);
  }

  const std::shared_ptr<core::Coordinator> coordinator_ = test::MakeCoordinator();
  const std::shared_ptr<core::BoundedQueue> queue_ =
      core::BoundedQueue::Create({"q", 2, core::BoundedQueue::Codec::kBytes, coordinator_});
  const allstop_coordinator coord_;
  const allstop_queue queue_handle_;
};

TEST_F(CancellationTest, EndsNoWaitForAStop) {
  EXPECT_EQ(OnACancelledThread([&] { return allstop_wait_for_stop(&coord_, kShortMs); }),
            ALLSTOP_DEADLINE_EXCEEDED);
  test::Gate begins;
  std::thread stops([&] {
    begins.Wait();
    allstop_request_stop(&coord_, nullptr);
  });
  EXPECT_EQ(OnACancelledThread([&] {
              const allstop_status status = allstop_wait_for_stop(&coord_, kShortMs);
              begins.Open();
              return status == ALLSTOP_OK ? status : allstop_wait_for_stop(&coord_, kForever);
            }),
            ALLSTOP_OK);
  stops.join();
}

TEST_F(CancellationTest, EndsNoJoin) {
  allstop_thread* hangs = nullptr;
  ASSERT_EQ(allstop_thread_register(&coord_, allstop_str("hangs"), 0, &hangs), ALLSTOP_OK);
  allstop_request_stop(&coord_, nullptr);
  EXPECT_EQ(OnACancelledThread([&] { return allstop_join(&coord_, kShortMs, 0); }),
            ALLSTOP_STRAGGLERS);
  allstop_thread_done(&coord_, hangs, nullptr);
}

TEST_F(CancellationTest, EndsNoWaitAtAQueue) {
  for (const std::size_t least : {1u, 2u}) {
    EXPECT_EQ(OnACancelledThread([&] { return Dequeue(least, kShortMs); }),
              ALLSTOP_DEADLINE_EXCEEDED);
  }
  while (Enqueue(0) == ALLSTOP_OK) {
  }
  EXPECT_EQ(OnACancelledThread([&] { return Enqueue(kShortMs); }), ALLSTOP_DEADLINE_EXCEEDED);
}

TEST_F(CancellationTest, EndsNoWaitOfALooper) {
  EXPECT_EQ(OnACancelledThread([&] {
              allstop_looper* looper = nullptr;
              allstop_status status =
                  allstop_looper_create(&coord_, kShortMs, ALLSTOP_MISSED_TICKS_DELAY, &looper);
              for (int run = 0; run < 2 && status == ALLSTOP_OK; ++run) {
                status = allstop_looper_wait(&coord_, looper);
              }
              allstop_looper_release(&coord_, looper);
              return status;
            }),
            ALLSTOP_OK);
}

TEST_F(CancellationTest, EndsNoStopHalfway) {
  int calls = 0;
  const auto callback = [](void* count) {
    pthread_testcancel();  // as a write() to a pipe does
    ++*static_cast<int*>(count);
  };
  allstop_callback* first = nullptr;
  ASSERT_EQ(allstop_on_stop(&coord_, callback, &calls, &first), ALLSTOP_OK);
  EXPECT_EQ(OnACancelledThread([&] { return allstop_request_stop(&coord_, nullptr); }), ALLSTOP_OK);
  EXPECT_EQ(calls, 1);
  allstop_callback* second = nullptr;
  EXPECT_EQ(OnACancelledThread([&] { return allstop_on_stop(&coord_, callback, &calls, &second); }),
            ALLSTOP_OK);
  EXPECT_EQ(calls, 2) << "it was stopped already";
  allstop_callback_release(&coord_, first);
  allstop_callback_release(&coord_, second);
}

TEST_F(CancellationTest, ReachesEachObserverOfAStop) {
  class Listener final : public core::Observer {
   public:
    void OnStop() override {
      pthread_testcancel();  // as the write() does that wakes an event loop
      ++stops;
    }
    void OnEvents() override {
      pthread_testcancel();
      ++events;
    }
    int stops = 0;
    int events = 0;
  };
  const auto listener = std::make_shared<Listener>();
  coordinator_->AddObserver(listener, nullptr);
  coordinator_->SetInterested(*listener, true);
  coordinator_->WatchEvents(*listener, true);
  EXPECT_EQ(OnACancelledThread([&] { return allstop_request_stop(&coord_, nullptr); }), ALLSTOP_OK);
  EXPECT_EQ(listener->stops, 1);
  EXPECT_GT(listener->events, 0);
  coordinator_->RemoveObserver(*listener);
}

TEST_F(CancellationTest, EndsNoReleaseThatWaitsForACallback) {
  test::Gate runs;
  test::Gate may_return;
  std::pair<test::Gate*, test::Gate*> gates{&runs, &may_return};
  allstop_callback* callback = nullptr;
  ASSERT_EQ(allstop_on_stop(
                &coord_,
                [](void* opaque) {
                  auto& both = *static_cast<std::pair<test::Gate*, test::Gate*>*>(opaque);
                  both.first->Open();
                  both.second->Wait();
                },
                &gates, &callback),
            ALLSTOP_OK);
  std::thread stops([&] { allstop_request_stop(&coord_, nullptr); });
  runs.Wait();
  test::Gate released;
  std::thread releases([&] {
    OnACancelledThread([&] {
      allstop_callback_release(&coord_, callback);
      released.Open();
      return ALLSTOP_OK;
    });
  });
  EXPECT_FALSE(released.OpensWrongly()) << "the callback runs";
  may_return.Open();
  releases.join();
  stops.join();
}

TEST_F(CancellationTest, EndsNoReleaseOfAnItemThatAQueueHolds) {
  bool is_released = false;
  allstop_item item = {};
  item.data = &is_released;
  item.size = 1;
  item.release = [](void* data, std::size_t, void*) {
    pthread_testcancel();  // as the close() of a file does
    *static_cast<bool*>(data) = true;
  };
  allstop_queue_options options = {};
  options.size = sizeof(options);
  options.capacity = 2;
  allstop_queue queue = {};
  ASSERT_EQ(allstop_queue_create(&abi::Table(), &options, &queue), ALLSTOP_OK);
  ASSERT_EQ(allstop_queue_enqueue_many(&queue, &item, 1, 0, nullptr), ALLSTOP_OK);
  OnACancelledThread([&] {
    allstop_queue_release(&queue);
    return ALLSTOP_OK;
  });
  EXPECT_TRUE(is_released);
}

TEST_F(CancellationTest, ReachesAProducerWhoseConsumerCannotBlock) {
  class Waiter final : public core::QueueWaiter {
   public:
    void OnProgress() override {
      pthread_testcancel();  // as the write() does that wakes an event loop
      told.Open();
    }
    test::Gate told;
  };
  const auto waiter = std::make_shared<Waiter>();
  ASSERT_TRUE(queue_->Await(core::BoundedQueue::Side::kConsumers, {}, waiter));
  EXPECT_EQ(OnACancelledThread([&] { return Enqueue(0); }), ALLSTOP_OK);
  EXPECT_TRUE(waiter->told.is_open());
}

}  // namespace
}  // namespace allstop
#endif
