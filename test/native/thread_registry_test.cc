#include "core/thread_registry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/coordinator.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::Thread;
using test::UnstartedThread;
using Strings = std::vector<std::string>;

Strings NamesOf(const std::vector<std::shared_ptr<ThreadRegistry::Entry>>& entries) {
  Strings names;
  for (const auto& entry : entries) names.push_back(entry->info.name);
  return names;
}

TEST(ThreadRegistryTest, KeepsWhatItWasTold) {
  ThreadRegistry threads;
  NewThread thread = Thread("loader", ThreadKind::kProcess);
  thread.has_thread_id = true;
  thread.thread_id = 4711;
  thread.owner = 3;
  const ThreadInfo info = threads.Add(thread)->info;
  EXPECT_EQ(info.name, "loader");
  EXPECT_EQ(info.kind, ThreadKind::kProcess);
  EXPECT_TRUE(info.alive);
  EXPECT_FALSE(info.unobserved);
  EXPECT_TRUE(info.has_thread_id);
  EXPECT_EQ(info.thread_id, 4711u);
  EXPECT_GT(info.started_at_ms, 0);
  EXPECT_EQ(info.ended_at_ms, 0);
}

TEST(ThreadRegistryTest, ListsTheLivingInTheOrderOfTheirRegistration) {
  ThreadRegistry threads;
  std::vector<std::uint64_t> ids;
  for (const char* name : {"a", "b", "c", "d"}) ids.push_back(threads.Add(Thread(name))->info.id);
  threads.End(ids[1], false);
  EXPECT_EQ(NamesOf(threads.Live()), (Strings{"a", "c", "d"}));
}

TEST(ThreadRegistryTest, TwoThreadsMayHaveTheSameName) {
  ThreadRegistry threads;
  const std::uint64_t first = threads.Add(Thread("worker"))->info.id;
  threads.Add(Thread("worker"));
  threads.End(first, false);
  EXPECT_EQ(NamesOf(threads.Live()), Strings{"worker"});
}

TEST(ThreadRegistryTest, IdsAreNeverUsedTwice) {
  ThreadRegistry threads;
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t id = threads.Add(Thread("t"))->info.id;
    EXPECT_GT(id, last);
    last = id;
    threads.End(id, false);
  }
}

TEST(ThreadRegistryTest, AThreadEndsOnce) {
  ThreadRegistry threads;
  const std::uint64_t id = threads.Add(Thread("worker"))->info.id;
  const auto ended = threads.End(id, false);
  ASSERT_NE(ended, nullptr);
  EXPECT_FALSE(ended->info.alive);
  EXPECT_GT(ended->info.ended_at_ms, 0);
  EXPECT_EQ(threads.End(id, false), nullptr);
  EXPECT_EQ(threads.Find(id), nullptr);
  EXPECT_EQ(threads.ended().size(), 1u);
}

TEST(ThreadRegistryTest, TheLastThatEndedStayVisibleTheNewestLast) {
  ThreadRegistry threads;
  for (int i = 0; i < 100; ++i) {
    threads.End(threads.Add(Thread("t" + std::to_string(i)))->info.id, i == 99);
  }
  ASSERT_EQ(threads.ended().size(), ThreadRegistry::kMaxEnded);
  EXPECT_EQ(threads.ended().front().name, "t36");
  EXPECT_EQ(threads.ended().back().name, "t99");
  EXPECT_FALSE(threads.ended().front().unobserved);
  EXPECT_TRUE(threads.ended().back().unobserved);
}

TEST(ThreadRegistryTest, AServerMayRegisterForEver) {
  const auto coordinator = test::MakeCoordinator();
  for (int i = 0; i < 10'000; ++i) {
    coordinator->EndThread(coordinator->RegisterThread(Thread("request")));
  }
  EXPECT_TRUE(coordinator->LiveThreads().empty());
  EXPECT_EQ(coordinator->EndedThreads().size(), ThreadRegistry::kMaxEnded);
}

TEST(ThreadRegistryTest, AnUnstartedThreadIsAliveWhenItStarts) {
  ThreadRegistry threads;
  const auto entry = threads.Add(UnstartedThread("native"));
  EXPECT_FALSE(entry->info.alive);
  EXPECT_EQ(NamesOf(threads.Live()), Strings{"native"}) << "registered it is";
  threads.Start(*entry);
  EXPECT_TRUE(entry->info.alive);
  EXPECT_FALSE(entry->info.has_thread_id);
  threads.Enter(*entry, 100);
  EXPECT_EQ(entry->info.thread_id, 100u);
}

TEST(ThreadRegistryTest, OneThatNeverStartedIsNotAmongTheEnded) {
  ThreadRegistry threads;
  threads.End(threads.Add(UnstartedThread("never"))->info.id, false);
  EXPECT_EQ(NamesOf(threads.Live()), Strings{});
  EXPECT_TRUE(threads.ended().empty());
}

TEST(ThreadRegistryTest, ANativeThreadIsFoundByItsOsThreadUntilItEnds) {
  ThreadRegistry threads;
  const auto entry = threads.Add(UnstartedThread("native"));
  EXPECT_EQ(threads.OnOsThread(100), nullptr);
  threads.Enter(*entry, 100);
  EXPECT_EQ(threads.OnOsThread(100), entry);
  threads.Enter(*entry, 200);  // the registration was entered again on another OS thread
  EXPECT_EQ(threads.OnOsThread(100), nullptr);
  EXPECT_EQ(threads.OnOsThread(200), entry);
  threads.End(entry->info.id, false);
  EXPECT_EQ(threads.OnOsThread(200), nullptr);
}

TEST(ThreadRegistryTest, AnOsThreadThatIsUsedAgainBelongsToTheNewestEntry) {
  ThreadRegistry threads;
  const auto first = threads.Add(UnstartedThread("first"));
  const auto second = threads.Add(UnstartedThread("second"));
  threads.Enter(*first, 100);
  threads.Enter(*second, 100);
  EXPECT_EQ(threads.OnOsThread(100), second);
  threads.End(first->info.id, false);
  EXPECT_EQ(threads.OnOsThread(100), second);
}

TEST(ThreadRegistryTest, AnOsThreadBelongsToTheOuterEntryAgainWhenTheInnerOneHasEnded) {
  ThreadRegistry threads;
  const auto outer = threads.Add(UnstartedThread("outer"));
  const auto inner = threads.Add(UnstartedThread("inner"));
  threads.Enter(*outer, 100);
  threads.Enter(*inner, 100);
  threads.End(inner->info.id, false);
  EXPECT_EQ(threads.OnOsThread(100), outer);
  threads.End(outer->info.id, false);
  EXPECT_EQ(threads.OnOsThread(100), nullptr);
}

TEST(ThreadRegistryTest, AForgottenThreadThatHasNotStartedIsGoneUnlessAJoinWaitsForIt) {
  ThreadRegistry threads;
  const auto gone = threads.Add(UnstartedThread("gone"));
  threads.Forget(*gone, {});
  EXPECT_EQ(threads.Find(gone->info.id), nullptr);

  const auto kept = threads.Add(UnstartedThread("kept"));
  Join join;
  kept->joins.push_back(&join);
  threads.Forget(*kept, {});
  EXPECT_EQ(threads.Find(kept->info.id), kept);
  EXPECT_TRUE(threads.Live().empty());
  threads.Unlist(*kept, &join);
  EXPECT_EQ(threads.Find(kept->info.id), nullptr);
  EXPECT_TRUE(threads.LeftBehind().empty());
}

TEST(ThreadRegistryTest, AForgottenThreadThatIsAliveIsLeftBehindUntilItEnds) {
  ThreadRegistry threads;
  const auto entry = threads.Add(UnstartedThread("stubborn"));
  threads.Enter(*entry, 100);
  threads.Start(*entry);
  const Clock::time_point stop = Clock::now();
  threads.Forget(*entry, stop);
  threads.Forget(*entry, stop + std::chrono::hours(1));  // the first join counts
  EXPECT_TRUE(threads.Live().empty());
  ASSERT_EQ(threads.LeftBehind().size(), 1u);
  EXPECT_EQ(threads.LeftBehind()[0].info.name, "stubborn");
  EXPECT_EQ(threads.LeftBehind()[0].stop_requested_at, stop);
  EXPECT_EQ(threads.OnOsThread(100), entry) << "it still has its name";
  threads.End(entry->info.id, false);
  EXPECT_TRUE(threads.LeftBehind().empty());
  EXPECT_EQ(threads.Find(entry->info.id), nullptr);
  EXPECT_EQ(threads.OnOsThread(100), nullptr);
  EXPECT_EQ(threads.ended().back().name, "stubborn");
}

TEST(ThreadRegistryTest, OneThatIsLeftBehindCanBeReadmitted) {
  ThreadRegistry threads;
  const auto entry = threads.Add(Thread("back"));
  threads.Forget(*entry, {});
  EXPECT_TRUE(threads.Readmit(entry->info.id));
  EXPECT_TRUE(threads.LeftBehind().empty());
  EXPECT_EQ(NamesOf(threads.Live()), Strings{"back"});
}

TEST(ThreadRegistryTest, OfTooManyThatAreLeftBehindTheOldestGoButForThoseOfAJoin) {
  ThreadRegistry threads;
  const auto awaited = threads.Add(Thread("awaited"));
  Join join;
  awaited->joins.push_back(&join);
  threads.Forget(*awaited, {});
  for (std::size_t i = 1; i <= ThreadRegistry::kMaxLeftBehind; ++i) {
    threads.Forget(*threads.Add(Thread("t" + std::to_string(i))), {});
  }
  const auto left = threads.LeftBehind();
  ASSERT_EQ(left.size(), ThreadRegistry::kMaxLeftBehind);
  EXPECT_EQ(left[0].info.name, "awaited");
  EXPECT_EQ(left[1].info.name, "t2");
}

TEST(ThreadRegistryTest, WhoseObserverIsGoneIsFoundByTheObserver) {
  ThreadRegistry threads;
  for (const std::uint64_t owner : {1u, 2u, 1u}) {
    NewThread thread = Thread("of " + std::to_string(owner));
    thread.owner = owner;
    threads.Add(thread);
  }
  const auto owned_by = [&](std::uint64_t owner) {
    Strings names;
    threads.EachOwnedBy(owner, [&](const auto& entry) { names.push_back(entry.info.name); });
    return names;
  };
  EXPECT_EQ(owned_by(1), (Strings{"of 1", "of 1"}));
  threads.Forget(*threads.Find(3), {});
  EXPECT_EQ(owned_by(1), (Strings{"of 1", "of 1"})) << "one is left behind";
  EXPECT_EQ(owned_by(2), Strings{"of 2"});
  EXPECT_TRUE(owned_by(3).empty());
}

}  // namespace
}  // namespace allstop::core
