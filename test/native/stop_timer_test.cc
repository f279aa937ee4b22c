#include "core/stop_timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/coordinator.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::Failure;
using test::kHourMs;
using test::MakeCoordinator;

StopRequest DeadlineExceeded() {
  StopRequest request = test::FailureOfThread("DeadlineExceededError");
  request.requester.via = Via::kTimeout;
  return request;
}

bool StopsByItself(const std::shared_ptr<Coordinator>& coordinator) {
  return coordinator->WaitForStop(Deadline::Never());
}

TEST(StopTimerTest, StopsAtTheDeadlineWithTheErrorAndNotBefore) {
  const auto coordinator = MakeCoordinator();
  const auto start = Clock::now();
  EXPECT_NE(ScheduleStop(coordinator, Deadline::After(20, start), DeadlineExceeded()), 0u);
  EXPECT_TRUE(StopsByItself(coordinator));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(20));
  const auto record = coordinator->View().record;
  EXPECT_EQ(record->error->fields().name, "DeadlineExceededError");
  EXPECT_EQ(record->requester().via, Via::kTimeout);
}

TEST(StopTimerTest, ADeadlineThatHasPassedStopsAtOnce) {
  const auto coordinator = MakeCoordinator();
  ScheduleStop(coordinator, Deadline::After(0), DeadlineExceeded());
  EXPECT_TRUE(StopsByItself(coordinator));
}

TEST(StopTimerTest, NeverIsNotScheduled) {
  auto coordinator = MakeCoordinator();
  const std::weak_ptr<Coordinator> weak = coordinator;
  EXPECT_EQ(ScheduleStop(coordinator, Deadline::Never(), DeadlineExceeded()), 0u);
  coordinator.reset();
  EXPECT_FALSE(CancelScheduledStop(0));
  EXPECT_TRUE(weak.expired());
}

// The cancelled stop was due before the other: when the other has come, it would have come, too.
// On a busy machine the first deadlines may pass before they are cancelled.
TEST(StopTimerTest, ACancelledStopDoesNotCome) {
  for (double ms = 20; ms < kHourMs; ms *= 10) {
    const auto cancelled = MakeCoordinator();
    const auto later = MakeCoordinator();
    const auto start = Clock::now();
    const std::uint64_t id =
        ScheduleStop(cancelled, Deadline::After(ms, start), DeadlineExceeded());
    if (!CancelScheduledStop(id)) continue;
    EXPECT_FALSE(CancelScheduledStop(id)) << "once";
    ScheduleStop(later, Deadline::After(ms + 10, start), DeadlineExceeded());
    EXPECT_TRUE(StopsByItself(later));
    EXPECT_FALSE(cancelled->ShouldStop());
    return;
  }
  FAIL() << "none was cancelled";
}

TEST(StopTimerTest, WhatHasStoppedCannotBeCancelled) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = ScheduleStop(coordinator, Deadline::After(0), DeadlineExceeded());
  EXPECT_TRUE(StopsByItself(coordinator));
  EXPECT_FALSE(CancelScheduledStop(id));
}

TEST(StopTimerTest, ANearerDeadlineThatComesLaterIsServedFirst) {
  const auto far = MakeCoordinator();
  const auto near = MakeCoordinator();
  const std::uint64_t id = ScheduleStop(far, Deadline::After(kHourMs), DeadlineExceeded());
  ScheduleStop(near, Deadline::After(5), DeadlineExceeded());
  EXPECT_TRUE(StopsByItself(near));
  EXPECT_FALSE(far->ShouldStop());
  EXPECT_TRUE(CancelScheduledStop(id));
}

TEST(StopTimerTest, ThereMayBeManyAndEachHasItsOwn) {
  constexpr int kMany = 200;
  std::vector<std::shared_ptr<Coordinator>> coordinators;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < kMany; ++i) {
    coordinators.push_back(MakeCoordinator());
    const double ms = i % 2 == 0 ? kHourMs + i : (i * 7) % 20;
    ids.push_back(ScheduleStop(coordinators.back(), Deadline::After(ms), DeadlineExceeded()));
  }
  for (int i = 1; i < kMany; i += 2) EXPECT_TRUE(StopsByItself(coordinators[i]));
  for (int i = 0; i < kMany; i += 2) {
    EXPECT_FALSE(coordinators[i]->ShouldStop());
    EXPECT_TRUE(CancelScheduledStop(ids[i]));
  }
}

TEST(StopTimerTest, KeepsTheCoordinatorUntilThenAndNoLonger) {
  auto coordinator = MakeCoordinator();
  const std::weak_ptr<Coordinator> weak = coordinator;
  const std::uint64_t id = ScheduleStop(coordinator, Deadline::After(kHourMs), DeadlineExceeded());
  coordinator.reset();
  EXPECT_FALSE(weak.expired());
  EXPECT_TRUE(CancelScheduledStop(id));
  EXPECT_TRUE(weak.expired());
}

TEST(StopTimerTest, IsALinkWhileItStandsIfItIsDescribed) {
  const auto coordinator = MakeCoordinator();
  ScheduleStop(coordinator, Deadline::After(kHourMs), DeadlineExceeded());
  EXPECT_TRUE(coordinator->Links().empty()) << "not described";
  const std::uint64_t far =
      ScheduleStop(coordinator, Deadline::After(kHourMs), DeadlineExceeded(), "stopAfter 1 h");
  EXPECT_EQ(coordinator->Links(), std::vector<std::string>{"stopAfter 1 h"});
  EXPECT_TRUE(CancelScheduledStop(far));
  EXPECT_TRUE(coordinator->Links().empty());

  ScheduleStop(coordinator, Deadline::After(0), DeadlineExceeded(), "stopAfter 0 ms");
  EXPECT_TRUE(StopsByItself(coordinator));
  EXPECT_TRUE(coordinator->Links().empty()) << "it has done what it stood for";
}

TEST(StopTimerTest, AStopThatCameFirstWins) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Failure("FirstError"));
  ScheduleStop(coordinator, Deadline::After(0), DeadlineExceeded());
  while (coordinator->View().suppressed_count == 0) std::this_thread::yield();
  EXPECT_EQ(coordinator->View().record->error->fields().name, "FirstError");
}

TEST(StopTimerTest, ItsCallbacksMayScheduleAndCancel) {
  struct Story {
    std::shared_ptr<Coordinator> next = MakeCoordinator();
    std::uint64_t far = 0;
    bool cancelled = false;
  } story;
  const auto coordinator = MakeCoordinator();
  const auto never = MakeCoordinator();
  story.far = ScheduleStop(never, Deadline::After(kHourMs), DeadlineExceeded());
  coordinator->OnStop(
      [](void* context) {
        auto* const s = static_cast<Story*>(context);
        s->cancelled = CancelScheduledStop(s->far);
        ScheduleStop(s->next, Deadline::After(0), DeadlineExceeded());
      },
      &story);
  ScheduleStop(coordinator, Deadline::After(0), DeadlineExceeded());
  EXPECT_TRUE(StopsByItself(story.next));
  EXPECT_TRUE(story.cancelled);
  EXPECT_FALSE(never->ShouldStop());
}

// A stop callback that keeps its thread (it should not) keeps no other stop.
TEST(StopTimerTest, ACallbackThatBlocksDelaysNoOtherDeadline) {
  test::Gate leave;
  std::vector<std::shared_ptr<Coordinator>> blocked;
  for (int i = 0; i < 3; ++i) {
    blocked.push_back(MakeCoordinator());
    blocked[i]->OnStop([](void* gate) { static_cast<test::Gate*>(gate)->Wait(); }, &leave);
    ScheduleStop(blocked[i], Deadline::After(0), DeadlineExceeded());
    EXPECT_TRUE(StopsByItself(blocked[i]));
  }
  const auto other = MakeCoordinator();
  ScheduleStop(other, Deadline::After(0), DeadlineExceeded());
  EXPECT_TRUE(StopsByItself(other));
  leave.Open();
  // Their threads have left the gate before it is gone.
  for (const auto& each : blocked) {
    while (each.use_count() > 1) std::this_thread::yield();
  }
}

#ifndef _WIN32
TEST(StopTimerTest, ItsThreadsTakeNoSignalOfTheProgram) {
  const auto coordinator = MakeCoordinator();
  std::promise<bool> is_blocked;
  coordinator->OnStop(
      [](void* promise) {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        const bool blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
        static_cast<std::promise<bool>*>(promise)->set_value(blocked);
      },
      &is_blocked);
  ScheduleStop(coordinator, Deadline::After(0), DeadlineExceeded());
  EXPECT_TRUE(is_blocked.get_future().get());
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0) << "the mask of the caller is what it was";
}
#endif

TEST(StopTimerTest, ACancelThatRacesWithTheDeadlineIsRightAboutWhoWon) {
  for (int round = 0; round < 300; ++round) {
    const auto coordinator = MakeCoordinator();
    const std::uint64_t id =
        ScheduleStop(coordinator, Deadline::After(0.05 * (round % 4)), DeadlineExceeded());
    if (CancelScheduledStop(id)) {
      EXPECT_FALSE(coordinator->ShouldStop());
    } else {
      EXPECT_TRUE(StopsByItself(coordinator));
    }
  }
}

}  // namespace
}  // namespace allstop::core
