#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/coordinator.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::Clean;
using test::Failure;
using test::kForever;
using test::kHourMs;
using test::MakeCoordinator;
using test::Names;
using test::Plain;
using test::Thread;
using test::UnstartedThread;

using Strings = std::vector<std::string>;

// Runs a blocking join on a thread of its own.
class Joiner {
 public:
  Joiner(std::shared_ptr<Coordinator> coordinator, double grace_period_ms)
      : thread_([this, coordinator, grace_period_ms] {
          status_ = coordinator->BlockingJoin(grace_period_ms, false);
          over_.Open();
        }) {}
  ~Joiner() {
    if (thread_.joinable()) thread_.join();
  }

  test::Gate& over() { return over_; }
  Status Result() {
    thread_.join();
    return status_;
  }

 private:
  test::Gate over_;
  Status status_ = Status::kCancelled;
  std::thread thread_;
};

TEST(JoinTest, WithNothingAliveAndNoStopItSucceedsAndSetsNoFlag) {
  const auto coordinator = MakeCoordinator();
  EXPECT_EQ(coordinator->BlockingJoin(kForever, false), Status::kOk);
  EXPECT_TRUE(coordinator->joined());
  EXPECT_FALSE(coordinator->ShouldStop());
  EXPECT_EQ(coordinator->View().record, nullptr);
}

TEST(JoinTest, WaitsUntilTheLastThreadHasEnded) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t first = coordinator->RegisterThread(Thread("first"));
  const std::uint64_t second = coordinator->RegisterThread(Thread("second"));
  const std::uint64_t third = coordinator->RegisterThread(Thread("third"));
  Joiner joiner(coordinator, 0);
  coordinator->EndThread(second);
  coordinator->EndThread(first);
  EXPECT_FALSE(joiner.over().OpensWrongly());
  EXPECT_FALSE(coordinator->joined());
  coordinator->EndThread(third);
  EXPECT_EQ(joiner.Result(), Status::kOk);
  EXPECT_TRUE(coordinator->joined());
  EXPECT_FALSE(coordinator->ShouldStop());
}

TEST(JoinTest, AThreadThatEndsTwiceCountsOnce) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t first = coordinator->RegisterThread(Thread("first"));
  const std::uint64_t second = coordinator->RegisterThread(Thread("second"));
  const auto join = coordinator->BeginJoin({});
  coordinator->EndThread(first);
  coordinator->EndThread(first);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), kForever);
  coordinator->EndThread(second);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, kForever), 0);
  EXPECT_TRUE(coordinator->FinishJoin(*join).stragglers.empty());
}

TEST(JoinTest, AfterAStopTheThreadsHaveTheGracePeriod) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("slow"));
  Joiner joiner(coordinator, kForever);
  coordinator->RequestStop(Plain());
  EXPECT_FALSE(joiner.over().OpensWrongly());
  coordinator->EndThread(id);
  EXPECT_EQ(joiner.Result(), Status::kOk);
}

TEST(JoinTest, WhoIsAliveAfterTheGracePeriodIsAStraggler) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Thread("slow"));
  coordinator->EndThread(coordinator->RegisterThread(Thread("quick")));
  coordinator->RegisterThread(Thread("slower"));
  coordinator->RequestStop(Plain());
  const auto join = coordinator->BeginJoin({});
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
  EXPECT_EQ(Names(coordinator->FinishJoin(*join).stragglers), (Strings{"slow", "slower"}));
  EXPECT_TRUE(coordinator->joined());
}

TEST(JoinTest, TheBlockingJoinReportsStragglersUnlessToldToIgnoreThem) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Thread("slow"));
  coordinator->RequestStop(Plain());
  EXPECT_EQ(coordinator->BlockingJoin(5, false), Status::kStragglers);
  coordinator->RegisterThread(Thread("slow, too"));
  EXPECT_EQ(coordinator->BlockingJoin(5, true), Status::kOk);
}

TEST(JoinTest, TheRecordedErrorBeatsStragglersAndTheLeaveToIgnoreThem) {
  for (const bool ignore : {false, true}) {
    const auto coordinator = MakeCoordinator();
    coordinator->RegisterThread(Thread("slow"));
    coordinator->RequestStop(Failure());
    EXPECT_EQ(coordinator->BlockingJoin(0, ignore), Status::kStoppedByError);
  }
}

TEST(JoinTest, ACleanErrorIsNoError) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Clean());
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kOk);
}

TEST(JoinTest, JoiningAgainReportsTheSameErrorAgain) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Failure());
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kStoppedByError);
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kStoppedByError);
}

TEST(JoinTest, AnErrorThatComesDuringTheWaitIsReported) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("worker"));
  Joiner joiner(coordinator, kForever);
  coordinator->RequestStop(Failure());
  coordinator->EndThread(id);
  EXPECT_EQ(joiner.Result(), Status::kStoppedByError);
}

// As with TensorFlow: a join does not wait for a thread that has not started by then.
TEST(JoinTest, UnstartedThreadsCountAsFinished) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(UnstartedThread("later"));
  EXPECT_EQ(coordinator->BlockingJoin(kForever, false), Status::kOk);

  coordinator->ClearStop();
  coordinator->RegisterThread(UnstartedThread("never"));
  coordinator->RequestStop(Plain());
  EXPECT_EQ(coordinator->BlockingJoin(kForever, false), Status::kOk) << "nor a straggler";
}

TEST(JoinTest, AThreadThatStartsWhileTheJoinWaitsIsWaitedFor) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t running = coordinator->RegisterThread(Thread("running"));
  const std::uint64_t starting = coordinator->RegisterThread(UnstartedThread("starting"));
  const auto join = coordinator->BeginJoin({});
  std::thread([&] {
    coordinator->EnterThread(starting);
    coordinator->EnterThread(starting);  // a second call changes nothing
  }).join();
  coordinator->EndThread(running);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), kForever);
  coordinator->EndThread(starting);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
  coordinator->FinishJoin(*join);
}

// JavaScript's loopers start this way: another thread calls StartThread for them.
TEST(JoinTest, SoIsOneThatSomebodyElseStarts) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t running = coordinator->RegisterThread(Thread("running"));
  const std::uint64_t starting = coordinator->RegisterThread(UnstartedThread("starting"));
  const auto join = coordinator->BeginJoin({});
  EXPECT_TRUE(coordinator->StartThread(starting, {}));
  EXPECT_TRUE(coordinator->StartThread(starting, 7));  // a second call sets only the threadId
  coordinator->EndThread(running);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), kForever);
  EXPECT_EQ(coordinator->LiveThreads().front().thread_id, 7u);
  coordinator->EndThread(starting);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
  EXPECT_FALSE(coordinator->StartThread(starting, {}));
  coordinator->FinishJoin(*join);
}

TEST(JoinTest, OneThatStartsWhenAJoinHasForgottenItNeedsANewRegistration) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t later = coordinator->RegisterThread(UnstartedThread("later"));
  EXPECT_EQ(coordinator->BlockingJoin(kForever, false), Status::kOk);
  EXPECT_FALSE(coordinator->StartThread(later, {}));
}

TEST(JoinTest, OneThatStartsWhileAnotherJoinStillWaitsForItIsRegisteredAgain) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t running = coordinator->RegisterThread(Thread("running"));
  const std::uint64_t later = coordinator->RegisterThread(UnstartedThread("later"));
  const auto patient = coordinator->BeginJoin({});
  const auto impatient = coordinator->BeginJoin({});
  coordinator->FinishJoin(*impatient);  // forgets both threads
  EXPECT_TRUE(coordinator->StartThread(later, {}));
  EXPECT_EQ(Names(coordinator->LiveThreads()), Strings{"later"});
  coordinator->EndThread(running);
  EXPECT_FALSE(coordinator->JoinHasEnded(*patient));
  coordinator->EndThread(later);
  EXPECT_TRUE(coordinator->JoinHasEnded(*patient));
  coordinator->FinishJoin(*patient);
}

TEST(JoinTest, AnUnstartedThreadThatIsGivenUpDoesNotCount) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t running = coordinator->RegisterThread(Thread("running"));
  const std::uint64_t never = coordinator->RegisterThread(UnstartedThread("never"));
  const auto join = coordinator->BeginJoin({});
  coordinator->EndThread(never);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), kForever);
  coordinator->EndThread(running);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
  coordinator->FinishJoin(*join);
}

TEST(SelfJoinTest, ANativeThreadMayNotJoinItself) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("self", ThreadKind::kNative));
  coordinator->EnterThread(id);
  EXPECT_EQ(coordinator->BlockingJoin(kForever, false), Status::kSelfJoin);
  EXPECT_TRUE(coordinator->WouldJoinItself({}));
  EXPECT_FALSE(coordinator->joined()) << "a refused call changes nothing";
  EXPECT_EQ(Names(coordinator->LiveThreads()), Strings{"self"});

  coordinator->EndThread(id);
  EXPECT_FALSE(coordinator->WouldJoinItself({}));
  EXPECT_EQ(coordinator->BlockingJoin(kForever, false), Status::kOk);
}

TEST(SelfJoinTest, AnotherNativeThreadMayJoinIt) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("self", ThreadKind::kNative));
  std::thread([&] { coordinator->EnterThread(id); }).join();
  EXPECT_NE(coordinator->BeginJoin({}), nullptr);
}

TEST(SelfJoinTest, AWorkerIsKnownByItsThreadId) {
  const auto coordinator = MakeCoordinator();
  NewThread worker = Thread("worker", ThreadKind::kWorker);
  worker.has_thread_id = true;
  worker.thread_id = 7;
  coordinator->RegisterThread(worker);
  JoinCaller caller;
  caller.is_worker = true;
  caller.worker_thread_id = 7;
  EXPECT_EQ(coordinator->BeginJoin(caller), nullptr);
  caller.worker_thread_id = 8;
  const auto join = coordinator->BeginJoin(caller);
  ASSERT_NE(join, nullptr);
  coordinator->AbandonJoin(*join);
  EXPECT_FALSE(coordinator->WouldJoinItself({}));
  caller = {/*is_worker=*/false, /*worker_thread_id=*/7, {}};
  EXPECT_FALSE(coordinator->WouldJoinItself(caller)) << "the main thread is no worker";
}

TEST(SelfJoinTest, ALooperIsKnownByItsWorkerAndByItsRegistration) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("looper", ThreadKind::kLooper));
  coordinator->StartThread(id, 7);
  EXPECT_TRUE(coordinator->WouldJoinItself({true, 7, {}}));
  EXPECT_TRUE(coordinator->WouldJoinItself({false, 0, {id}})) << "its hooks run elsewhere";
  EXPECT_FALSE(coordinator->WouldJoinItself({true, 8, {id + 1}}));
  coordinator->EnterThread(id);
  EXPECT_TRUE(coordinator->WouldJoinItself({})) << "a native one by its OS thread";
  std::thread([&] { coordinator->EnterThread(id); }).join();
  EXPECT_FALSE(coordinator->WouldJoinItself({true, 7, {}}));
}

TEST(SelfJoinTest, ATaskIsKnownByItsRegistration) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t task = coordinator->RegisterThread(Thread("task", ThreadKind::kTask));
  JoinCaller caller;
  caller.tasks = {task + 1, task};
  EXPECT_EQ(coordinator->BeginJoin(caller), nullptr);
  EXPECT_TRUE(coordinator->WouldJoinItself(caller));
  caller.tasks = {task + 1};
  EXPECT_FALSE(coordinator->WouldJoinItself(caller));
  EXPECT_NE(coordinator->BeginJoin(caller), nullptr);

  NewThread unstarted = UnstartedThread("looper");
  unstarted.kind = ThreadKind::kLooper;
  caller.tasks = {coordinator->RegisterThread(unstarted)};
  EXPECT_FALSE(coordinator->WouldJoinItself(caller)) << "it would not wait for this one";
}

TEST(JoinTest, WhatIsRegisteredMeanwhileIsNotWaitedForAndStaysRegistered) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t known = coordinator->RegisterThread(Thread("known"));
  const auto join = coordinator->BeginJoin({});
  coordinator->RegisterThread(Thread("late"));
  coordinator->EndThread(known);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
  EXPECT_TRUE(coordinator->FinishJoin(*join).stragglers.empty());
  EXPECT_EQ(Names(coordinator->LiveThreads()), Strings{"late"});

  coordinator->RequestStop(Plain());
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kStragglers) << "the next join has it";
}

TEST(JoinTest, TwoJoinsHaveEachTheirOwnGracePeriod) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("slow"));
  const auto patient = coordinator->BeginJoin({});
  const auto hasty = coordinator->BeginJoin({});
  coordinator->RequestStop(Plain());
  EXPECT_EQ(coordinator->JoinRemainingMs(*hasty, 0), 0);
  EXPECT_EQ(Names(coordinator->FinishJoin(*hasty).stragglers), Strings{"slow"});
  EXPECT_TRUE(coordinator->LiveThreads().empty()) << "the hasty one has forgotten it";

  EXPECT_EQ(coordinator->JoinRemainingMs(*patient, kForever), kForever);
  coordinator->EndThread(id);
  EXPECT_EQ(coordinator->JoinRemainingMs(*patient, kForever), 0);
  EXPECT_TRUE(coordinator->FinishJoin(*patient).stragglers.empty());
}

TEST(JoinTest, TwoBlockingJoinsHaveEachTheirOwnGracePeriod) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("slow"));
  const auto begun = coordinator->BeginJoin({});  // keeps the entry, for EndThread
  Joiner hasty(coordinator, 1);
  Joiner patient(coordinator, kForever);
  coordinator->RequestStop(Plain());
  // A join that begins after another join has forgotten the thread has no straggler.
  const Status first = hasty.Result();
  EXPECT_TRUE(first == Status::kStragglers || first == Status::kOk);
  coordinator->EndThread(id);
  EXPECT_EQ(patient.Result(), Status::kOk);
  EXPECT_TRUE(coordinator->FinishJoin(*begun).stragglers.empty());
}

TEST(JoinTest, ForgetsWhatItHasJoined) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("slow"));
  coordinator->RequestStop(Plain());
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kStragglers);
  EXPECT_TRUE(coordinator->LiveThreads().empty());
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kOk) << "no straggler of ours any more";
  ASSERT_EQ(coordinator->LeftBehindThreads().size(), 1u);
  EXPECT_EQ(coordinator->LeftBehindThreads()[0].info.name, "slow");
  coordinator->EndThread(id);
  EXPECT_TRUE(coordinator->LeftBehindThreads().empty());
  EXPECT_EQ(Names(coordinator->EndedThreads()), Strings{"slow"});
}

TEST(ReadmitTest, AForgottenThreadCanBeAdmittedAgainWhileItIsKept) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("slow"));
  const auto patient = coordinator->BeginJoin({});
  coordinator->FinishJoin(*coordinator->BeginJoin({}));
  EXPECT_TRUE(coordinator->LiveThreads().empty());
  EXPECT_TRUE(coordinator->ReadmitThread(id));
  EXPECT_EQ(Names(coordinator->LiveThreads()), Strings{"slow"});
  coordinator->AbandonJoin(*patient);
  EXPECT_EQ(Names(coordinator->LiveThreads()), Strings{"slow"});
  EXPECT_TRUE(coordinator->ReadmitThread(id)) << "twice is harmless";
}

TEST(ReadmitTest, WhatIsGoneNeedsANewRegistration) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t forgotten = coordinator->RegisterThread(UnstartedThread("forgotten"));
  coordinator->FinishJoin(*coordinator->BeginJoin({}));
  EXPECT_FALSE(coordinator->ReadmitThread(forgotten));
  const std::uint64_t ended = coordinator->RegisterThread(Thread("ended"));
  coordinator->EndThread(ended);
  EXPECT_FALSE(coordinator->ReadmitThread(ended));
  EXPECT_FALSE(coordinator->ReadmitThread(12345));
}

TEST(ReadmitTest, AForgottenThreadThatEndsIsGone) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("slow"));
  const auto patient = coordinator->BeginJoin({});
  coordinator->FinishJoin(*coordinator->BeginJoin({}));
  coordinator->EndThread(id);
  EXPECT_FALSE(coordinator->ReadmitThread(id));
  EXPECT_EQ(coordinator->JoinRemainingMs(*patient, 0), 0);
  coordinator->FinishJoin(*patient);
}

TEST(JoinTest, AnAbandonedJoinLeavesNoTrace) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("worker"));
  const auto join = coordinator->BeginJoin({});
  coordinator->AbandonJoin(*join);
  coordinator->AbandonJoin(*join);
  EXPECT_FALSE(coordinator->joined());
  EXPECT_EQ(Names(coordinator->LiveThreads()), Strings{"worker"});
  EXPECT_EQ(coordinator->FinishJoin(*join).stragglers.size(), 0u);
  EXPECT_FALSE(coordinator->joined()) << "it was over already";
  coordinator->EndThread(id);
}

TEST(JoinTest, AJoinIsFinishedOnce) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  const auto join = coordinator->BeginJoin({});
  EXPECT_NE(coordinator->FinishJoin(*join).stop, nullptr);
  coordinator->ClearStop();
  EXPECT_EQ(coordinator->FinishJoin(*join).stop, nullptr);
  EXPECT_FALSE(coordinator->joined());
}

TEST(JoinTest, HasEndedWhenItsThreadsHaveWhateverTheGracePeriod) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(Thread("worker"));
  const auto join = coordinator->BeginJoin({});
  coordinator->RequestStop(Plain());
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
  EXPECT_FALSE(coordinator->JoinHasEnded(*join));
  coordinator->EndThread(id);
  EXPECT_TRUE(coordinator->JoinHasEnded(*join));
  coordinator->FinishJoin(*join);
}

TEST(JoinTest, WithoutAStopItMayTakeForEver) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Thread("worker"));
  const auto join = coordinator->BeginJoin({});
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), kForever);
  coordinator->AbandonJoin(*join);
}

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void UntilTheClockHasMoved(std::chrono::milliseconds by) {
  const auto start = Clock::now();
  while (Clock::now() - start < by) std::this_thread::yield();
}

TEST(GracePeriodTest, RunsFromTheCallIfTheStopWasThereBefore) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Thread("worker"));
  coordinator->RequestStop(Plain());
  UntilTheClockHasMoved(std::chrono::milliseconds(20));
  const auto before = Clock::now();
  const auto join = coordinator->BeginJoin({});
  const double remaining = coordinator->JoinRemainingMs(*join, kHourMs);
  EXPECT_GE(remaining, kHourMs - MillisecondsSince(before));
  EXPECT_LE(remaining, kHourMs);
  coordinator->AbandonJoin(*join);
}

TEST(GracePeriodTest, RunsFromTheStopIfItCameLater) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Thread("worker"));
  const auto join = coordinator->BeginJoin({});
  UntilTheClockHasMoved(std::chrono::milliseconds(20));
  const auto before = Clock::now();
  coordinator->RequestStop(Plain());
  const double remaining = coordinator->JoinRemainingMs(*join, kHourMs);
  EXPECT_GE(remaining, kHourMs - MillisecondsSince(before));
  UntilTheClockHasMoved(std::chrono::milliseconds(1));
  EXPECT_LT(coordinator->JoinRemainingMs(*join, kHourMs), remaining) << "it runs";
  coordinator->AbandonJoin(*join);
}

TEST(GracePeriodTest, OfABlockingJoinIsNotCutShort) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Thread("worker"));
  coordinator->RequestStop(Plain());
  const auto before = Clock::now();
  EXPECT_EQ(coordinator->BlockingJoin(20, false), Status::kStragglers);
  EXPECT_GE(MillisecondsSince(before), 20);
}

NewThread Owned(std::string name, std::uint64_t owner) {
  NewThread thread = Thread(std::move(name));
  thread.owner = owner;
  return thread;
}

constexpr std::uint64_t kWorker = 7;  // a threadId

// The environment 1, which ran in the worker kWorker, has ended.
Coordinator::Departure Departed(StopRequest request, bool is_cause_known = false) {
  Coordinator::Departure departure;
  departure.owner = 1;
  departure.thread_id = kWorker;
  departure.is_cause_known = is_cause_known;
  departure.request = std::move(request);
  return departure;
}

// The worker itself, watched by its parent's environment.
std::uint64_t RegisterWorker(Coordinator& coordinator) {
  NewThread worker = Owned("worker", 2);
  worker.kind = ThreadKind::kWorker;
  worker.has_thread_id = true;
  worker.thread_id = kWorker;
  return coordinator.RegisterThread(worker);
}

TEST(OwnerTest, OfAWorkerThatIsWatchedItsWatcherSaysFirstWhyItDied) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t worker = RegisterWorker(*coordinator);
  coordinator->RegisterThread(Owned("task in it", 1));
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread("UnavailableError")));
  EXPECT_FALSE(coordinator->ShouldStop()) << "the watcher knows the cause, and is on its way";
  EXPECT_EQ(Names(coordinator->LiveThreads()), Strings{"worker"}) << "a join waits for it";

  coordinator->RequestStop(test::FailureOfThread("RangeError"));
  coordinator->EndThread(worker);
  EXPECT_EQ(coordinator->View().record->error->fields().name, "RangeError");
  EXPECT_EQ(coordinator->View().suppressed_count, 0u);
}

TEST(OwnerTest, OfAWorkerThatEndsWithoutAnErrorItsLostThreadsAreOne) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t worker = RegisterWorker(*coordinator);
  coordinator->RegisterThread(Owned("task in it", 1));
  Joiner joiner(coordinator, kForever);
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread("UnavailableError")));
  coordinator->EndThread(worker);
  EXPECT_EQ(coordinator->View().record->error->fields().name, "UnavailableError");
  EXPECT_EQ(joiner.Result(), Status::kStoppedByError);
}

TEST(OwnerTest, AStopThatWasClearedMeanwhileIsNotFollowedByAnother) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t worker = RegisterWorker(*coordinator);
  coordinator->RegisterThread(Owned("task in it", 1));
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread("UnavailableError")));
  coordinator->RequestStop(Plain());
  coordinator->ClearStop();
  coordinator->EndThread(worker);
  EXPECT_FALSE(coordinator->ShouldStop());
}

TEST(OwnerTest, AKnownCauseIsTheStopAtOnce) {
  const auto coordinator = MakeCoordinator();
  RegisterWorker(*coordinator);
  coordinator->RegisterThread(Owned("task in it", 1));
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread("RangeError"), true));
  EXPECT_EQ(coordinator->View().record->error->fields().name, "RangeError");
}

TEST(OwnerTest, WhenTheirObserverIsGoneTheThreadsEndUnobservedAndRequestAStop) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Owned("watched", 1));
  coordinator->RegisterThread(Owned("watched by another", 2));
  const auto join = coordinator->BeginJoin({});
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread("UnavailableError")));

  EXPECT_EQ(coordinator->View().record->error->fields().name, "UnavailableError");
  EXPECT_EQ(Names(coordinator->LiveThreads()), Strings{"watched by another"});
  ASSERT_EQ(coordinator->EndedThreads().size(), 1u);
  EXPECT_TRUE(coordinator->EndedThreads()[0].unobserved);
  const JoinResult result = coordinator->FinishJoin(*join);
  ASSERT_NE(result.stop, nullptr) << "the join knows why";
  EXPECT_EQ(Names(result.stragglers), Strings{"watched by another"});
}

TEST(OwnerTest, AJoinThatWaitsOnlyForThemEndsWithTheError) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Owned("watched", 1));
  Joiner joiner(coordinator, kForever);
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread("UnavailableError")));
  EXPECT_EQ(joiner.Result(), Status::kStoppedByError);
}

TEST(OwnerTest, AfterAStopTheirEndIsNoError) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Owned("watched", 1));
  coordinator->RequestStop(Plain());
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread()));
  EXPECT_EQ(coordinator->View().suppressed_count, 0u);
  EXPECT_EQ(coordinator->View().record->kind, StopKind::kPlain);
  EXPECT_EQ(coordinator->BlockingJoin(kForever, false), Status::kOk);
}

TEST(OwnerTest, AnObserverOfNothingAliveEndsQuietly) {
  const auto coordinator = MakeCoordinator();
  coordinator->EndThread(coordinator->RegisterThread(Owned("ended", 1)));
  NewThread unstarted = Owned("unstarted", 1);
  unstarted.started = false;
  coordinator->RegisterThread(unstarted);
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread()));
  EXPECT_FALSE(coordinator->ShouldStop());
  EXPECT_TRUE(coordinator->LiveThreads().empty());
}

TEST(OwnerTest, WhatAJoinHasForgottenRequestsNothing) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Owned("forgotten", 1));
  const auto patient = coordinator->BeginJoin({});
  coordinator->FinishJoin(*coordinator->BeginJoin({}));
  coordinator->ClearStop();
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread()));
  EXPECT_FALSE(coordinator->ShouldStop());
  EXPECT_EQ(coordinator->JoinRemainingMs(*patient, 0), 0) << "it has ended all the same";
  coordinator->FinishJoin(*patient);
}

TEST(OwnerTest, AThreadThatIsLeftBehindEndsWithTheEnvironmentThatWatchesIt) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Owned("of a worker", 1));
  coordinator->RequestStop(Plain());
  EXPECT_EQ(coordinator->BlockingJoin(0, true), Status::kOk);
  coordinator->ClearStop();
  EXPECT_EQ(coordinator->LeftBehindThreads().size(), 1u);
  coordinator->EndThreadsOwnedBy(Departed(test::FailureOfThread()));
  EXPECT_TRUE(coordinator->LeftBehindThreads().empty());
  EXPECT_FALSE(coordinator->ShouldStop());
}

TEST(JoinTest, AThreadThatBeginsAtTheLastMomentIsWaitedFor) {
  const auto coordinator = MakeCoordinator();
  NewThread unstarted = Thread("late");
  unstarted.started = false;
  const std::uint64_t late = coordinator->RegisterThread(unstarted);
  const auto join = coordinator->BeginJoin({});
  ASSERT_EQ(coordinator->JoinRemainingMs(*join, kForever), 0) << "nothing is alive";
  coordinator->StartThread(late, std::nullopt);
  EXPECT_FALSE(coordinator->FinishJoin(*join, kForever).is_over);
  EXPECT_FALSE(coordinator->joined());
  coordinator->EndThread(late);
  const JoinResult result = coordinator->FinishJoin(*join, kForever);
  EXPECT_TRUE(result.is_over);
  EXPECT_TRUE(result.stragglers.empty());
}

TEST(JoinTest, TenThousandThreadsCanBeJoined) {
  constexpr int kThreads = 10'000;
  const auto coordinator = MakeCoordinator();
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < kThreads; ++i) ids.push_back(coordinator->RegisterThread(Thread("t")));
  Joiner joiner(coordinator, 0);
  for (const std::uint64_t id : ids) {
    ASSERT_FALSE(coordinator->joined());
    coordinator->EndThread(id);
  }
  EXPECT_EQ(joiner.Result(), Status::kOk);
}

// With real threads, as a program uses them.
TEST(JoinTest, ThreadsThatLoopUntilTheStopAreJoined) {
  constexpr int kThreads = 4;
  const auto coordinator = MakeCoordinator();
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    const std::uint64_t id =
        coordinator->RegisterThread(UnstartedThread("loop " + std::to_string(i)));
    threads.emplace_back([&, id] {
      coordinator->EnterThread(id);
      coordinator->WaitForStop(Deadline::Never());
      ++ended;
      coordinator->EndThread(id);
    });
  }
  coordinator->RequestStop(Plain());
  // The join may end before all threads have started: it does not wait for those.
  EXPECT_EQ(coordinator->BlockingJoin(kForever, false), Status::kOk);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ended, kThreads);
}

}  // namespace
}  // namespace allstop::core
