// Stops of several processes: an arbiter in another process decides which of them is the record.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
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
using test::kForever;
using test::MakeCoordinator;
using test::Plain;
using test::Thread;

std::shared_ptr<Coordinator> MakeProvisional() {
  auto coordinator = MakeCoordinator();
  coordinator->AwaitAnswer();
  return coordinator;
}

StopRequest PlainOf(std::string id, std::string thread) {
  StopRequest request = Plain();
  request.record_id = std::move(id);
  request.requester.thread_name = std::move(thread);
  request.has_caller = false;
  return request;
}

class Counter final : public Observer {
 public:
  void OnStop() override { ++stops; }
  void OnClear() override { ++clears; }
  void OnJoinProgress() override { ++progress; }

  int stops = 0;
  int clears = 0;
  int progress = 0;
};

TEST(AnswerTest, TheWinnerTakesTheRecordAndTheLosersErrorIsSuppressed) {
  const auto coordinator = MakeProvisional();
  const auto observer = std::make_shared<Counter>();
  coordinator->AddObserver(observer, nullptr);
  coordinator->SetInterested(*observer, true);
  const StopRequest loser = Failure("TypeError");
  const StopRequest winner = Failure("RangeError");
  coordinator->RequestStop(loser);
  const auto generation = coordinator->generation();
  coordinator->AnswerStop(winner);

  const StopView view = coordinator->View();
  EXPECT_EQ(view.record->id, winner.error->fields().id);
  EXPECT_EQ(view.record->error, winner.error);
  EXPECT_EQ(view.record->kind, StopKind::kError);
  ASSERT_EQ(view.suppressed.size(), 1u);
  EXPECT_EQ(view.suppressed[0].error, loser.error);
  EXPECT_EQ(view.suppressed[0].origin->Get().via, Via::kException);
  EXPECT_EQ(view.suppressed_count, 1u);
  // The stop is the same one: OnStop is not called again, and the flag has not fallen.
  EXPECT_EQ(coordinator->generation(), generation);
  EXPECT_EQ(observer->stops, 1);
  EXPECT_EQ(observer->clears, 0);
  EXPECT_EQ(coordinator->TakeUnseen(*observer), view.record);
  EXPECT_EQ(coordinator->BlockingJoin(kForever, false), Status::kStoppedByError);
  coordinator->RemoveObserver(*observer);
}

TEST(AnswerTest, WhoWonKeepsItsRecord) {
  const auto coordinator = MakeProvisional();
  const StopRequest own = Failure();
  coordinator->RequestStop(own);
  const auto record = coordinator->View().record;
  coordinator->AnswerStop(own);
  EXPECT_EQ(coordinator->View().record, record);
  EXPECT_EQ(coordinator->View().suppressed_count, 0u);
}

TEST(AnswerTest, AnAnswerToNoQuestionIsAStopUnderItsOwnId) {
  const auto coordinator = MakeProvisional();
  coordinator->AnswerStop(PlainOf("elsewhere-1", "far"));
  EXPECT_TRUE(coordinator->ShouldStop());
  const auto record = coordinator->View().record;
  EXPECT_EQ(record->id, "elsewhere-1");
  EXPECT_EQ(record->requester().thread_name, "far");
  coordinator->AnswerStop(PlainOf("elsewhere-2", "further"));  // the first answer stands
  EXPECT_EQ(coordinator->View().record, record);
}

TEST(AnswerTest, APlainLoserLeavesNothing) {
  const auto coordinator = MakeProvisional();
  coordinator->RequestStop(Plain());
  coordinator->AnswerStop(PlainOf("elsewhere", "far"));
  EXPECT_EQ(coordinator->View().record->id, "elsewhere");
  EXPECT_EQ(coordinator->View().suppressed_count, 0u);
}

TEST(AnswerTest, TheLosersErrorIsAnEchoWhenItComesBack) {
  const auto coordinator = MakeProvisional();
  const StopRequest loser = Failure();
  coordinator->RequestStop(loser);
  coordinator->AnswerStop(PlainOf("elsewhere", "far"));
  EXPECT_EQ(coordinator->RequestStop(loser), StopOutcome::kEcho);
  EXPECT_EQ(coordinator->View().suppressed_count, 1u);
}

TEST(AnswerTest, WithoutOneAnErrorThatNamesNoStopIsNoEcho) {
  const auto coordinator = MakeProvisional();
  coordinator->RequestStop(Plain());
  StopRequest late = Failure();
  late.echo_ids.emplace_back();
  EXPECT_EQ(coordinator->RequestStop(late), StopOutcome::kSuppressed);
}

TEST(AnswerTest, JoinsWaitForIt) {
  const auto coordinator = MakeProvisional();
  const auto observer = std::make_shared<Counter>();
  coordinator->AddObserver(observer, nullptr);
  const auto before = coordinator->BeginJoin({}, observer);
  EXPECT_EQ(coordinator->JoinRemainingMs(*before, 0), 0);  // without a stop no answer is needed
  coordinator->RequestStop(Failure());
  const auto after = coordinator->BeginJoin({}, observer);
  EXPECT_EQ(coordinator->JoinRemainingMs(*before, 0), kForever);
  EXPECT_EQ(coordinator->JoinRemainingMs(*after, 0), kForever);
  const int progress = observer->progress;
  const StopRequest winner = Failure("RangeError");
  coordinator->AnswerStop(winner);
  EXPECT_EQ(observer->progress, progress + 2);
  EXPECT_EQ(coordinator->JoinRemainingMs(*before, 0), 0);
  const JoinResult result = coordinator->FinishJoin(*before);
  EXPECT_EQ(result.error, winner.error);
  EXPECT_EQ(result.stop, coordinator->View().record);
  coordinator->AbandonJoin(*after);
  coordinator->RemoveObserver(*observer);
}

TEST(AnswerTest, ABlockingJoinWaitsForItPastItsGracePeriod) {
  const auto coordinator = MakeProvisional();
  coordinator->RegisterThread(Thread("endless"));
  coordinator->RequestStop(Plain());
  Status status = Status::kOk;
  test::Gate joining;
  std::thread joiner([&] {
    joining.Open();
    status = coordinator->BlockingJoin(0, false);
  });
  joining.Wait();
  coordinator->AnswerStop(Failure());
  joiner.join();
  EXPECT_EQ(status, Status::kStoppedByError);  // and not kStragglers
}

TEST(AnswerTest, WithoutOneWhatStandsIsTheRecord) {
  const auto coordinator = MakeProvisional();
  coordinator->RequestStop(Failure());
  const auto record = coordinator->View().record;
  const auto join = coordinator->BeginJoin({});
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), kForever);
  coordinator->AnswerNone();
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
  EXPECT_EQ(coordinator->FinishJoin(*join).error, record->error);
  coordinator->AnswerStop(Failure("RangeError"));  // too late: the join has thrown the error
  EXPECT_EQ(coordinator->View().record, record);
}

TEST(AnswerTest, AStopOfAnotherProcessIsOneAlsoAfterAJoin) {
  const auto arbiter = MakeCoordinator();
  const auto other = MakeProvisional();
  for (const auto& each : {arbiter, other}) EXPECT_EQ(each->BlockingJoin(0, false), Status::kOk);
  StopRequest relayed = Failure();
  relayed.record_id = relayed.error->fields().id;
  relayed.has_caller = false;
  EXPECT_EQ(arbiter->RequestStop(relayed), StopOutcome::kStopped);
  other->AnswerStop(relayed);
  for (const auto& each : {arbiter, other}) {
    EXPECT_TRUE(each->ShouldStop());
    EXPECT_EQ(each->BlockingJoin(0, false), Status::kStoppedByError);
  }
}

TEST(AnswerTest, AJoinThatComesUponAProvisionalRecordIsNotOver) {
  const auto coordinator = MakeProvisional();
  const auto join = coordinator->BeginJoin({});
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
  coordinator->RequestStop(Failure());  // after JoinRemainingMs, before FinishJoin
  EXPECT_FALSE(coordinator->FinishJoin(*join).is_over);
  EXPECT_FALSE(coordinator->joined());
  const StopRequest winner = Failure("RangeError");
  coordinator->AnswerStop(winner);
  const JoinResult result = coordinator->FinishJoin(*join);
  EXPECT_TRUE(result.is_over);
  EXPECT_EQ(result.error, winner.error);
}

TEST(AnswerTest, AReportedErrorIsSuppressedAsInAnyOtherStop) {
  const auto coordinator = MakeProvisional();
  const StopRequest reported = Failure("EvalError");
  coordinator->Report(reported);
  coordinator->RequestStop(Plain());
  coordinator->AnswerStop(Failure("RangeError"));
  ASSERT_EQ(coordinator->View().suppressed.size(), 1u);
  EXPECT_EQ(coordinator->View().suppressed[0].error, reported.error);
}

TEST(AnswerTest, JoinsOfChildrenWaitForItToo) {
  const auto parent = MakeProvisional();
  const auto child = parent->CreateChild(test::Named("child"));
  const auto grandchild = child->CreateChild(test::Named("grandchild"));
  const StopRequest loser = Failure("TypeError");
  parent->RequestStop(loser);
  const auto observer = std::make_shared<Counter>();
  child->AddObserver(observer, nullptr);
  const auto join = child->BeginJoin({}, observer);
  EXPECT_EQ(child->JoinRemainingMs(*join, 0), kForever);
  Status status = Status::kOk;
  test::Gate joining;
  std::thread joiner([&] {
    joining.Open();
    status = grandchild->BlockingJoin(0, false);
  });
  joining.Wait();
  const StopRequest winner = Failure("RangeError");
  parent->AnswerStop(winner);
  joiner.join();
  EXPECT_EQ(status, Status::kStoppedByError);
  EXPECT_EQ(observer->progress, 1);
  EXPECT_EQ(child->JoinRemainingMs(*join, 0), 0);
  EXPECT_EQ(child->FinishJoin(*join).error, winner.error);
  StopRequest again = loser;
  again.has_caller = false;  // after a join a request with a caller would be kRefused
  for (const auto& each : {child, grandchild}) {
    ASSERT_EQ(each->View().suppressed.size(), 1u);
    EXPECT_EQ(each->View().suppressed[0].error, loser.error);
    EXPECT_EQ(each->RequestStop(again), StopOutcome::kEcho);
  }
  child->RemoveObserver(*observer);
}

// Hangs if a join goes to sleep after it has tested its predicate and before the answer comes.
TEST(AnswerTest, NoJoinOfAChildMissesIt) {
  constexpr int kRounds = 20'000;
  std::vector<std::shared_ptr<Coordinator>> parents;
  std::vector<std::shared_ptr<Coordinator>> children;
  for (int round = 0; round < kRounds; ++round) {
    parents.push_back(MakeProvisional());
    children.push_back(parents.back()->CreateChild(test::Named()));
    parents.back()->RequestStop(Plain());
  }
  std::atomic<int> joining{0};
  std::thread joiner([&] {
    for (const auto& child : children) {
      ++joining;
      child->BlockingJoin(0, false);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    while (joining.load() <= round) {
    }
    parents[static_cast<std::size_t>(round)]->AnswerNone();
  }
  joiner.join();
}

// A record that is provisional, and then cleared, would get no answer: its joins would never end,
// and the answer would stop a child that still has it a second time.
TEST(AnswerTest, WhoAwaitsItCannotBeCleared) {
  const auto parent = MakeProvisional();
  const auto child = parent->CreateChild(test::Named("child"));
  EXPECT_EQ(parent->ClearStop(), Status::kFailedPrecondition);
  const auto join = parent->BeginJoin({});
  parent->RequestStop(Plain());
  EXPECT_EQ(parent->ClearStop(), Status::kFailedPrecondition);
  EXPECT_EQ(child->ClearStop(), Status::kFailedPrecondition);
  EXPECT_TRUE(parent->ShouldStop());
  parent->AnswerStop(PlainOf("elsewhere", "far"));
  EXPECT_EQ(child->View().record->id, "elsewhere");
  EXPECT_EQ(parent->JoinRemainingMs(*join, 0), 0);
  EXPECT_EQ(parent->ClearStop(), Status::kFailedPrecondition);
  parent->AbandonJoin(*join);
}

TEST(AnswerTest, AnAnswerStopsAChildThatKeptAnEarlierStop) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(test::Named("child"));
  parent->RequestStop(Plain());
  EXPECT_EQ(parent->ClearStop(), Status::kOk);
  EXPECT_TRUE(child->ShouldStop());
  parent->AwaitAnswer();
  parent->AnswerStop(PlainOf("elsewhere", "far"));
  EXPECT_EQ(parent->View().record->id, "elsewhere");
  EXPECT_NE(child->View().record->id, "elsewhere");
}

TEST(AnswerTest, ChildrenThatInheritedTheRecordInheritTheWinners) {
  const auto parent = MakeProvisional();
  const auto own = parent->CreateChild(test::Named("own"));
  own->RequestStop(Failure("EvalError"));
  const auto child = parent->CreateChild(test::Named("child"));
  const auto grandchild = child->CreateChild(test::Named("grandchild"));
  parent->RequestStop(Failure("TypeError"));
  const StopRequest winner = Failure("RangeError");
  parent->AnswerStop(winner);
  for (const auto& each : {child, grandchild}) {
    const auto record = each->View().record;
    EXPECT_EQ(record->id, winner.error->fields().id) << each->name();
    EXPECT_EQ(record->error, winner.error);
    EXPECT_EQ(record->inherited_from, parent->View().record);
    EXPECT_EQ(record->generation, 1u);
  }
  EXPECT_EQ(own->View().record->error->fields().name, "EvalError");
}

}  // namespace
}  // namespace allstop::core
