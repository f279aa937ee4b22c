// Every wait and every join that has begun before a stop sees it, even if it is cleared at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "core/coordinator.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::MakeCoordinator;
using test::Plain;

constexpr int kRounds = 10'000;

TEST(GenerationTest, GrowsWithEveryStopAndNeverFalls) {
  const auto coordinator = MakeCoordinator();
  for (std::uint64_t stops = 1; stops <= 100; ++stops) {
    coordinator->RequestStop(Plain());
    coordinator->RequestStop(Plain());
    EXPECT_EQ(coordinator->generation(), stops);
    EXPECT_EQ(coordinator->View().record->generation, stops);
    coordinator->ClearStop();
    coordinator->ClearStop();
    EXPECT_EQ(coordinator->generation(), stops);
  }
}

TEST(GenerationTest, EveryWaiterThatHadBegunSeesAStopThatIsClearedAtOnce) {
  constexpr int kWaiters = 2;
  const auto coordinator = MakeCoordinator();
  std::atomic<int> seen{0};
  test::Barrier begun(kWaiters + 1);
  test::Barrier ended(kWaiters + 1);
  std::vector<std::thread> waiters;
  for (int i = 0; i < kWaiters; ++i) {
    waiters.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const std::uint64_t generation = coordinator->generation();
        begun.Arrive();
        if (coordinator->WaitForStop(generation, Deadline::Never())) ++seen;
        ended.Arrive();
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    begun.Arrive();
    coordinator->RequestStop(Plain());
    coordinator->ClearStop();
    ended.Arrive();
  }
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(seen, kWaiters * kRounds);
}

TEST(GenerationTest, EveryJoinThatHadBegunSeesAStopThatIsClearedAtOnce) {
  const auto coordinator = MakeCoordinator();
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t id = coordinator->RegisterThread(test::Thread("straggler"));
    const auto join = coordinator->BeginJoin({});
    ASSERT_TRUE(std::isinf(coordinator->JoinRemainingMs(*join, 0)));
    coordinator->RequestStop(test::Failure());
    const auto record = coordinator->View().record;
    coordinator->ClearStop();
    ASSERT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
    const JoinResult result = coordinator->FinishJoin(*join);
    ASSERT_EQ(result.stop, record);
    ASSERT_EQ(result.record, nullptr);
    ASSERT_EQ(result.stragglers.size(), 1u);
    coordinator->EndThread(id);
    coordinator->ClearStop();
  }
}

// The test cannot know when the blocking join has begun, so it requests stops until the join is
// over: the first stop after the join's beginning must end it.
TEST(GenerationTest, ABlockingJoinSeesAStopThatIsClearedAtOnce) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(test::Thread("straggler"));
  for (int round = 0; round < kRounds / 50; ++round) {
    std::atomic<bool> over{false};
    std::thread joiner([&] {
      // A join forgets its straggler, so each round registers a new one.
      coordinator->RegisterThread(test::Thread("straggler"));
      EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kStragglers);
      over = true;
    });
    do {
      coordinator->RequestStop(Plain());
      coordinator->ClearStop();
    } while (!over);
    joiner.join();
  }
}

// As TensorFlow's join: it ends by the first stop that it saw, and reports the record that stands
// at its end.
TEST(GenerationTest, AJoinReportsTheRecordThatStandsWhenItEnds) {
  const auto coordinator = MakeCoordinator();
  const auto join = coordinator->BeginJoin({});
  coordinator->RequestStop(test::Failure());
  const auto first = coordinator->View().record;
  coordinator->ClearStop();
  const auto other = coordinator->BeginJoin({});
  const JoinResult cleared = coordinator->FinishJoin(*join);
  EXPECT_EQ(cleared.stop, first);
  EXPECT_EQ(cleared.record, nullptr);
  EXPECT_TRUE(coordinator->joined());

  coordinator->RequestStop(Plain());
  const JoinResult stopped = coordinator->FinishJoin(*other);
  EXPECT_EQ(stopped.stop, coordinator->View().record);
  EXPECT_EQ(stopped.record, coordinator->View().record);
}

TEST(GenerationTest, OfTwoStopsAJoinWasEndedByTheFirst) {
  const auto coordinator = MakeCoordinator();
  const auto join = coordinator->BeginJoin({});
  coordinator->RequestStop(Plain());
  const auto first = coordinator->View().record;
  coordinator->ClearStop();
  coordinator->RequestStop(test::Failure());
  const JoinResult result = coordinator->FinishJoin(*join);
  EXPECT_EQ(result.stop, first);
  EXPECT_EQ(result.record, coordinator->View().record);
}

TEST(GenerationTest, AJoinThatIsOverdueAfterAClearStillJoins) {
  const auto coordinator = MakeCoordinator();
  const auto join = coordinator->BeginJoin({});
  coordinator->ClearStop();
  EXPECT_FALSE(coordinator->joined());
  coordinator->FinishJoin(*join);
  EXPECT_TRUE(coordinator->joined());
  EXPECT_EQ(coordinator->RequestStop(test::Failure()), StopOutcome::kRefused);
}

}  // namespace
}  // namespace allstop::core
