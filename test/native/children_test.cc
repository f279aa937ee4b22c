#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/coordinator.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::Error;
using test::Failure;
using test::kForever;
using test::MakeCoordinator;
using test::Named;
using test::Plain;

TEST(ChildTest, StopsWhenItsParentDoesAndKnowsThatItWasTheParent) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named("child"));
  const auto grandchild = child->CreateChild(Named("grandchild"));
  EXPECT_TRUE(child->has_parent());
  StopRequest request = Failure();
  request.requester.thread_name = "main";
  parent->RequestStop(request);

  const auto original = parent->View().record;
  for (const auto& heir : {child, grandchild}) {
    EXPECT_TRUE(heir->ShouldStop());
    EXPECT_EQ(heir->generation(), 1u);
    const auto record = heir->View().record;
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->id, original->id) << "it is the same stop";
    EXPECT_EQ(record->error, original->error);
    EXPECT_EQ(record->requested_at, original->requested_at);
    EXPECT_EQ(record->requester().via, Via::kParent);
    EXPECT_EQ(record->requester().thread_name, "main");
  }
  EXPECT_EQ(original->requester().via, Via::kException);
}

TEST(ChildTest, JudgesByItsOwnTypesWhatIsClean) {
  const auto parent = Coordinator::Create({"parent", {}});
  const auto child = parent->CreateChild({"child", {"TypeError"}});
  const auto grandchild = child->CreateChild({"grandchild", {}});
  parent->RequestStop(Failure("TypeError"));
  EXPECT_EQ(parent->View().record->kind, StopKind::kError);
  EXPECT_EQ(child->View().record->kind, StopKind::kClean);
  EXPECT_EQ(grandchild->View().record->kind, StopKind::kError);
}

TEST(ChildTest, ItsOwnStopStaysItsOwn) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  const auto sibling = parent->CreateChild(Named());
  const auto grandchild = child->CreateChild(Named());
  child->RequestStop(Failure());
  EXPECT_FALSE(parent->ShouldStop());
  EXPECT_FALSE(sibling->ShouldStop());
  EXPECT_TRUE(grandchild->ShouldStop());
}

TEST(ChildTest, BornUnderAStoppedParentItIsStopped) {
  const auto parent = MakeCoordinator();
  parent->RequestStop(Failure());
  const auto child = parent->CreateChild(Named());
  EXPECT_TRUE(child->ShouldStop());
  EXPECT_TRUE(child->WaitForStop(Deadline::Never()));
  EXPECT_EQ(child->View().record->id, parent->View().record->id);
  EXPECT_EQ(child->View().record->requester().via, Via::kParent);
  EXPECT_EQ(child->BlockingJoin(0, false), Status::kStoppedByError);
}

TEST(ChildTest, KeepsItsOwnRecordWhenTheParentStopsLater) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  child->RequestStop(Plain());
  const auto own = child->View().record;
  parent->RequestStop(Failure());
  EXPECT_EQ(child->View().record, own);
  EXPECT_EQ(child->View().suppressed_count, 0u);
  EXPECT_EQ(child->generation(), 1u);
}

TEST(ChildTest, TheParentsStopIsAnEchoWhenItComesBackThroughTheChild) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  const auto error = Error("TypeError");
  parent->RequestStop(Failure(error));
  EXPECT_EQ(child->RequestStop(Failure(error)), StopOutcome::kEcho);
}

TEST(ChildTest, AClearOfTheParentLeavesItStopped) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  parent->RequestStop(Plain());
  EXPECT_EQ(parent->ClearStop(), Status::kOk);
  EXPECT_FALSE(parent->ShouldStop());
  EXPECT_TRUE(child->ShouldStop());
  EXPECT_EQ(child->ClearStop(), Status::kOk) << "now it may";
  EXPECT_FALSE(child->ShouldStop());
  parent->RequestStop(Plain());
  EXPECT_TRUE(child->ShouldStop());
  EXPECT_EQ(child->generation(), 2u);
  EXPECT_EQ(child->View().record->generation, 2u);
}

TEST(ChildTest, CountsItsStopsByItself) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  child->RequestStop(Plain());
  child->ClearStop();
  parent->RequestStop(Plain());
  EXPECT_EQ(parent->View().record->generation, 1u);
  EXPECT_EQ(child->View().record->generation, 2u);
}

TEST(ChildTest, CannotBeClearedUnderAStoppedParent) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  const auto grandchild = child->CreateChild(Named());
  parent->RequestStop(Plain());
  child->BlockingJoin(0, false);
  const auto record = child->View().record;
  EXPECT_EQ(child->ClearStop(), Status::kFailedPrecondition);
  EXPECT_EQ(grandchild->ClearStop(), Status::kFailedPrecondition);
  EXPECT_TRUE(child->ShouldStop()) << "a refused call changes nothing";
  EXPECT_TRUE(child->joined());
  EXPECT_EQ(child->View().record, record);
}

TEST(ChildTest, AJoinedChildIsStoppedByItsParentAllTheSame) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  child->BlockingJoin(0, false);
  parent->RequestStop(Failure());
  EXPECT_TRUE(child->ShouldStop());
}

TEST(ChildTest, TheParentsStopWakesItsWaitersAndJoinsAndRunsItsCallbacks) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  const std::uint64_t straggler = child->RegisterThread(test::Thread("straggler"));
  std::thread::id runner;
  child->OnStop(
      [](void* context) { *static_cast<std::thread::id*>(context) = std::this_thread::get_id(); },
      &runner);
  test::Barrier begun(3);
  std::thread waiter([&] {
    begun.Arrive();
    EXPECT_TRUE(child->WaitForStop(Deadline::Never()));
  });
  std::thread joiner([&] {
    begun.Arrive();
    EXPECT_EQ(child->BlockingJoin(0, false), Status::kStoppedByError);
  });
  begun.Arrive();
  parent->RequestStop(Failure());
  EXPECT_EQ(runner, std::this_thread::get_id());
  waiter.join();
  joiner.join();
  child->EndThread(straggler);
}

TEST(ChildTest, TheParentsJoinDoesNotWaitForItsThreads) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  child->RegisterThread(test::Thread("of the child"));
  EXPECT_EQ(parent->BlockingJoin(kForever, false), Status::kOk);
  EXPECT_FALSE(child->joined());
}

TEST(ChildTest, KeepsItsParentAliveAndNotTheOtherWayRound) {
  auto parent = MakeCoordinator();
  const std::weak_ptr<Coordinator> weak_parent = parent;
  auto child = parent->CreateChild(Named());
  const std::weak_ptr<Coordinator> weak_child = child;
  parent.reset();
  EXPECT_FALSE(weak_parent.expired());
  child.reset();
  EXPECT_TRUE(weak_child.expired());
  EXPECT_TRUE(weak_parent.expired());
}

TEST(ChildTest, ItsLastReferenceMayGoInACallbackOfTheStop) {
  const auto parent = MakeCoordinator();
  auto child = parent->CreateChild(Named());
  child->OnStop([](void* context) { static_cast<std::shared_ptr<Coordinator>*>(context)->reset(); },
                &child);
  parent->RequestStop(Plain());
  EXPECT_EQ(child, nullptr);
  EXPECT_EQ(parent->ClearStop(), Status::kOk);
  parent->RequestStop(Plain());
}

// A stop descends with a lock held per level, and ThreadSanitizer cannot handle a thread that
// holds more than 64 locks.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ALLSTOP_TEST_FEW_LOCKS
#endif
#elif defined(__SANITIZE_THREAD__)
#define ALLSTOP_TEST_FEW_LOCKS
#endif
#if defined(ALLSTOP_TEST_FEW_LOCKS)
constexpr int kDescent = 60;
#else
constexpr int kDescent = Coordinator::kMaxDepth;
#endif

std::vector<std::shared_ptr<Coordinator>> ChainOf(int levels) {
  std::vector<std::shared_ptr<Coordinator>> chain = {MakeCoordinator()};
  for (int i = 0; i < levels; ++i) chain.push_back(chain.back()->CreateChild(Named()));
  return chain;
}

TEST(DepthTest, ThereAreSoManyLevelsAndNoMore) {
  const auto chain = ChainOf(Coordinator::kMaxDepth);
  ASSERT_NE(chain.back(), nullptr);
  EXPECT_EQ(chain.back()->CreateChild(Named()), nullptr);
  EXPECT_NE(chain[chain.size() - 2]->CreateChild(Named()), nullptr) << "the others may";
}

TEST(DepthTest, AStopReachesTheDeepestLevel) {
  const auto chain = ChainOf(kDescent);
  chain.front()->RequestStop(Plain());
  for (const auto& coordinator : chain) ASSERT_TRUE(coordinator->ShouldStop());
}

// Invariant 3 of coordinator.cc: a child whose ClearStop races with a stop of the parent is
// stopped when the parent is.
TEST(ChildRaceTest, NoClearOfAChildSlipsThroughAStopOfTheParent) {
  constexpr int kRounds = 10'000;
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  const auto grandchild = child->CreateChild(Named());
  test::Barrier start(2);
  test::Barrier end(2);
  std::thread clearer([&] {
    for (int round = 0; round < kRounds; ++round) {
      start.Arrive();
      for (int attempt = 0; attempt < 8; ++attempt) {  // so that some fall into the stop
        child->ClearStop();
        grandchild->ClearStop();
      }
      end.Arrive();
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    start.Arrive();
    parent->RequestStop(Plain());
    EXPECT_TRUE(child->ShouldStop());
    EXPECT_TRUE(grandchild->ShouldStop());
    end.Arrive();
    ASSERT_TRUE(child->ShouldStop());
    ASSERT_TRUE(grandchild->ShouldStop());
    ASSERT_EQ(child->View().record->id, parent->View().record->id);
    parent->ClearStop();
    child->ClearStop();
    grandchild->ClearStop();
  }
  clearer.join();
}

TEST(ChildRaceTest, AChildThatDiesWhileItsParentStopsIsLeftAlone) {
  for (int round = 0; round < 2'000; ++round) {
    const auto parent = MakeCoordinator();
    std::vector<std::shared_ptr<Coordinator>> children;
    for (int i = 0; i < 4; ++i) children.push_back(parent->CreateChild(Named()));
    const auto survivor = parent->CreateChild(Named());
    test::Barrier start(2);
    std::thread killer([&] {
      start.Arrive();
      children.clear();
    });
    start.Arrive();
    parent->RequestStop(Plain());
    killer.join();
    ASSERT_TRUE(survivor->ShouldStop());
  }
}

TEST(ChildRaceTest, AChildThatIsBornWhileItsParentStopsIsStopped) {
  for (int round = 0; round < 2'000; ++round) {
    const auto parent = MakeCoordinator();
    std::vector<std::shared_ptr<Coordinator>> children;
    test::Barrier start(2);
    std::thread mother([&] {
      start.Arrive();
      for (int i = 0; i < 8; ++i) children.push_back(parent->CreateChild(Named()));
    });
    start.Arrive();
    parent->RequestStop(Plain());
    mother.join();
    for (const auto& child : children) ASSERT_TRUE(child->ShouldStop());
  }
}

}  // namespace
}  // namespace allstop::core
