#include "core/deadline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <mutex>

#include "core/condition_variable.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::kForever;

TEST(DeadlineTest, InfinityIsNever) {
  EXPECT_TRUE(Deadline::Never().IsNever());
  EXPECT_TRUE(Deadline::After(kForever).IsNever());
  EXPECT_FALSE(Deadline::After(kForever).HasPassed());
  EXPECT_EQ(Deadline::After(kForever).RemainingMs(), kForever);
}

TEST(DeadlineTest, WhatTheClockCannotHoldIsNever) {
  for (const double huge : {9.1e12, 1e13, 9007199254740991.0, 1e300}) {
    EXPECT_TRUE(Deadline::After(huge).IsNever()) << huge;
  }
  EXPECT_TRUE(Deadline::After(1e12, Clock::time_point::max() - std::chrono::hours(1)).IsNever());
}

TEST(DeadlineTest, TimersOfNodeOverflowAt31BitsThisDoesNot) {
  const double weeks = 2147483648.0 + 1000;
  const Deadline deadline = Deadline::After(weeks);
  EXPECT_FALSE(deadline.HasPassed());
  EXPECT_GT(deadline.RemainingMs(), 2147483648.0);
  EXPECT_LE(deadline.RemainingMs(), weeks);
}

// Some C++ libraries wait on the wall clock underneath: until its time plus the remaining time.
TEST(DeadlineTest, EveryDeadlineFitsTheWallClockToo) {
  const auto wall_ms = std::chrono::duration<double, std::milli>(
      std::chrono::system_clock::now().time_since_epoch());
  const auto most_ms =
      std::chrono::duration<double, std::milli>(std::chrono::system_clock::duration::max());
  for (double ms = 1; ms < 1e14; ms *= 1.1) {
    if (Deadline::After(ms).IsNever()) continue;
    EXPECT_LT(wall_ms.count() + ms, most_ms.count()) << ms;
  }
}

TEST(DeadlineTest, ZeroHasPassed) {
  EXPECT_TRUE(Deadline::After(0).HasPassed());
  EXPECT_EQ(Deadline::After(0).RemainingMs(), 0);
}

TEST(DeadlineTest, CountsFromItsStart) {
  const auto start = Clock::now();
  EXPECT_TRUE(Deadline::After(5, start - std::chrono::milliseconds(6)).HasPassed());
  EXPECT_EQ(*Deadline::After(0.5, start).at(), start + std::chrono::microseconds(500));
}

TEST(DeadlineTest, AWaitAnswersWithItsPredicateNotWithTheClock) {
  std::mutex mutex;
  ConditionVariable cv;
  std::unique_lock<std::mutex> lock(mutex);
  EXPECT_TRUE(Deadline::After(0).Wait(cv, lock, [] { return true; }));
  EXPECT_TRUE(Deadline::Never().Wait(cv, lock, [] { return true; }));
  EXPECT_FALSE(Deadline::After(0).Wait(cv, lock, [] { return false; }));
}

TEST(DeadlineTest, AWaitIsNotShorterThanItsTimeout) {
  std::mutex mutex;
  ConditionVariable cv;
  std::unique_lock<std::mutex> lock(mutex);
  const auto start = Clock::now();
  EXPECT_FALSE(Deadline::After(20, start).Wait(cv, lock, [] { return false; }));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace allstop::core
