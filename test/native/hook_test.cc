#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/coordinator.h"
#include "core/unseen_errors.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::Error;
using test::Failure;
using test::FailureOfThread;
using test::MakeCoordinator;
using test::Names;
using test::Plain;
using test::Thread;

constexpr double kLongMs = 60'000;

NewThread Hook(std::string name = "hook", std::uint64_t owner = 1) {
  NewThread hook = Thread(std::move(name), ThreadKind::kHook);
  hook.started = false;
  hook.owner = owner;
  return hook;
}

StopRequest FailureOfHook(const std::string& name = "TypeError") {
  StopRequest request = FailureOfThread(name);
  request.requester.via = Via::kHook;
  return request;
}

bool IsAlive(const Coordinator& coordinator) { return coordinator.LiveThreads().at(0).alive; }

TEST(HookTest, BeforeTheStopItHoldsUpNoJoin) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Hook());
  EXPECT_FALSE(IsAlive(*coordinator));
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kOk);
  EXPECT_EQ(Names(coordinator->LiveThreads()), std::vector<std::string>{"hook"});
}

TEST(HookTest, FromTheStopOnItIsAliveUntilItEnds) {
  const auto coordinator = MakeCoordinator();
  const auto id = coordinator->RegisterThread(Hook());
  coordinator->RequestStop(Plain());
  EXPECT_TRUE(IsAlive(*coordinator));
  const auto stop = coordinator->TakeStopOfHook(id);
  EXPECT_EQ(stop, coordinator->View().record);
  EXPECT_EQ(coordinator->TakeStopOfHook(id), nullptr);
  EXPECT_TRUE(coordinator->EndHook(id));
  EXPECT_EQ(Names(coordinator->EndedThreads()), std::vector<std::string>{"hook"});
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kOk);
}

// The join has begun before the stop, when the hook was not alive: the stop adds it.
TEST(HookTest, AJoinThatSeesTheStopWaitsForIt) {
  const auto coordinator = MakeCoordinator();
  const auto id = coordinator->RegisterThread(Hook());
  const auto worker = coordinator->RegisterThread(Thread("worker"));
  const auto join = coordinator->BeginJoin({});
  coordinator->RequestStop(Plain());
  coordinator->EndThread(worker);
  EXPECT_FALSE(coordinator->JoinHasEnded(*join));
  EXPECT_GT(coordinator->JoinRemainingMs(*join, kLongMs), 0);
  coordinator->TakeStopOfHook(id);
  coordinator->EndHook(id);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, kLongMs), 0);
  EXPECT_TRUE(coordinator->FinishJoin(*join, kLongMs).stragglers.empty());
}

TEST(HookTest, ABlockedJoinOfANativeThreadWaitsForIt) {
  const auto coordinator = MakeCoordinator();
  const auto id = coordinator->RegisterThread(Hook());
  coordinator->RequestStop(Plain());
  test::Gate over;
  std::thread joiner([&] {
    EXPECT_EQ(coordinator->BlockingJoin(kLongMs, false), Status::kOk);
    EXPECT_TRUE(coordinator->EndedThreads().size() == 1) << "the hook had not ended";
    over.Open();
  });
  coordinator->TakeStopOfHook(id);
  coordinator->EndHook(id);
  over.Wait();
  joiner.join();
}

TEST(HookTest, RegisteredWhileStoppedItIsAliveAtOnce) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  const auto id = coordinator->RegisterThread(Hook());
  EXPECT_TRUE(IsAlive(*coordinator));
  EXPECT_NE(coordinator->TakeStopOfHook(id), nullptr);
}

TEST(HookTest, StandsForTheNextStop) {
  const auto coordinator = MakeCoordinator();
  const auto id = coordinator->RegisterThread(Hook());
  for (int stop = 0; stop < 3; ++stop) {
    coordinator->RequestStop(Plain());
    EXPECT_NE(coordinator->TakeStopOfHook(id), nullptr);
    EXPECT_TRUE(coordinator->EndHook(id));
    EXPECT_TRUE(coordinator->LiveThreads().empty()) << "it has run for this stop";
    EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kOk);
    coordinator->ClearStop();
    EXPECT_EQ(Names(coordinator->LiveThreads()), std::vector<std::string>{"hook"});
  }
}

TEST(HookTest, AStopThatIsClearedAtOnceIsStillRunFor) {
  const auto coordinator = MakeCoordinator();
  const auto id = coordinator->RegisterThread(Hook());
  coordinator->RequestStop(Failure("RangeError"));
  coordinator->ClearStop();
  const auto stop = coordinator->TakeStopOfHook(id);
  ASSERT_NE(stop, nullptr);
  EXPECT_EQ(stop->error->fields().name, "RangeError");
}

TEST(HookTest, RunsAgainForAStopThatComesWhileItRuns) {
  const auto coordinator = MakeCoordinator();
  const auto id = coordinator->RegisterThread(Hook());
  coordinator->RequestStop(Plain());
  coordinator->TakeStopOfHook(id);
  coordinator->ClearStop();
  coordinator->RequestStop(Plain());
  EXPECT_FALSE(coordinator->EndHook(id));
  EXPECT_TRUE(IsAlive(*coordinator));
  EXPECT_NE(coordinator->TakeStopOfHook(id), nullptr);
  EXPECT_TRUE(coordinator->EndHook(id));
}

TEST(HookTest, LeftBehindItComesBackWhenItEnds) {
  const auto coordinator = MakeCoordinator();
  const auto id = coordinator->RegisterThread(Hook());
  coordinator->RequestStop(Plain());
  coordinator->TakeStopOfHook(id);
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kStragglers);
  EXPECT_EQ(coordinator->LeftBehindThreads().size(), 1u);
  EXPECT_EQ(coordinator->BlockingJoin(kLongMs, false), Status::kOk) << "it waits no more";
  EXPECT_TRUE(coordinator->EndHook(id));
  EXPECT_TRUE(coordinator->LeftBehindThreads().empty());
  coordinator->ClearStop();
  coordinator->RequestStop(Plain());
  EXPECT_TRUE(IsAlive(*coordinator));
}

TEST(HookTest, GoesWithItsEnvironmentAndStopsNothing) {
  const auto coordinator = MakeCoordinator();
  const auto id = coordinator->RegisterThread(Hook("hook", 7));
  Coordinator::Departure departure;
  departure.owner = 7;
  departure.request = FailureOfThread();
  coordinator->EndThreadsOwnedBy(departure);
  EXPECT_FALSE(coordinator->ShouldStop());
  EXPECT_TRUE(coordinator->LiveThreads().empty());
  coordinator->RequestStop(Plain());
  EXPECT_EQ(coordinator->TakeStopOfHook(id), nullptr);
  EXPECT_EQ(coordinator->BlockingJoin(kLongMs, false), Status::kOk);
}

TEST(HookTest, EndsWithItsEnvironmentWhileItRuns) {
  const auto coordinator = MakeCoordinator();
  coordinator->RegisterThread(Hook("hook", 7));
  coordinator->RequestStop(Plain());
  const auto join = coordinator->BeginJoin({});
  Coordinator::Departure departure;
  departure.owner = 7;
  departure.request = FailureOfThread();
  coordinator->EndThreadsOwnedBy(departure);
  EXPECT_TRUE(coordinator->JoinHasEnded(*join));
  coordinator->AbandonJoin(*join);
  EXPECT_TRUE(coordinator->EndedThreads().at(0).unobserved);
}

TEST(HookTest, IsToldOfTheStopOfAParent) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(test::Named("child"));
  const auto id = child->RegisterThread(Hook());
  parent->RequestStop(Plain());
  EXPECT_TRUE(IsAlive(*child));
  EXPECT_EQ(child->TakeStopOfHook(id), child->View().record);
}

TEST(HookTest, ItsErrorIsThrownOnlyIfNothingElseHasFailed) {
  const auto alone = MakeCoordinator();
  alone->RequestStop(Plain());
  alone->Report(FailureOfHook());
  EXPECT_EQ(alone->BlockingJoin(0, false), Status::kStoppedByError);

  const auto after = MakeCoordinator();
  after->RequestStop(Plain());
  after->RequestStop(FailureOfThread("RangeError"));  // is suppressed
  after->Report(FailureOfHook());
  EXPECT_EQ(after->View().suppressed_count, 2u);
  EXPECT_EQ(after->BlockingJoin(0, false), Status::kOk);

  const auto joined = MakeCoordinator();
  joined->RequestStop(Plain());
  EXPECT_EQ(joined->BlockingJoin(0, false), Status::kOk);
  joined->Report(FailureOfHook());
  EXPECT_EQ(joined->View().suppressed_count, 1u);
}

// ------------------------------------------------------------ errors that nobody was given

StopRequest Thrown(const std::string& name = "TypeError") {
  StopRequest request = FailureOfThread(name);
  request.is_thrown = true;
  return request;
}

std::vector<std::string> Unseen() {
  std::vector<std::string> names;
  for (const auto& each : UnseenErrors::Get().Take().errors) {
    names.push_back(each.error->fields().name);
  }
  return names;
}

TEST(UnseenErrorsTest, AreThoseThatThreadsThrewAndNoJoinGave) {
  Unseen();
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Thrown("RangeError"));
  coordinator->RequestStop(Thrown("TypeError"));  // is suppressed
  EXPECT_EQ(coordinator->BlockingJoin(0, false), Status::kStoppedByError);
  EXPECT_EQ(Unseen(), std::vector<std::string>{"TypeError"});
  EXPECT_TRUE(Unseen().empty());
}

TEST(UnseenErrorsTest, AreNeitherCleanNorPassedNorEchoes) {
  Unseen();
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Failure("RangeError"));
  StopRequest echo = Thrown("RangeError");
  echo.error = coordinator->View().record->error;
  echo.echo_ids = {echo.error->fields().id};
  coordinator->RequestStop(echo);
  coordinator->RequestStop(Thrown("OutOfRangeError"));
  EXPECT_TRUE(Unseen().empty());
}

TEST(UnseenErrorsTest, DoNotComeBackWhenTheyAreThrownAgain) {
  Unseen();
  const StopRequest request = Thrown();
  const auto one = MakeCoordinator();
  one->RequestStop(request);
  EXPECT_EQ(one->BlockingJoin(0, false), Status::kStoppedByError);
  MakeCoordinator()->RequestStop(request);
  EXPECT_TRUE(Unseen().empty());
}

TEST(UnseenErrorsTest, AreKeptUpToALimit) {
  Unseen();
  for (std::size_t error = 0; error < UnseenErrors::kMaxUnseen + 3; ++error) {
    UnseenErrors::Get().Note({Error("Error" + std::to_string(error)), "a test", nullptr});
  }
  const auto report = UnseenErrors::Get().Take();
  EXPECT_EQ(report.errors.size(), UnseenErrors::kMaxUnseen);
  EXPECT_EQ(report.dropped, 3u);
  EXPECT_EQ(report.errors.front().error->fields().name, "Error3");
}

}  // namespace
}  // namespace allstop::core
