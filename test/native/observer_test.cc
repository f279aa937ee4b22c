#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
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
using test::MakeCoordinator;
using test::Named;
using test::Plain;

// Counts the calls.
class Listener : public Observer {
 public:
  void OnStop() override { ++stops; }
  void OnClear() override { ++clears; }
  void OnError() override { ++errors; }
  void OnJoinProgress() override { ++progress; }

  std::atomic<int> stops{0};
  std::atomic<int> clears{0};
  std::atomic<int> errors{0};
  std::atomic<int> progress{0};
};

TEST(MirrorTest, FollowsTheFlagFromItsAdditionToItsRemoval) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  Mirror mirror{{-1}, {-1}};
  coordinator->AddObserver(listener, &mirror);
  EXPECT_EQ(mirror.stopped, 0) << "whatever it held before";
  coordinator->RequestStop(Plain());
  EXPECT_EQ(mirror.stopped, 1);
  coordinator->ClearStop();
  EXPECT_EQ(mirror.stopped, 0);
  coordinator->RemoveObserver(*listener);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(mirror.stopped, 0) << "whoever has the word now, it is not ours";
}

TEST(MirrorTest, CountsTheStopsAlsoThoseBeforeItsAddition) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  coordinator->ClearStop();
  const auto listener = std::make_shared<Listener>();
  Mirror mirror{{-1}, {-1}};
  coordinator->AddObserver(listener, &mirror);
  EXPECT_EQ(mirror.generation, 1);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(mirror.generation, 2);
  coordinator->RequestStop(Plain());
  coordinator->ClearStop();
  EXPECT_EQ(mirror.generation, 2) << "neither a second request nor the end of a stop counts";
  coordinator->RemoveObserver(*listener);
}

TEST(MirrorTest, AddedDuringAStopItHoldsOne) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  const auto listener = std::make_shared<Listener>();
  Mirror mirror{{-1}, {-1}};
  coordinator->AddObserver(listener, &mirror);
  EXPECT_EQ(mirror.stopped, 1);
  coordinator->RemoveObserver(*listener);
}

TEST(MirrorTest, IsSetBeforeAnyCallbackOrObserverRuns) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  Mirror mirror{{0}, {0}};
  coordinator->AddObserver(listener, &mirror);
  struct Seen {
    Mirror* mirror;
    std::int32_t value = -1;
  } seen{&mirror};
  coordinator->OnStop(
      [](void* context) {
        auto* const s = static_cast<Seen*>(context);
        s->value = s->mirror->stopped;
      },
      &seen);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(seen.value, 1);
  coordinator->RemoveObserver(*listener);
}

TEST(MirrorTest, AParentsStopIsWrittenToo) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named());
  const auto listener = std::make_shared<Listener>();
  Mirror mirror{{0}, {0}};
  child->AddObserver(listener, &mirror);
  child->SetInterested(*listener, true);
  parent->RequestStop(Plain());
  EXPECT_EQ(mirror.stopped, 1);
  EXPECT_EQ(listener->stops, 1);
  EXPECT_NE(child->TakeUnseen(*listener), nullptr);
  child->RemoveObserver(*listener);
}

TEST(MirrorTest, EachObserverHasItsOwnAndRemovalSparesTheOthers) {
  constexpr int kObservers = 5;
  const auto coordinator = MakeCoordinator();
  std::vector<std::shared_ptr<Listener>> listeners;
  Mirror mirrors[kObservers] = {};
  for (auto& mirror : mirrors) {
    listeners.push_back(std::make_shared<Listener>());
    coordinator->AddObserver(listeners.back(), &mirror);
  }
  coordinator->RemoveObserver(*listeners[1]);
  coordinator->RemoveObserver(*listeners[4]);
  coordinator->RemoveObserver(*listeners[4]);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(mirrors[0].stopped, 1);
  EXPECT_EQ(mirrors[1].stopped, 0);
  EXPECT_EQ(mirrors[2].stopped, 1);
  EXPECT_EQ(mirrors[3].stopped, 1);
  EXPECT_EQ(mirrors[4].stopped, 0);
}

// The mirror is freed right after RemoveObserver: a later store would be a use after free.
TEST(MirrorTest, IsNotWrittenAfterItsRemovalHoweverTheyRace) {
  const auto coordinator = MakeCoordinator();
  std::atomic<bool> over{false};
  std::thread requester([&] {
    while (!over) {
      coordinator->RequestStop(Plain());
      coordinator->ClearStop();
    }
  });
  for (int round = 0; round < 5'000; ++round) {
    const auto listener = std::make_shared<Listener>();
    const auto mirror = std::make_unique<Mirror>();
    coordinator->AddObserver(listener, mirror.get());
    const std::int32_t value = mirror->stopped;
    ASSERT_TRUE(value == 0 || value == 1);
    coordinator->RemoveObserver(*listener);
  }
  over = true;
  requester.join();
}

TEST(ObserverTest, IsToldOfStopsAndClearsOnlyWhileInterested) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  coordinator->AddObserver(listener, nullptr);
  coordinator->RequestStop(Plain());
  coordinator->ClearStop();
  EXPECT_EQ(listener->stops + listener->clears, 0);

  coordinator->SetInterested(*listener, true);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(listener->stops, 1);
  coordinator->ClearStop();
  EXPECT_EQ(listener->clears, 1);

  coordinator->SetInterested(*listener, false);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(listener->stops, 1);
  coordinator->SetInterested(*listener, true);
  coordinator->RemoveObserver(*listener);
  coordinator->ClearStop();
  EXPECT_EQ(listener->clears, 1) << "it was removed";
}

TEST(ObserverTest, IsToldOfErrorsBesideTheStopWhileInterested) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  coordinator->AddObserver(listener, nullptr);
  coordinator->SetInterested(*listener, true);
  coordinator->Report(Failure("RangeError"));
  EXPECT_EQ(listener->errors, 1);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(listener->errors, 1);
  coordinator->RequestStop(Failure("TypeError"));
  EXPECT_EQ(listener->errors, 2);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(listener->errors, 2) << "a plain stop is no error";

  coordinator->SetInterested(*listener, false);
  coordinator->RequestStop(Failure("Error"));
  EXPECT_EQ(listener->errors, 2);
  coordinator->RemoveObserver(*listener);
}

TEST(ObserverTest, WithAMirrorIsAThreadThatSharesTheCoordinator) {
  const auto coordinator = MakeCoordinator();
  const auto other = std::make_shared<Listener>();
  coordinator->AddObserver(other, nullptr);
  const auto child = coordinator->CreateChild(Named());
  Mirror mirrors[2] = {{{0}, {0}}, {{0}, {0}}};
  const std::shared_ptr<Listener> threads[2] = {std::make_shared<Listener>(),
                                                std::make_shared<Listener>()};
  coordinator->AddObserver(threads[0], &mirrors[0]);
  EXPECT_FALSE(coordinator->IsShared());
  coordinator->AddObserver(threads[1], &mirrors[1]);
  EXPECT_TRUE(coordinator->IsShared());
  coordinator->RemoveObserver(*threads[0]);
  EXPECT_FALSE(coordinator->IsShared());

  coordinator->Retain();
  EXPECT_TRUE(coordinator->IsShared()) << "another addon may clear the stop";
  coordinator->Release();
  EXPECT_FALSE(coordinator->IsShared());
  coordinator->RemoveObserver(*threads[1]);
  coordinator->RemoveObserver(*other);
}

TEST(ObserverTest, IsToldOfEachStopOnce) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  coordinator->AddObserver(listener, nullptr);
  coordinator->SetInterested(*listener, true);
  coordinator->RequestStop(Plain());
  coordinator->RequestStop(Plain());
  coordinator->RequestStop(Failure());
  EXPECT_EQ(listener->stops, 1);
  coordinator->RemoveObserver(*listener);
}

TEST(ObserverTest, InterestThatCameTooLateFindsTheNewGeneration) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  coordinator->AddObserver(listener, nullptr);
  const std::uint64_t before = coordinator->generation();
  coordinator->RequestStop(Plain());
  coordinator->ClearStop();
  EXPECT_EQ(coordinator->SetInterested(*listener, true), before + 1);
  EXPECT_EQ(listener->stops, 0);
  EXPECT_EQ(coordinator->TakeUnseen(*listener), nullptr);
  coordinator->RemoveObserver(*listener);
}

TEST(UnseenTest, TheFirstStopIsKeptUntilItIsTaken) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  coordinator->AddObserver(listener, nullptr);
  coordinator->SetInterested(*listener, true);
  coordinator->RequestStop(Failure());
  const auto first = coordinator->View().record;
  coordinator->ClearStop();
  coordinator->RequestStop(Plain());
  const auto second = coordinator->View().record;
  EXPECT_EQ(coordinator->TakeUnseen(*listener), first);
  EXPECT_EQ(coordinator->TakeUnseen(*listener), nullptr) << "once";
  coordinator->ClearStop();
  coordinator->RequestStop(Plain());
  EXPECT_NE(coordinator->TakeUnseen(*listener), second) << "it was not the first unseen one";
  coordinator->RemoveObserver(*listener);
}

TEST(UnseenTest, ANewInterestBeginsWithNothingUnseen) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  coordinator->AddObserver(listener, nullptr);
  coordinator->SetInterested(*listener, true);
  coordinator->RequestStop(Plain());
  coordinator->SetInterested(*listener, true);
  EXPECT_NE(coordinator->TakeUnseen(*listener), nullptr) << "it was interested all along";

  coordinator->ClearStop();
  coordinator->RequestStop(Plain());
  coordinator->SetInterested(*listener, false);
  coordinator->SetInterested(*listener, true);
  EXPECT_EQ(coordinator->TakeUnseen(*listener), nullptr);
  coordinator->RemoveObserver(*listener);
}

TEST(ObserverTest, MayUseTheCoordinatorAndRemoveItself) {
  struct Leaver : Observer {
    void OnStop() override {
      coordinator->RemoveObserver(*this);
      coordinator->ClearStop();
    }
    Coordinator* coordinator = nullptr;
  };
  const auto coordinator = MakeCoordinator();
  auto leaver = std::make_shared<Leaver>();
  leaver->coordinator = coordinator.get();
  coordinator->AddObserver(leaver, nullptr);
  coordinator->SetInterested(*leaver, true);
  leaver.reset();  // the coordinator has the only reference
  coordinator->RequestStop(Plain());
  EXPECT_FALSE(coordinator->ShouldStop());
}

TEST(ObserverTest, IsHeldUntilItsRemovalAndNoLonger) {
  const auto coordinator = MakeCoordinator();
  auto listener = std::make_shared<Listener>();
  const std::weak_ptr<Listener> weak = listener;
  Listener& bare = *listener;
  coordinator->AddObserver(std::move(listener), nullptr);
  EXPECT_FALSE(weak.expired());
  coordinator->RemoveObserver(bare);
  EXPECT_TRUE(weak.expired());
}

TEST(JoinProgressTest, TheWaiterIsToldWhenTheLastThreadEnds) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  const std::uint64_t first = coordinator->RegisterThread(test::Thread("first"));
  const std::uint64_t last = coordinator->RegisterThread(test::Thread("last"));
  const auto join = coordinator->BeginJoin({}, listener);
  coordinator->EndThread(first);
  EXPECT_EQ(listener->progress, 0);
  coordinator->EndThread(last);
  EXPECT_EQ(listener->progress, 1);
  coordinator->FinishJoin(*join);
}

TEST(JoinProgressTest, TheWaiterIsToldOfTheFirstStopInterestedOrNot) {
  const auto coordinator = MakeCoordinator();
  const auto listener = std::make_shared<Listener>();
  const std::uint64_t id = coordinator->RegisterThread(test::Thread("worker"));
  const auto join = coordinator->BeginJoin({}, listener);
  coordinator->RequestStop(Plain());
  EXPECT_EQ(listener->progress, 1);
  coordinator->ClearStop();
  coordinator->RequestStop(Plain());
  EXPECT_EQ(listener->progress, 1) << "its grace period runs already";
  coordinator->EndThread(id);
  EXPECT_EQ(listener->progress, 2);
  coordinator->FinishJoin(*join);
}

TEST(JoinProgressTest, AWaiterThatDiedIsNotTold) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(test::Thread("worker"));
  auto listener = std::make_shared<Listener>();
  const auto join = coordinator->BeginJoin({}, listener);
  listener.reset();
  coordinator->RequestStop(Plain());
  coordinator->EndThread(id);
  EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
  coordinator->AbandonJoin(*join);
}

TEST(JoinProgressTest, AfterAnAbandonNobodyIsTold) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(test::Thread("worker"));
  const auto listener = std::make_shared<Listener>();
  coordinator->AbandonJoin(*coordinator->BeginJoin({}, listener));
  coordinator->RequestStop(Plain());
  coordinator->EndThread(id);
  EXPECT_EQ(listener->progress, 0);
}

}  // namespace
}  // namespace allstop::core
