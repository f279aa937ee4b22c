// The requester becomes known after the waiting threads are woken. A reader waits for it, and
// that wait must end.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>

#include "core/coordinator.h"
#include "core/identity.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::Error;
using test::Gate;
using test::MakeCoordinator;
using test::Named;
using test::Plain;

// A request whose requester gets the name "loader" once the gate is open.
StopRequest DescribedBehind(Gate& gate, Gate* reached = nullptr) {
  StopRequest request;
  request.requester.via = Via::kAbort;
  request.locate = [&gate, reached](Requester& requester) {
    if (reached) reached->Open();
    gate.Wait();
    requester.thread_name = "loader";
  };
  return request;
}

TEST(RequesterTest, AWaiterIsAwakeBeforeAnybodyKnowsWhoAsked) {
  const auto coordinator = MakeCoordinator();
  Gate described;
  std::thread requester([&] { coordinator->RequestStop(DescribedBehind(described)); });
  EXPECT_TRUE(coordinator->WaitForStop(Deadline::Never()));
  EXPECT_TRUE(coordinator->ShouldStop());
  described.Open();
  requester.join();
}

TEST(RequesterTest, WhoeverReadsItEarlyWaitsForIt) {
  const auto coordinator = MakeCoordinator();
  Gate described;
  Gate was_read;
  std::thread requester([&] { coordinator->RequestStop(DescribedBehind(described)); });
  coordinator->WaitForStop(Deadline::Never());
  std::thread reader([&] {
    EXPECT_EQ(coordinator->View().record->requester().thread_name, "loader");
    was_read.Open();
  });
  EXPECT_FALSE(was_read.OpensWrongly());
  described.Open();
  requester.join();
  reader.join();
}

// An observer that keeps the requesting thread until the gate is open, before the requester is
// described.
class HeldAt final : public Observer {
 public:
  HeldAt(Gate& reached, Gate& gate) : reached_(reached), gate_(gate) {}
  void OnStop() override {
    reached_.Open();
    gate_.Wait();
  }

 private:
  Gate& reached_;
  Gate& gate_;
};

TEST(RequesterTest, AReaderOfLittlePatienceWaitsForTheDescriptionButNotForTheLocation) {
  const auto coordinator = MakeCoordinator();
  Gate reached;
  Gate described;
  Gate was_read;
  Gate located;
  const auto held = std::make_shared<HeldAt>(reached, described);
  coordinator->AddObserver(held, nullptr);
  coordinator->SetInterested(*held, true);
  std::thread requester([&] {
    StopRequest request = DescribedBehind(located);
    request.describe = [](Requester& known) { known.thread_name = "described"; };
    coordinator->RequestStop(request);
  });
  reached.Wait();
  std::thread reader([&] {
    EXPECT_EQ(coordinator->View().record->RequesterWithin(1).thread_name, "described");
    was_read.Open();
  });
  EXPECT_FALSE(was_read.OpensWrongly());
  described.Open();
  was_read.Wait();
  located.Open();
  requester.join();
  reader.join();
  coordinator->RemoveObserver(*held);
}

TEST(RequesterTest, CallbacksRunWhenItIsKnownWhoAskedAndNotYetFromWhere) {
  const auto coordinator = MakeCoordinator();
  struct Context {
    Coordinator* coordinator;
    Requester early;
  } context{coordinator.get(), {}};
  coordinator->OnStop(
      [](void* opaque) {
        auto& own = *static_cast<Context*>(opaque);
        own.early = own.coordinator->View().record->requester();
      },
      &context);
  StopRequest request;
  request.describe = [](Requester& requester) { requester.thread_name = "loader"; };
  request.locate = [](Requester& requester) { requester.stack = "here"; };
  coordinator->RequestStop(request);
  EXPECT_EQ(context.early.thread_name, "loader");
  EXPECT_EQ(context.early.stack, "");
  EXPECT_EQ(coordinator->View().record->requester().stack, "here");
}

TEST(RequesterTest, WhoeverLocatesItReadsWhatWasKnownBefore) {
  const auto coordinator = MakeCoordinator();
  Requester early;
  StopRequest request;
  request.requester.via = Via::kAbort;
  request.requester.thread_name = "known";
  request.locate = [&](Requester& requester) {
    early = coordinator->View().record->requester();
    requester.thread_name = "loader";
  };
  coordinator->RequestStop(request);
  EXPECT_EQ(early.thread_name, "known");
  EXPECT_EQ(early.via, Via::kAbort);
  EXPECT_GT(early.at_ms, 0);
  EXPECT_EQ(coordinator->View().record->requester().thread_name, "loader");
}

TEST(RequesterTest, ADescriptionThatWaitsForItsReaderBlocksItOnlyForAWhile) {
  const auto coordinator = MakeCoordinator();
  Gate was_read;
  std::thread requester([&] { coordinator->RequestStop(DescribedBehind(was_read)); });
  coordinator->WaitForStop(Deadline::Never());
  const auto record = coordinator->View().record;
  EXPECT_EQ(record->requester().via, Via::kAbort);
  EXPECT_EQ(record->requester().thread_name, "");
  was_read.Open();
  requester.join();
  EXPECT_EQ(record->requester().thread_name, "loader");
}

TEST(RequesterTest, ADescriptionThatThrowsLeavesWhatItHadFoundOut) {
  const auto coordinator = MakeCoordinator();
  StopRequest request;
  request.requester.via = Via::kAbort;
  request.describe = [](Requester& requester) {
    requester.thread_name = "loader";
    throw std::runtime_error("no stack");
  };
  EXPECT_EQ(coordinator->RequestStop(request), StopOutcome::kStopped);
  const Requester requester = coordinator->View().record->requester();
  EXPECT_EQ(requester.thread_name, "loader");
  EXPECT_EQ(requester.via, Via::kAbort);
  EXPECT_GT(requester.at_ms, 0);
}

TEST(RequesterTest, ALocationThatThrowsLeavesWhatItHadFoundOutAndTheTime) {
  const auto coordinator = MakeCoordinator();
  StopRequest request;
  request.locate = [](Requester& requester) {
    requester = Requester();
    requester.thread_name = "loader";
    throw std::runtime_error("no stack");
  };
  EXPECT_EQ(coordinator->RequestStop(request), StopOutcome::kStopped);
  const Requester requester = coordinator->View().record->requester();
  EXPECT_EQ(requester.thread_name, "loader");
  EXPECT_GT(requester.at_ms, 0);
}

TEST(RequesterTest, ChildrenAreWokenBeforeItAndShareIt) {
  const auto parent = MakeCoordinator();
  const auto grandchild = parent->CreateChild(Named())->CreateChild(Named());
  Gate described;
  std::thread requester([&] { parent->RequestStop(DescribedBehind(described)); });
  EXPECT_TRUE(grandchild->WaitForStop(Deadline::Never()));
  described.Open();
  const Requester inherited = grandchild->View().record->requester();
  EXPECT_EQ(inherited.thread_name, "loader");
  EXPECT_EQ(inherited.via, Via::kParent);
  EXPECT_EQ(parent->View().record->requester().via, Via::kAbort);
  requester.join();
}

TEST(RequesterTest, ASuppressedErrorIsDescribedToo) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  Gate open;
  open.Open();
  StopRequest late = DescribedBehind(open);
  late.error = Error("TypeError");
  EXPECT_EQ(coordinator->RequestStop(late), StopOutcome::kSuppressed);
  const Requester requester = coordinator->View().suppressed.at(0).origin->Get();
  EXPECT_EQ(requester.thread_name, "loader");
  EXPECT_GT(requester.at_ms, 0);
}

TEST(RequesterTest, WhatIsNotRecordedIsNotDescribed) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  bool described = false;
  StopRequest again;
  again.describe = [&](Requester&) { described = true; };
  again.locate = again.describe;
  EXPECT_EQ(coordinator->RequestStop(again), StopOutcome::kAlreadyStopped);
  EXPECT_FALSE(described);
}

TEST(RequesterTest, ADescriptionMayUseTheCoordinator) {
  const auto coordinator = MakeCoordinator();
  StopRequest request;
  request.locate = [&](Requester& requester) {
    coordinator->ClearStop();
    EXPECT_EQ(coordinator->RequestStop(Plain()), StopOutcome::kStopped);
    requester.thread_name = "loader";
  };
  EXPECT_EQ(coordinator->RequestStop(request), StopOutcome::kStopped);
  EXPECT_EQ(coordinator->View().record->generation, 2u);
}

// A stop is cleared and requested again while `locate` of the first request still runs.
TEST(RequesterTest, LivesDoNotMixTheirRequesters) {
  const auto coordinator = MakeCoordinator();
  Gate described;
  Gate reached;
  std::thread first([&] { coordinator->RequestStop(DescribedBehind(described, &reached)); });
  reached.Wait();
  const auto record = coordinator->View().record;
  coordinator->ClearStop();
  StopRequest second = Plain();
  second.requester.thread_name = "second";
  coordinator->RequestStop(second);
  EXPECT_EQ(coordinator->View().record->requester().thread_name, "second");
  described.Open();
  first.join();
  EXPECT_EQ(record->requester().thread_name, "loader");
  EXPECT_EQ(coordinator->View().record->requester().thread_name, "second");
}

}  // namespace
}  // namespace allstop::core
