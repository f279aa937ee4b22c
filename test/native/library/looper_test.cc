// allstop::LooperThread: every stop ends its loop, and its error stops all threads.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_looper.hpp>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifndef _WIN32
#include <pthread.h>
#endif

#include "../gate.h"
#include "record.h"

namespace allstop {
namespace {

using test::Gate;
using test::Record;
using test::RecordOf;
using Strings = std::vector<std::string>;

constexpr Milliseconds kOnce{std::numeric_limits<double>::infinity()};
constexpr Milliseconds kBackToBack{0};

LooperOptions Hooks(Strings& calls) {
  LooperOptions options;
  options.start_loop = [&] { calls.emplace_back("start"); };
  options.stop_loop = [&] { calls.emplace_back("stop"); };
  return options;
}

TEST(LooperThreadTest, RunsUntilTheStopBetweenItsHooks) {
  const Coordinator coord = Coordinator::Create();
  Strings calls;
  LooperThread looper = LooperThread::Loop(
      coord, kBackToBack,
      [&](const Coordinator& own) {
        calls.emplace_back("run");
        if (calls.size() == 4) own.RequestStop();
      },
      Hooks(calls));
  looper.Join();
  EXPECT_EQ(calls, (Strings{"start", "run", "run", "run", "stop"}));
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
}

TEST(LooperThreadTest, AStopEndsItsWaitAtOnce) {
  const Coordinator coord = Coordinator::Create();
  Gate ran;
  LooperThread looper = LooperThread::Loop(coord, kOnce, [&] { ran.Open(); });
  ran.Wait();
  coord.RequestStop();
  EXPECT_EQ(coord.Join(kOnce), ALLSTOP_OK);
}

TEST(LooperThreadTest, AStopThatIsClearedAtOnceEndsItsWaitToo) {
  const Coordinator coord = Coordinator::Create();
  Gate ran;
  LooperThread looper = LooperThread::Loop(coord, kOnce, [&] { ran.Open(); });
  ran.Wait();
  coord.RequestStop();
  coord.ClearStop();
  looper.Join();
}

// The new thread, whose first call is thread_enter, is held there until the stop is cleared.
TEST(LooperThreadTest, AStopThatIsClearedBeforeItsThreadRunsEndsIt) {
  const Coordinator real = Coordinator::Create();
  static Gate cleared;
  static decltype(allstop_table::thread_enter) enter;
  allstop_table table = *real.handle()->table;
  enter = table.thread_enter;
  table.thread_enter = [](allstop_thread* thread) {
    cleared.Wait();
    return enter(thread);
  };
  allstop_coordinator handle = *real.handle();
  handle.table = &table;
  allstop_retain(&handle);
  const Coordinator coord(handle);
  Strings calls;
  LooperThread looper = LooperThread::Loop(
      coord, kBackToBack,
      [&](const Coordinator& own) {
        calls.emplace_back("run");
        own.RequestStop();
      },
      Hooks(calls));
  coord.RequestStop();
  coord.ClearStop();
  cleared.Open();
  looper.Join();
  EXPECT_EQ(calls, (Strings{"start", "stop"}));
}

TEST(LooperThreadTest, ItsHooksAreCalledEvenIfTheStopWasThereBefore) {
  const Coordinator coord = Coordinator::Create();
  coord.RequestStop();
  Strings calls;
  LooperThread::Loop(
      coord, kBackToBack, [&] { calls.emplace_back("run"); }, Hooks(calls))
      .Join();
  EXPECT_EQ(calls, (Strings{"start", "stop"}));
}

TEST(LooperThreadTest, WhatARunThrowsStopsEverybodyAndSaysWhoAndWhat) {
  const Coordinator coord = Coordinator::Create();
  Strings calls;
  LooperOptions options = Hooks(calls);
  options.name = "heartbeat";
  options.stop_loop = [&] { calls.emplace_back(coord.ShouldStop() ? "stopped" : "running"); };
  const LooperThread looper = LooperThread::Loop(
      coord, kBackToBack, [] { throw std::runtime_error("no pulse"); }, options);
  Thread other(coord, "other", [](const Coordinator& own) { own.WaitForStop(); });
  EXPECT_EQ(coord.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(calls, (Strings{"start", "stopped"})) << "the others did not have to wait for it";
  const Record info = RecordOf(coord);
  EXPECT_EQ(info.name, "NativeError");
  EXPECT_EQ(info.message, "no pulse");
  EXPECT_EQ(info.native_type, "std::runtime_error");
  EXPECT_EQ(info.thread, "heartbeat");
  EXPECT_THROW(RaiseRequestedException(coord), StopError);
}

TEST(LooperThreadTest, WhatStartLoopThrowsStopsEverybodyWithoutStopLoop) {
  const Coordinator coord = Coordinator::Create();
  Strings calls;
  LooperOptions options = Hooks(calls);
  options.start_loop = [] { throw std::logic_error("not ready"); };
  LooperThread::Loop(
      coord, kBackToBack, [&] { calls.emplace_back("run"); }, options)
      .Join();
  EXPECT_EQ(calls, Strings{});
  EXPECT_EQ(RecordOf(coord).message, "not ready");
  EXPECT_EQ(RecordOf(coord).thread, "looper");
}

TEST(LooperThreadTest, WhatStopLoopThrowsIsAnErrorLikeAnyOther) {
  const Coordinator coord = Coordinator::Create();
  coord.RequestStop();
  LooperOptions options;
  options.stop_loop = [] { throw 42; };
  LooperThread::Loop(
      coord, kBackToBack, [] {}, options)
      .Join();
  EXPECT_EQ(RecordOf(coord).message, "") << "a plain stop came first";

  coord.ClearStop();
  options.stop_loop = [&] { throw std::logic_error("second"); };
  LooperThread::Loop(
      coord, kBackToBack, [] { throw std::logic_error("first"); }, options)
      .Join();
  EXPECT_EQ(RecordOf(coord).message, "first");
}

TEST(LooperThreadTest, AnErrorAfterTheJoinIsSuppressedAndItsStopLoopStillCalled) {
  const Coordinator coord = Coordinator::Create();
  Gate ran;
  Gate joined;
  Strings calls;
  LooperThread looper = LooperThread::Loop(
      coord, kBackToBack,
      [&] {
        ran.Open();
        joined.Wait();
        throw std::logic_error("too late");
      },
      Hooks(calls));
  ran.Wait();
  coord.RequestStop();
  EXPECT_EQ(coord.Join(kBackToBack), ALLSTOP_STRAGGLERS);
  joined.Open();
  looper.Join();
  EXPECT_EQ(calls, (Strings{"start", "stop"}));
  EXPECT_EQ(RecordOf(coord).message, "");
}

TEST(LooperThreadTest, TheErrorsOfARunAndOfStopLoopAreBothKeptAfterTheJoin) {
  const Coordinator coord = Coordinator::Create();
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
  LooperOptions options;
  options.stop_loop = [] { throw std::logic_error("of stop_loop"); };
  LooperThread::Loop(
      coord, kBackToBack, [] { throw std::logic_error("of run"); }, options)
      .Join();
  EXPECT_EQ(coord.FirstError()->message, "of stop_loop");
  ASSERT_EQ(coord.SuppressedErrors().size(), 1u);
  EXPECT_EQ(coord.SuppressedErrors()[0].message, "of run");
}

#ifndef _WIN32
TEST(LooperThreadTest, AStopLoopMayThrowWhenARunHasExitedItsThread) {
  const Coordinator coord = Coordinator::Create();
  LooperOptions options;
  options.stop_loop = [] { throw std::logic_error("of stop_loop"); };
  LooperThread::Loop(
      coord, kBackToBack, [] { pthread_exit(nullptr); }, options)
      .Join();
  EXPECT_EQ(RecordOf(coord).message, "of stop_loop");
  EXPECT_EQ(coord.Join(), ALLSTOP_STOPPED_BY_ERROR);
}
#endif

TEST(LooperThreadTest, OneThatWasNeverStartedHoldsUpNoJoin) {
  const Coordinator coord = Coordinator::Create();
  LooperThread looper(coord, kBackToBack, [] {});
  EXPECT_EQ(coord.Join(kOnce), ALLSTOP_OK);
  looper.Join();
}

TEST(LooperThreadTest, OneThatIsStartedIsWaitedForAtOnceEvenIfAJoinHasForgottenIt) {
  const Coordinator coord = Coordinator::Create();
  Gate held;
  Gate over;
  LooperThread looper(coord, kOnce, [&] { held.Wait(); });
  EXPECT_EQ(coord.Join(kOnce), ALLSTOP_OK);
  EXPECT_EQ(looper.Start(), ALLSTOP_OK);
  std::thread waiting([&] {
    coord.Join(kOnce);
    over.Open();
  });
  EXPECT_FALSE(over.OpensWrongly());
  held.Open();
  coord.RequestStop();
  waiting.join();
}

TEST(LooperThreadTest, StartsOnce) {
  const Coordinator coord = Coordinator::Create();
  LooperThread looper(coord, kOnce, [] {});
  EXPECT_EQ(looper.Start(), ALLSTOP_OK);
  EXPECT_EQ(looper.Start(), ALLSTOP_FAILED_PRECONDITION);
  coord.RequestStop();
}

TEST(LooperThreadTest, MayBeMovedAndDetached) {
  const Coordinator coord = Coordinator::Create();
  Gate ran;
  {
    LooperThread first(coord, kOnce, [&, only = std::make_unique<int>(1)] { ran.Open(); });
    LooperThread second = std::move(first);
    EXPECT_EQ(first.Start(), ALLSTOP_FAILED_PRECONDITION);  // NOLINT: used after the move
    second.Start();
    second.Detach();
  }
  ran.Wait();
  coord.RequestStop();
  EXPECT_EQ(coord.Join(kOnce), ALLSTOP_OK);
}

TEST(LooperThreadTest, MayNotJoinItself) {
  const Coordinator coord = Coordinator::Create();
  allstop_status status = ALLSTOP_OK;
  LooperThread::Loop(coord, kBackToBack, [&](const Coordinator& own) {
    status = own.Join();
    own.RequestStop();
  }).Join();
  EXPECT_EQ(status, ALLSTOP_SELF_JOIN);
}

TEST(LooperThreadTest, AnInvalidIntervalIsAnErrorOfTheCoordinator) {
  for (const double bad : {-1.0, std::nan("")}) {
    const Coordinator coord = Coordinator::Create();
    bool ran = false;
    LooperThread::Loop(coord, Milliseconds(bad), [&] { ran = true; }).Join();
    EXPECT_FALSE(ran);
    EXPECT_EQ(RecordOf(coord).name, "InvalidArgumentError");
  }
}

TEST(LooperTest, TheTableRefusesInvalidIntervalsAndPolicies) {
  const Coordinator coord = Coordinator::Create();
  allstop_looper* looper = nullptr;
  for (const double bad : {-1.0, -std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_EQ(allstop_looper_create(coord.handle(), bad, 0, &looper), ALLSTOP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(allstop_looper_create(coord.handle(), 1, 3, &looper), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(looper, nullptr);
  allstop_looper_release(coord.handle(), nullptr);
}

TEST(LooperTest, ALooperHoldsTheStateAndEndsWithAStop) {
  Coordinator coord = Coordinator::Create();
  const allstop_coordinator borrowed = *coord.handle();
  allstop_looper* looper = nullptr;
  ASSERT_EQ(allstop_looper_create(&borrowed, 0, ALLSTOP_MISSED_TICKS_SKIP, &looper), ALLSTOP_OK);
  EXPECT_EQ(allstop_looper_wait(&borrowed, looper), ALLSTOP_OK);
  coord.RequestStop();
  coord = Coordinator();
  EXPECT_EQ(allstop_looper_wait(&borrowed, looper), ALLSTOP_CANCELLED);
  allstop_looper_release(&borrowed, looper);
}

// The table of a package of version 1.1: it ends before looper_create, and its thread_register
// refuses ALLSTOP_THREAD_LOOPER.
class PackageWithoutLoopersTest : public testing::Test {
 protected:
  PackageWithoutLoopersTest() : real_(Coordinator::Create()) {
    std::memcpy(table_, real_.handle()->table, sizeof(table_));
    auto* const table = reinterpret_cast<allstop_table*>(table_);
    table->size = sizeof(table_);
    register_ = table->thread_register;
    table->thread_register = [](allstop_state* state, allstop_string name, std::uint32_t flags,
                                allstop_thread** thread) {
      if (flags > ALLSTOP_THREAD_UNSTARTED) return ALLSTOP_INVALID_ARGUMENT;
      return register_(state, name, flags, thread);
    };
    allstop_coordinator old = *real_.handle();
    old.table = table;
    allstop_retain(&old);
    coord_ = Coordinator(old);
  }

  inline static decltype(allstop_table::thread_register) register_ = nullptr;
  Coordinator real_;
  alignas(void*) unsigned char table_[offsetof(allstop_table, looper_create)] = {};
  Coordinator coord_;
};

TEST_F(PackageWithoutLoopersTest, HasNoLoopers) {
  allstop_looper* looper = nullptr;
  EXPECT_EQ(allstop_looper_create(coord_.handle(), 1, 0, &looper), ALLSTOP_UNAVAILABLE);
  EXPECT_EQ(allstop_looper_wait(coord_.handle(), looper), ALLSTOP_UNAVAILABLE);
  allstop_looper_release(coord_.handle(), looper);
}

TEST_F(PackageWithoutLoopersTest, StopsItsCoordinatorWhenALooperIsStarted) {
  bool ran = false;
  LooperThread looper(coord_, kBackToBack, [&] { ran = true; });
  EXPECT_FALSE(real_.ShouldStop());
  EXPECT_EQ(looper.Start(), ALLSTOP_OK);
  EXPECT_EQ(real_.Join(kOnce), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(RecordOf(real_).name, "UnavailableError");
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace allstop
