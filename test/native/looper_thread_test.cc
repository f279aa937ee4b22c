// When a looper's runs are due, computed from given times, and the ends of its waits.
#include "core/looper_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::kForever;
using test::MakeCoordinator;
using test::Plain;
using Times = std::vector<int>;

const Clock::time_point kStart = Clock::now();

Clock::time_point At(int ms) { return kStart + std::chrono::milliseconds(ms); }

// Returns the times at which the first `count` runs begin, if the first runs take `took`
// milliseconds each and the others no time.
Times Runs(LooperSchedule schedule, const Times& took, std::size_t count) {
  Times begun;
  int now = 0;
  while (begun.size() < count) {
    const auto due = schedule.Next(At(now)).at();
    if (!due) break;
    const auto due_ms = std::chrono::duration_cast<std::chrono::milliseconds>(*due - kStart);
    now = std::max(now, static_cast<int>(due_ms.count()));
    begun.push_back(now);
    if (begun.size() <= took.size()) now += took[begun.size() - 1];
  }
  return begun;
}

TEST(LooperScheduleTest, BeginsAtOnceThenKeepsItsTimes) {
  for (const auto policy : {MissedTicks::kBurst, MissedTicks::kSkip, MissedTicks::kDelay}) {
    EXPECT_EQ(Runs({100, policy}, {}, 4), (Times{0, 100, 200, 300}));
  }
}

// Each run takes 30 ms: with kDelay the schedule shifts by that, with the others it does not.
TEST(LooperScheduleTest, DoesNotDrift) {
  const Times took(3, 30);
  EXPECT_EQ(Runs({100, MissedTicks::kBurst}, took, 4), (Times{0, 100, 200, 300}));
  EXPECT_EQ(Runs({100, MissedTicks::kSkip}, took, 4), (Times{0, 100, 200, 300}));
  EXPECT_EQ(Runs({100, MissedTicks::kDelay}, took, 4), (Times{0, 130, 260, 390}));
}

// TensorFlow's behaviour (docs/tensorflow.md).
TEST(LooperScheduleTest, BurstMakesUpForWhatWasMissed) {
  EXPECT_EQ(Runs({100, MissedTicks::kBurst}, {550}, 9),
            (Times{0, 550, 550, 550, 550, 550, 600, 700, 800}));
}

TEST(LooperScheduleTest, SkipDropsItAndKeepsTheBoundaries) {
  EXPECT_EQ(Runs({100, MissedTicks::kSkip}, {550, 0, 250}, 5), (Times{0, 600, 700, 1000, 1100}));
}

TEST(LooperScheduleTest, SkipRunsOnABoundaryThatIsJustReached) {
  EXPECT_EQ(Runs({100, MissedTicks::kSkip}, {100, 200}, 4), (Times{0, 100, 300, 400}));
}

TEST(LooperScheduleTest, DelayCountsFromTheEnd) {
  EXPECT_EQ(Runs({100, MissedTicks::kDelay}, {550}, 4), (Times{0, 650, 750, 850}));
}

TEST(LooperScheduleTest, NoIntervalIsBackToBack) {
  for (const auto policy : {MissedTicks::kBurst, MissedTicks::kSkip, MissedTicks::kDelay}) {
    EXPECT_EQ(Runs({0, policy}, {5, 5, 5}, 4), (Times{0, 5, 10, 15}));
  }
}

TEST(LooperScheduleTest, AnIntervalBelowWhatTheClockCountsIsNone) {
  EXPECT_EQ(Runs({1e-300, MissedTicks::kSkip}, {5, 5}, 3), (Times{0, 5, 10}));
}

TEST(LooperScheduleTest, AnEndlessIntervalIsOneRun) {
  for (const auto policy : {MissedTicks::kBurst, MissedTicks::kSkip, MissedTicks::kDelay}) {
    EXPECT_EQ(Runs({kForever, policy}, {5}, 2), (Times{0}));
    EXPECT_EQ(Runs({1e300, policy}, {5}, 2), (Times{0}));
  }
}

TEST(LooperScheduleTest, WhatTheClockCannotHoldIsNever) {
  constexpr double kNearlyACenturyMs = 3.1e12;
  LooperSchedule schedule(kNearlyACenturyMs, MissedTicks::kBurst);
  int runs = 0;
  while (!schedule.Next(kStart).IsNever()) ASSERT_LT(++runs, 10);
  EXPECT_GE(runs, 2);
}

TEST(LooperThreadTest, RunsAtOnceAndAgainWithoutAnInterval) {
  LooperThread looper(MakeCoordinator(), {0, MissedTicks::kBurst});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(looper.Wait());
}

TEST(LooperThreadTest, WaitsForItsInterval) {
  LooperThread looper(MakeCoordinator(), {20, MissedTicks::kBurst});
  const auto start = Clock::now();
  EXPECT_TRUE(looper.Wait());
  EXPECT_TRUE(looper.Wait());
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(20));
}

TEST(LooperThreadTest, DoesNotRunOnceAStopIsRequested) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  LooperThread looper(coordinator, {0, MissedTicks::kBurst});
  EXPECT_FALSE(looper.Wait());
}

TEST(LooperThreadTest, AStopEndsTheWaitAtOnce) {
  const auto coordinator = MakeCoordinator();
  LooperThread looper(coordinator, {kForever, MissedTicks::kBurst});
  ASSERT_TRUE(looper.Wait());
  std::thread stopper([&] { coordinator->RequestStop(Plain()); });
  EXPECT_FALSE(looper.Wait());
  stopper.join();
}

TEST(LooperThreadTest, SoDoesOneThatIsClearedAtOnce) {
  const auto coordinator = MakeCoordinator();
  LooperThread looper(coordinator, {kForever, MissedTicks::kBurst});
  ASSERT_TRUE(looper.Wait());
  std::thread stopper([&] {
    coordinator->RequestStop(Plain());
    coordinator->ClearStop();
  });
  EXPECT_FALSE(looper.Wait());
  stopper.join();
  EXPECT_FALSE(looper.Wait()) << "it has ended for good";
}

TEST(LooperThreadTest, AStopFromBeforeItWasMadeIsNoneOfItsOwn) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  coordinator->ClearStop();
  LooperThread looper(coordinator, {0, MissedTicks::kBurst});
  EXPECT_TRUE(looper.Wait());
}

}  // namespace
}  // namespace allstop::core
