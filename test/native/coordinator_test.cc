#include "core/coordinator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/identity.h"
#include "core/registry.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::Clean;
using test::Error;
using test::Failure;
using test::FailureOfThread;
using test::MakeCoordinator;
using test::Plain;

TEST(CoordinatorTest, BeginsWithoutAStop) {
  const auto coordinator = MakeCoordinator();
  EXPECT_FALSE(coordinator->ShouldStop());
  EXPECT_FALSE(coordinator->joined());
  EXPECT_FALSE(coordinator->has_parent());
  EXPECT_EQ(coordinator->generation(), 0u);
  EXPECT_EQ(coordinator->View().record, nullptr);
  EXPECT_EQ(coordinator->View().suppressed_count, 0u);
  EXPECT_EQ(coordinator->name(), "test");
}

TEST(CoordinatorTest, APlainStopSaysWhoAskedAndWhen) {
  const auto coordinator = MakeCoordinator();
  const auto before = Clock::now();
  StopRequest request = Plain();
  request.requester.thread_name = "main";
  request.requester.signal = "SIGINT";
  EXPECT_EQ(coordinator->RequestStop(request), StopOutcome::kStopped);

  EXPECT_TRUE(coordinator->ShouldStop());
  EXPECT_EQ(coordinator->stop_word().load(), 1u);
  EXPECT_EQ(coordinator->generation(), 1u);
  const auto record = coordinator->View().record;
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->kind, StopKind::kPlain);
  EXPECT_EQ(record->error, nullptr);
  EXPECT_FALSE(record->id.empty());
  EXPECT_EQ(record->requester().thread_name, "main");
  EXPECT_EQ(record->requester().signal, "SIGINT");
  EXPECT_EQ(record->requester().thread_id, OsThreadId());
  EXPECT_EQ(record->requester().pid, ProcessId());
  EXPECT_GE(record->requested_at, before);
  EXPECT_LE(record->requested_at, Clock::now());
  EXPECT_LE(record->requester().at_ms, WallClockMs());
}

TEST(CoordinatorTest, AnErrorIsKeptAsItIsAndNamesTheStop) {
  const auto coordinator = MakeCoordinator();
  const auto error = Error("TypeError", "no such thing");
  EXPECT_EQ(coordinator->RequestStop(Failure(error)), StopOutcome::kStopped);
  const auto record = coordinator->View().record;
  EXPECT_EQ(record->kind, StopKind::kError);
  EXPECT_EQ(record->error, error);
  EXPECT_EQ(record->id, error->fields().id);
}

TEST(CoordinatorTest, EveryThreadSeesTheStopAndWhatWasWrittenBeforeIt) {
  const auto coordinator = MakeCoordinator();
  constexpr int kThreads = 4;
  int written_before = 0;  // not atomic on purpose: the stop flag alone must order it
  test::Barrier start(kThreads + 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.Arrive();
      while (!coordinator->ShouldStop()) std::this_thread::yield();
      EXPECT_EQ(written_before, 42);
    });
  }
  start.Arrive();
  written_before = 42;
  coordinator->RequestStop(Plain());
  for (auto& thread : threads) thread.join();
}

TEST(CoordinatorTest, TheFirstStopWinsWhateverItsKindAndTheLaterOnes) {
  const auto requests = [] { return std::vector<StopRequest>{Plain(), Clean(), Failure()}; };
  const auto firsts = requests();
  for (const StopRequest& first : firsts) {
    for (const StopRequest& later : requests()) {
      const auto coordinator = MakeCoordinator();
      ASSERT_EQ(coordinator->RequestStop(first), StopOutcome::kStopped);
      const auto record = coordinator->View().record;
      EXPECT_EQ(coordinator->RequestStop(later),
                later.error ? StopOutcome::kSuppressed : StopOutcome::kAlreadyStopped);
      const StopView view = coordinator->View();
      EXPECT_EQ(view.record, record);
      EXPECT_EQ(view.suppressed_count, later.error ? 1u : 0u);
      EXPECT_EQ(coordinator->generation(), 1u);
    }
  }
}

TEST(CoordinatorTest, OfRacingStopsOneWinsAndTheOthersAreKept) {
  constexpr int kThreads = 8;
  const auto coordinator = MakeCoordinator();
  test::Barrier start(kThreads);
  std::vector<StopOutcome> outcomes(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.Arrive();
      outcomes[i] = coordinator->RequestStop(Failure("Error" + std::to_string(i)));
    });
  }
  for (auto& thread : threads) thread.join();

  const StopView view = coordinator->View();
  int winners = 0;
  for (int i = 0; i < kThreads; ++i) {
    if (outcomes[i] != StopOutcome::kStopped) {
      EXPECT_EQ(outcomes[i], StopOutcome::kSuppressed);
      continue;
    }
    ++winners;
    EXPECT_EQ(view.record->error->fields().name, "Error" + std::to_string(i));
  }
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(view.suppressed_count, kThreads - 1u);
}

TEST(CoordinatorTest, TheFirstLaterErrorsAreKeptAndAllAreCounted) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  for (std::size_t i = 0; i < kMaxSuppressed; ++i) {
    StopRequest request = Failure("Error" + std::to_string(i));
    request.requester.thread_name = "thread " + std::to_string(i);
    EXPECT_EQ(coordinator->RequestStop(request), StopOutcome::kSuppressed);
  }
  EXPECT_EQ(coordinator->RequestStop(Failure()), StopOutcome::kCounted);

  const StopView view = coordinator->View();
  EXPECT_EQ(view.suppressed_count, kMaxSuppressed + 1);
  ASSERT_EQ(view.suppressed.size(), kMaxSuppressed);
  for (std::size_t i = 0; i < kMaxSuppressed; ++i) {
    EXPECT_EQ(view.suppressed[i].error->fields().name, "Error" + std::to_string(i));
    EXPECT_EQ(view.suppressed[i].origin->Get().thread_name, "thread " + std::to_string(i));
    EXPECT_GT(view.suppressed[i].origin->Get().at_ms, 0);
  }
}

TEST(CoordinatorTest, CleanTypesAreKnownByConstructorNameCodeAndNativeType) {
  const auto kind_of = [](ErrorFields fields) {
    const auto coordinator = Coordinator::Create({"test", {"Done"}});
    coordinator->RequestStop(Failure(EncodedError::Encode(std::move(fields))));
    return coordinator->View().record->kind;
  };
  ErrorFields fields;
  fields.name = "Done";
  EXPECT_EQ(kind_of(fields), StopKind::kClean);
  fields = {};
  fields.code = "Done";
  EXPECT_EQ(kind_of(fields), StopKind::kClean);
  fields = {};
  fields.native_type = "Done";
  EXPECT_EQ(kind_of(fields), StopKind::kClean);
  fields = {};
  fields.chain = {"MoreThanDone", "Done", "Error"};
  EXPECT_EQ(kind_of(fields), StopKind::kClean);
  fields = {};
  fields.name = "NotDone";
  fields.message = "Done";
  EXPECT_EQ(kind_of(fields), StopKind::kError);
}

TEST(CoordinatorTest, ACleanErrorIsStillVisible) {
  const auto coordinator = MakeCoordinator();
  const auto error = Error("OutOfRangeError", "end of the data");
  coordinator->RequestStop(Failure(error));
  EXPECT_EQ(coordinator->View().record->kind, StopKind::kClean);
  EXPECT_EQ(coordinator->View().record->error, error);
}

TEST(CoordinatorTest, WithAnEmptyListNothingIsClean) {
  const auto coordinator = Coordinator::Create({"test", {}});
  coordinator->RequestStop(Clean());
  EXPECT_EQ(coordinator->View().record->kind, StopKind::kError);
}

TEST(CoordinatorTest, TheStopComingBackIsAnEcho) {
  const auto coordinator = MakeCoordinator();
  const auto error = Error("TypeError");
  coordinator->RequestStop(Failure(error));
  EXPECT_EQ(coordinator->RequestStop(Failure(error)), StopOutcome::kEcho);

  StopRequest wrapped = Failure("AbortError");  // as an AbortError whose cause is the stop's error
  wrapped.echo_ids.push_back(error->fields().id);
  wrapped.abort_echo_ids = {error->fields().id};
  EXPECT_EQ(coordinator->RequestStop(wrapped), StopOutcome::kEcho);
  EXPECT_EQ(coordinator->View().suppressed_count, 0u);
}

TEST(CoordinatorTest, APlainStopIsEchoedByItsRecordId) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  StopRequest wrapped = Failure("AbortError");
  wrapped.echo_ids.push_back(coordinator->View().record->id);
  EXPECT_EQ(coordinator->RequestStop(wrapped), StopOutcome::kEcho);
}

TEST(CoordinatorTest, ATaskThatUnwindsLateDoesNotStopTheNextLife) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  const std::string id = coordinator->View().record->id;
  coordinator->ClearStop();

  StopRequest late = Failure("AbortError");
  late.echo_ids.push_back(id);
  late.abort_echo_ids = {id};
  EXPECT_EQ(coordinator->RequestStop(late), StopOutcome::kEcho);
  EXPECT_FALSE(coordinator->ShouldStop());
}

TEST(CoordinatorTest, AnErrorReportedAgainInTheNextLifeStopsIt) {
  const auto coordinator = MakeCoordinator();
  const auto error = Error("TypeError");
  coordinator->RequestStop(Failure(error));
  coordinator->ClearStop();
  EXPECT_EQ(coordinator->RequestStop(Failure(error)), StopOutcome::kStopped);
}

TEST(CoordinatorTest, OnlySoManyPastStopsAreRemembered) {
  const auto coordinator = MakeCoordinator();
  std::vector<std::string> ids;
  for (int i = 0; i < 65; ++i) {
    coordinator->RequestStop(Plain());
    ids.push_back(coordinator->View().record->id);
    coordinator->ClearStop();
  }
  const auto late = [](const std::string& id) {
    StopRequest request = Failure("AbortError");
    request.abort_echo_ids = {id};
    return request;
  };
  for (int i = 1; i < 65; ++i) {
    EXPECT_EQ(coordinator->RequestStop(late(ids[i])), StopOutcome::kEcho);
  }
  EXPECT_EQ(coordinator->RequestStop(late(ids[0])), StopOutcome::kStopped);
}

TEST(CoordinatorTest, AClearedCoordinatorIsAsNewButCountsOn) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t thread = coordinator->RegisterThread(test::Thread("worker"));
  coordinator->RequestStop(Failure());
  coordinator->RequestStop(Failure());
  const auto old = coordinator->View().record;
  EXPECT_EQ(coordinator->ClearStop(), Status::kOk);

  EXPECT_FALSE(coordinator->ShouldStop());
  EXPECT_EQ(coordinator->stop_word().load(), 0u);
  EXPECT_EQ(coordinator->View().record, nullptr);
  EXPECT_EQ(coordinator->View().suppressed_count, 0u);
  EXPECT_TRUE(coordinator->View().suppressed.empty());
  EXPECT_EQ(coordinator->generation(), 1u);
  EXPECT_EQ(test::Names(coordinator->LiveThreads()), std::vector<std::string>{"worker"});
  EXPECT_EQ(old->error->fields().name, "TypeError") << "whoever holds the record keeps it";

  EXPECT_EQ(coordinator->RequestStop(Plain()), StopOutcome::kStopped);
  EXPECT_EQ(coordinator->generation(), 2u);
  EXPECT_NE(coordinator->View().record->id, old->id);
  coordinator->EndThread(thread);
}

TEST(CoordinatorTest, ClearingWithoutAStopChangesNothing) {
  const auto coordinator = MakeCoordinator();
  EXPECT_EQ(coordinator->ClearStop(), Status::kOk);
  EXPECT_EQ(coordinator->generation(), 0u);
  EXPECT_FALSE(coordinator->ShouldStop());
}

TEST(JoinedCoordinatorTest, RefusesErrorsOfCallersAndStaysAsItWas) {
  const auto coordinator = MakeCoordinator();
  ASSERT_EQ(coordinator->BlockingJoin(0, false), Status::kOk);
  ASSERT_TRUE(coordinator->joined());
  EXPECT_EQ(coordinator->RequestStop(Failure()), StopOutcome::kRefused);
  EXPECT_FALSE(coordinator->ShouldStop());
  EXPECT_EQ(coordinator->View().record, nullptr);
  EXPECT_EQ(coordinator->View().suppressed_count, 0u);
}

TEST(JoinedCoordinatorTest, RefusesErrorsAlsoWhenItIsStopped) {
  const auto coordinator = MakeCoordinator();
  coordinator->RequestStop(Plain());
  ASSERT_EQ(coordinator->BlockingJoin(0, false), Status::kOk);
  EXPECT_EQ(coordinator->RequestStop(Failure()), StopOutcome::kRefused);
  EXPECT_EQ(coordinator->View().suppressed_count, 0u);
}

TEST(JoinedCoordinatorTest, StopsQuietlyForPlainAndCleanRequests) {
  for (const StopRequest& request : {Plain(), Clean()}) {
    const auto coordinator = MakeCoordinator();
    coordinator->BlockingJoin(0, false);
    EXPECT_EQ(coordinator->RequestStop(request), StopOutcome::kStopped);
    EXPECT_TRUE(coordinator->ShouldStop());
    EXPECT_TRUE(coordinator->joined());
  }
}

TEST(JoinedCoordinatorTest, KeepsTheErrorsThatHaveNoCaller) {
  const auto coordinator = MakeCoordinator();
  coordinator->BlockingJoin(0, false);
  EXPECT_EQ(coordinator->RequestStop(FailureOfThread("LateError")), StopOutcome::kSuppressed);
  EXPECT_FALSE(coordinator->ShouldStop());
  const StopView view = coordinator->View();
  ASSERT_EQ(view.suppressed.size(), 1u);
  EXPECT_EQ(view.suppressed[0].error->fields().name, "LateError");
}

TEST(JoinedCoordinatorTest, AcceptsErrorsAgainAfterAClear) {
  const auto coordinator = MakeCoordinator();
  coordinator->BlockingJoin(0, false);
  coordinator->ClearStop();
  EXPECT_FALSE(coordinator->joined());
  EXPECT_EQ(coordinator->RequestStop(Failure()), StopOutcome::kStopped);
}

TEST(RequesterTest, IsNamedAsTheThreadWasRegisteredWhileItIs) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t id = coordinator->RegisterThread(test::Thread("loader", ThreadKind::kNative));
  EXPECT_NE(coordinator->ThisThread(Via::kCall).thread_name, "loader") << "not entered yet";
  coordinator->EnterThread(id);
  const Requester requester = coordinator->ThisThread(Via::kTimeout);
  EXPECT_EQ(requester.thread_name, "loader");
  EXPECT_EQ(requester.thread_id, OsThreadId());
  EXPECT_EQ(requester.pid, ProcessId());
  EXPECT_EQ(requester.via, Via::kTimeout);
  EXPECT_EQ(requester.language, Language::kNative);
  std::thread([&] {
    EXPECT_NE(coordinator->ThisThread(Via::kCall).thread_name, "loader") << "another thread";
    EXPECT_FALSE(coordinator->ThisThread(Via::kCall).thread_name.empty());
  }).join();
  coordinator->EndThread(id);
  EXPECT_NE(coordinator->ThisThread(Via::kCall).thread_name, "loader");
}

TEST(LinkTest, LinksAreDescribedInTheirOrderUntilRemoved) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t first = coordinator->AddLink("stopOnSignals SIGINT");
  const std::uint64_t second = coordinator->AddLink("stopAfter 5 s");
  EXPECT_EQ(coordinator->Links(),
            (std::vector<std::string>{"stopOnSignals SIGINT", "stopAfter 5 s"}));
  coordinator->RemoveLink(first);
  coordinator->RemoveLink(first);
  EXPECT_EQ(coordinator->Links(), std::vector<std::string>{"stopAfter 5 s"});
  EXPECT_GT(coordinator->AddLink("third"), second) << "ids are not used twice";
}

TEST(LifetimeTest, ForeignReferencesKeepItAliveAndTheLastFreesIt) {
  auto coordinator = MakeCoordinator();
  const std::weak_ptr<Coordinator> weak = coordinator;
  Coordinator* const bare = coordinator.get();
  bare->Retain();
  bare->Retain();
  coordinator.reset();
  ASSERT_FALSE(weak.expired());
  bare->Release();
  ASSERT_FALSE(weak.expired());
  EXPECT_FALSE(bare->ShouldStop());
  bare->Release();
  EXPECT_TRUE(weak.expired());
}

TEST(LifetimeTest, TheLastForeignReferenceMayGoOnAnyThread) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 500; ++round) {
    auto coordinator = MakeCoordinator();
    const std::weak_ptr<Coordinator> weak = coordinator;
    Coordinator* const bare = coordinator.get();
    for (int i = 0; i < kThreads; ++i) bare->Retain();
    coordinator.reset();
    test::Barrier start(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        start.Arrive();
        bare->RequestStop(Plain());
        bare->Release();
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(weak.expired());
  }
}

TEST(LifetimeTest, NothingHoldsAStoppedCoordinator) {
  auto coordinator = MakeCoordinator();
  const std::weak_ptr<Coordinator> weak = coordinator;
  coordinator->RegisterThread(test::Thread("never ends"));
  coordinator->AddLink("never removed");
  coordinator->RequestStop(Failure());
  coordinator.reset();
  EXPECT_TRUE(weak.expired());
}

TEST(SizeTest, ACoordinatorIsSmallerThanAKilobyte) {
  std::printf("sizeof(Coordinator) = %zu\n", sizeof(Coordinator));
  RecordProperty("bytes", static_cast<int>(sizeof(Coordinator)));
  EXPECT_LT(sizeof(Coordinator), 1024u);
}

}  // namespace
}  // namespace allstop::core
