#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/coordinator.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::MakeCoordinator;
using test::Plain;

TEST(WaitForStopTest, ZeroPolls) {
  const auto coordinator = MakeCoordinator();
  EXPECT_FALSE(coordinator->WaitForStop(Deadline::After(0)));
  coordinator->RequestStop(Plain());
  EXPECT_TRUE(coordinator->WaitForStop(Deadline::After(0)));
}

TEST(WaitForStopTest, ReturnsFalseWhenTheTimeIsOverAndNotBefore) {
  const auto coordinator = MakeCoordinator();
  const auto start = Clock::now();
  EXPECT_FALSE(coordinator->WaitForStop(Deadline::After(20, start)));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(20));
}

TEST(WaitForStopTest, ReturnsAtOnceWhenStoppedAlready) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  EXPECT_TRUE(coordinator->WaitForStop(Deadline::Never()));
}

// Half of the waits have no deadline, the others one that is not reached.
TEST(WaitForStopTest, AStopWakesEveryWaiter) {
  constexpr int kThreads = 32;
  const auto coordinator = MakeCoordinator();
  std::atomic<int> woken{0};
  test::Barrier begun(kThreads + 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      begun.Arrive();
      const Deadline deadline = i % 2 == 0 ? Deadline::Never() : Deadline::After(3.6e6);
      if (coordinator->WaitForStop(deadline)) ++woken;
    });
  }
  begun.Arrive();
  coordinator->RequestStop(Plain());
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(woken, kThreads);
}

TEST(WaitForStopTest, AWaitThatHadBegunSeesAStopThatWasClearedAtOnce) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t begun = coordinator->generation();
  coordinator->RequestStop(Plain());
  coordinator->ClearStop();
  EXPECT_TRUE(coordinator->WaitForStop(begun, Deadline::Never()));
  EXPECT_TRUE(coordinator->WaitForStop(begun, Deadline::After(0)));
}

TEST(WaitForStopTest, AWaitThatBeginsAfterTheClearDoesNot) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  coordinator->ClearStop();
  EXPECT_FALSE(coordinator->WaitForStop(Deadline::After(0)));
}

TEST(WaitForStopTest, ARefusedRequestWakesNobody) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t begun = coordinator->generation();
  coordinator->BlockingJoin(0, false);
  coordinator->RequestStop(test::Failure());
  EXPECT_FALSE(coordinator->WaitForStop(begun, Deadline::After(0)));
}

}  // namespace
}  // namespace allstop::core
