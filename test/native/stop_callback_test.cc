// Stop callbacks have the guarantees of std::stop_callback.
#include "core/stop_callback.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/coordinator.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::MakeCoordinator;
using test::Plain;

// The function of a callback; it must outlive the callback.
using Story = std::function<void()>;

std::shared_ptr<StopCallback> OnStop(Coordinator& coordinator, Story& story) {
  return coordinator.OnStop([](void* context) { (*static_cast<Story*>(context))(); }, &story);
}

TEST(StopCallbackTest, RunsOnceOnTheRequestersThreadBeforeTheRequestReturns) {
  const auto coordinator = MakeCoordinator();
  int runs = 0;
  std::thread::id runner;
  bool saw_the_flag = false;
  Story story = [&] {
    ++runs;
    runner = std::this_thread::get_id();
    saw_the_flag = coordinator->ShouldStop();
  };
  const auto callback = OnStop(*coordinator, story);
  ASSERT_NE(callback, nullptr);
  EXPECT_EQ(runs, 0);

  coordinator->RequestStop(Plain());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(runner, std::this_thread::get_id());
  EXPECT_TRUE(saw_the_flag) << "the state changes first";
  coordinator->RequestStop(Plain());
  EXPECT_EQ(runs, 1);
  coordinator->RemoveStopCallback(*callback);
  EXPECT_EQ(runs, 1);
}

TEST(StopCallbackTest, RegisteredAfterTheStopRunsAtOnceOnThisThread) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  int runs = 0;
  std::thread::id runner;
  Story story = [&] {
    ++runs;
    runner = std::this_thread::get_id();
  };
  EXPECT_EQ(OnStop(*coordinator, story), nullptr);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(runner, std::this_thread::get_id());
}

TEST(StopCallbackTest, RemovedBeforeTheStopNeverRuns) {
  const auto coordinator = MakeCoordinator();
  int runs = 0;
  Story story = [&] { ++runs; };
  const auto removed = OnStop(*coordinator, story);
  const auto kept = OnStop(*coordinator, story);
  coordinator->RemoveStopCallback(*removed);
  coordinator->RemoveStopCallback(*removed);  // a second call does nothing
  coordinator->RequestStop(Plain());
  EXPECT_EQ(runs, 1);
  coordinator->RemoveStopCallback(*kept);
}

TEST(StopCallbackTest, NothingIsKeptOfARemovedOneNorOfOneThatRan) {
  const auto coordinator = MakeCoordinator();
  Story story = [] {};
  auto removed = OnStop(*coordinator, story);
  auto run = OnStop(*coordinator, story);
  const std::weak_ptr<StopCallback> weak_removed = removed;
  const std::weak_ptr<StopCallback> weak_run = run;
  coordinator->RemoveStopCallback(*removed);
  removed.reset();
  run.reset();
  EXPECT_TRUE(weak_removed.expired());
  EXPECT_FALSE(weak_run.expired()) << "its turn has not come";
  coordinator->RequestStop(Plain());
  EXPECT_TRUE(weak_run.expired());
}

TEST(StopCallbackTest, TheyRunInTheOrderOfTheirRegistration) {
  const auto coordinator = MakeCoordinator();
  std::vector<int> order;
  std::vector<Story> stories(5);
  for (int i = 0; i < 5; ++i) {
    stories[i] = [&order, i] { order.push_back(i); };
    OnStop(*coordinator, stories[i]);
  }
  coordinator->RequestStop(Plain());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(StopCallbackTest, ThoseThatAreLeftOfManyKeepTheirOrder) {
  constexpr int kCallbacks = 100'000;
  const auto coordinator = MakeCoordinator();
  std::vector<int> order;
  struct Numbered {
    std::vector<int>* order;
    int number;
  };
  std::vector<Numbered> contexts;
  for (int i = 0; i < kCallbacks; ++i) contexts.push_back({&order, i});
  std::vector<std::shared_ptr<StopCallback>> callbacks;
  for (Numbered& context : contexts) {
    callbacks.push_back(coordinator->OnStop(
        [](void* opaque) {
          const auto& own = *static_cast<Numbered*>(opaque);
          own.order->push_back(own.number);
        },
        &context));
  }
  // From the last one on: a removal that searches from the front would take minutes.
  for (int i = kCallbacks - 1; i >= 0; --i) {
    if (i % 1000 != 7) coordinator->RemoveStopCallback(*callbacks[i]);
  }
  coordinator->RequestStop(Plain());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], 7 + 1000 * i);
}

TEST(StopCallbackTest, ARefusedOrLaterRequestRunsNone) {
  const auto coordinator = MakeCoordinator();
  coordinator->BlockingJoin(0, false);
  int runs = 0;
  Story story = [&] { ++runs; };
  const auto callback = OnStop(*coordinator, story);
  coordinator->RequestStop(test::Failure());
  EXPECT_EQ(runs, 0);
  coordinator->RemoveStopCallback(*callback);
}

TEST(StopCallbackTest, AfterAClearedStopItIsDone) {
  const auto coordinator = MakeCoordinator();
  int runs = 0;
  Story story = [&] { ++runs; };
  const auto callback = OnStop(*coordinator, story);
  coordinator->RequestStop(Plain());
  coordinator->ClearStop();
  coordinator->RequestStop(Plain());
  EXPECT_EQ(runs, 1);
  coordinator->RemoveStopCallback(*callback);
}

TEST(StopCallbackTest, RemovalWaitsForTheCallbackThatRunsOnAnotherThread) {
  const auto coordinator = MakeCoordinator();
  test::Gate running;
  test::Gate removed;
  bool finished = false;  // not atomic on purpose: RemoveStopCallback must order it
  Story story = [&] {
    running.Open();
    EXPECT_FALSE(removed.OpensWrongly());
    finished = true;
  };
  const auto callback = OnStop(*coordinator, story);
  std::thread requester([&] { coordinator->RequestStop(Plain()); });
  running.Wait();
  coordinator->RemoveStopCallback(*callback);
  EXPECT_TRUE(finished);
  removed.Open();
  requester.join();
}

TEST(StopCallbackTest, SeveralMayWaitForTheSameOne) {
  const auto coordinator = MakeCoordinator();
  test::Gate running;
  test::Gate go_on;
  std::atomic<bool> finished{false};
  Story story = [&] {
    running.Open();
    go_on.Wait();
    finished = true;
  };
  const auto callback = OnStop(*coordinator, story);
  std::thread requester([&] { coordinator->RequestStop(Plain()); });
  running.Wait();
  std::vector<std::thread> removers;
  for (int i = 0; i < 4; ++i) {
    removers.emplace_back([&] {
      coordinator->RemoveStopCallback(*callback);
      EXPECT_TRUE(finished);
    });
  }
  go_on.Open();
  for (auto& remover : removers) remover.join();
  requester.join();
}

TEST(StopCallbackTest, RemovalFromWithinItselfReturnsAtOnce) {
  const auto coordinator = MakeCoordinator();
  std::shared_ptr<StopCallback> callback;
  bool returned = false;
  Story story = [&] {
    coordinator->RemoveStopCallback(*callback);
    callback.reset();
    returned = true;
  };
  callback = OnStop(*coordinator, story);
  coordinator->RequestStop(Plain());
  EXPECT_TRUE(returned);
}

TEST(StopCallbackTest, OneThatRemovesTheNextKeepsItFromRunning) {
  const auto coordinator = MakeCoordinator();
  std::shared_ptr<StopCallback> next;
  int runs_of_next = 0;
  Story first_story = [&] { coordinator->RemoveStopCallback(*next); };
  Story next_story = [&] { ++runs_of_next; };
  const auto first = OnStop(*coordinator, first_story);
  next = OnStop(*coordinator, next_story);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(runs_of_next, 0);
}

TEST(StopCallbackTest, TakenByAStopButRemovedBeforeItsTurnItNeverRuns) {
  const auto coordinator = MakeCoordinator();
  test::Gate running;
  test::Gate go_on;
  bool second_ran = false;
  Story first_story = [&] {
    running.Open();
    go_on.Wait();
  };
  Story second_story = [&] { second_ran = true; };
  const auto first = OnStop(*coordinator, first_story);
  const auto second = OnStop(*coordinator, second_story);
  std::thread requester([&] { coordinator->RequestStop(Plain()); });
  running.Wait();
  coordinator->RemoveStopCallback(*second);  // does not wait for the first callback
  go_on.Open();
  requester.join();
  EXPECT_FALSE(second_ran);
}

TEST(StopCallbackTest, MayUseTheCoordinatorFreely) {
  const auto coordinator = MakeCoordinator();
  int inner_runs = 0;
  Story inner = [&] { ++inner_runs; };
  Story story = [&] {
    EXPECT_EQ(coordinator->RequestStop(Plain()), StopOutcome::kAlreadyStopped);
    EXPECT_EQ(OnStop(*coordinator, inner), nullptr);
    EXPECT_TRUE(coordinator->WaitForStop(Deadline::Never()));
    EXPECT_NE(coordinator->CreateChild(test::Named()), nullptr);
    coordinator->EndThread(coordinator->RegisterThread(test::Thread("brief")));
    EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kOk);
    EXPECT_EQ(coordinator->ClearStop(), Status::kOk);
  };
  OnStop(*coordinator, story);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(inner_runs, 1);
  EXPECT_FALSE(coordinator->ShouldStop());
}

TEST(StopCallbackTest, MayStopAgainWhatItHasCleared) {
  const auto coordinator = MakeCoordinator();
  int second_runs = 0;
  Story second = [&] { ++second_runs; };
  Story first = [&] {
    coordinator->ClearStop();
    OnStop(*coordinator, second);
    coordinator->RequestStop(Plain());
  };
  OnStop(*coordinator, first);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(second_runs, 1);
  EXPECT_EQ(coordinator->generation(), 2u);
}

TEST(StopCallbackTest, MayDropTheLastReferenceToItsCoordinator) {
  auto coordinator = MakeCoordinator();
  const std::weak_ptr<Coordinator> weak = coordinator;
  Coordinator* const bare = coordinator.get();
  Story story = [&] {
    coordinator.reset();
    EXPECT_FALSE(weak.expired()) << "the request holds it";
  };
  OnStop(*bare, story);
  bare->RequestStop(Plain());
  EXPECT_TRUE(weak.expired());
}

TEST(StopCallbackTest, RacingRegistrationAndStopRunItExactlyOnce) {
  for (int round = 0; round < 2'000; ++round) {
    const auto coordinator = MakeCoordinator();
    std::atomic<int> runs{0};
    Story story = [&] { ++runs; };
    test::Barrier start(2);
    std::thread requester([&] {
      start.Arrive();
      coordinator->RequestStop(Plain());
    });
    start.Arrive();
    const auto callback = OnStop(*coordinator, story);
    requester.join();
    ASSERT_EQ(runs, 1);
    if (callback) coordinator->RemoveStopCallback(*callback);
  }
}

// The context is freed right after the removal: a later run would be a use after free.
TEST(StopCallbackTest, RacingRemovalAndStopRunItAtMostOnceAndNeverAfterwards) {
  for (int round = 0; round < 2'000; ++round) {
    const auto coordinator = MakeCoordinator();
    test::Barrier start(2);
    std::thread requester([&] {
      start.Arrive();
      coordinator->RequestStop(Plain());
    });
    {
      int runs = 0;
      auto story = std::make_unique<Story>([&runs] { ++runs; });
      const auto callback = OnStop(*coordinator, *story);
      start.Arrive();
      if (callback) coordinator->RemoveStopCallback(*callback);
      ASSERT_LE(runs, 1);
    }
    requester.join();
  }
}

}  // namespace
}  // namespace allstop::core
