#include "core/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/coordinator.h"
#include "core/identity.h"
#include "gate.h"
#include "requests.h"

namespace allstop::core {
namespace {

using test::MakeCoordinator;
using test::Named;

TEST(RegistryTest, FindsACoordinatorByItsIdWhileItLives) {
  auto coordinator = MakeCoordinator();
  auto child = coordinator->CreateChild(Named());
  EXPECT_EQ(Registry<Coordinator>::Get().Find(coordinator->id()), coordinator);
  EXPECT_EQ(Registry<Coordinator>::Get().Find(child->id()), child);

  const std::uint64_t id = child->id();
  child.reset();
  EXPECT_EQ(Registry<Coordinator>::Get().Find(id), nullptr);
  EXPECT_EQ(Registry<Coordinator>::Get().Find(coordinator->id()), coordinator);
}

TEST(RegistryTest, KnowsNothingOfIdsThatItNeverGave) {
  EXPECT_EQ(Registry<Coordinator>::Get().Find(0), nullptr);
  EXPECT_EQ(Registry<Coordinator>::Get().Find(~std::uint64_t{0}), nullptr);
}

TEST(RegistryTest, WhatWasRemovedIsNotFoundThoughItLives) {
  const auto coordinator = MakeCoordinator();
  Registry<Coordinator>::Get().Remove(coordinator->id());
  EXPECT_EQ(Registry<Coordinator>::Get().Find(coordinator->id()), nullptr);
}

TEST(RegistryTest, OwnsNothing) {
  auto coordinator = MakeCoordinator();
  const std::weak_ptr<Coordinator> weak = coordinator;
  coordinator.reset();
  EXPECT_TRUE(weak.expired());
}

TEST(RegistryTest, IdsAreNeverUsedTwice) {
  constexpr int kThreads = 4;
  constexpr int kEach = 1'000;
  std::mutex mutex;
  std::set<std::uint64_t> ids;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) {
        const std::uint64_t id = MakeCoordinator()->id();  // the coordinator dies at once
        const std::lock_guard<std::mutex> lock(mutex);
        ids.insert(id);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kThreads * kEach));
  EXPECT_EQ(ids.count(0), 0u);
}

TEST(RegistryTest, HoldsTenThousandCoordinators) {
  std::vector<std::shared_ptr<Coordinator>> coordinators;
  for (int i = 0; i < 10'000; ++i) coordinators.push_back(MakeCoordinator());
  for (const auto& coordinator : coordinators) {
    ASSERT_EQ(Registry<Coordinator>::Get().Find(coordinator->id()), coordinator);
  }
}

TEST(RegistryTest, ALookupThatRacesWithTheEndFindsItWholeOrNotAtAll) {
  for (int round = 0; round < 2'000; ++round) {
    auto coordinator = MakeCoordinator();
    const std::uint64_t id = coordinator->id();
    test::Barrier start(2);
    std::thread finder([&] {
      start.Arrive();
      if (const auto found = Registry<Coordinator>::Get().Find(id)) {
        EXPECT_EQ(found->id(), id);
        found->RequestStop(test::Plain());
      }
    });
    start.Arrive();
    coordinator.reset();
    finder.join();
    ASSERT_EQ(Registry<Coordinator>::Get().Find(id), nullptr);
  }
}

TEST(IdentityTest, NamesOfThisWorldAreNeverUsedTwice) {
  EXPECT_EQ(World(), World());
  EXPECT_EQ(World().size(), 32u);
  std::set<std::string> names;
  for (int i = 0; i < 1'000; ++i) {
    const std::string name = NextIdentity();
    EXPECT_EQ(name.rfind(World() + ".", 0), 0u) << name;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 1'000u);
}

TEST(IdentityTest, ThreadsDifferAndTheProcessDoesNot) {
  const std::uint64_t here = OsThreadId();
  const std::int64_t process = ProcessId();
  EXPECT_EQ(OsThreadId(), here);
  std::thread([&] {
    EXPECT_NE(OsThreadId(), here);
    EXPECT_EQ(ProcessId(), process);
  }).join();
}

}  // namespace
}  // namespace allstop::core
