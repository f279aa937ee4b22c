// An empty allstop::Coordinator never stops, and everything may be called on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <allstop/allstop_looper.hpp>
#include <allstop/allstop_tensorflow.hpp>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace allstop {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(EmptyCoordinatorTest, NeverStops) {
  const Coordinator empty;
  EXPECT_FALSE(empty);
  EXPECT_FALSE(empty.ShouldStop());
  bool made = true;
  EXPECT_EQ(empty.RequestStop(), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_EQ(empty.RequestStop(Error{}), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_EQ(empty.RequestStop(&made), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_FALSE(made);
  EXPECT_FALSE(empty.ShouldStop());
}

TEST(EmptyCoordinatorTest, IsWhatIsLeftOfAMovedOneAndWhatIsMadeOfAHandleOfZeros) {
  Coordinator coord = Coordinator::Create();
  const Coordinator moved = std::move(coord);
  EXPECT_FALSE(coord.ShouldStop());
  const Coordinator of_zeros(allstop_coordinator{});
  EXPECT_FALSE(of_zeros.ShouldStop());
  const Coordinator copy = of_zeros;
  EXPECT_FALSE(copy);
  EXPECT_FALSE(copy.ShouldStop());
  moved.RequestStop();
  EXPECT_FALSE(coord.ShouldStop());
}

TEST(EmptyCoordinatorTest, AWaitLastsForItsWholeTimeout) {
  const Coordinator empty;
  EXPECT_FALSE(empty.WaitForStop(milliseconds(0)));
  const auto began = steady_clock::now();
  EXPECT_FALSE(empty.WaitForStop(milliseconds(20)));
  EXPECT_GE(steady_clock::now() - began, milliseconds(20));
}

TEST(EmptyCoordinatorTest, HasNoErrorNoThreadsAndNoChildren) {
  const Coordinator empty;
  EXPECT_EQ(empty.ReportError({}), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_FALSE(empty.FirstError());
  EXPECT_TRUE(empty.SuppressedErrors().empty());
  EXPECT_NO_THROW(RaiseRequestedException(empty));
  EXPECT_EQ(empty.ClearStop(), ALLSTOP_OK);
  EXPECT_EQ(empty.Join(), ALLSTOP_OK);
  EXPECT_FALSE(empty.StopAfter(milliseconds(0)));
  EXPECT_FALSE(empty.Child());
  EXPECT_FALSE(empty.Child().ShouldStop());
}

TEST(EmptyCoordinatorTest, TheOtherClassesTakeIt) {
  const Coordinator empty;
  int calls = 0;
  const StopCallback callback(empty, [&] { ++calls; });
  Thread(empty, "thread", [&](const Coordinator& own) {
    if (!own.ShouldStop()) calls = 1;
  }).Join();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(StopOnException(empty, [] {}));
  EXPECT_THROW(StopOnException(empty, [] { throw std::out_of_range("at 7"); }), std::out_of_range);
  const tensorflow::Coordinator named(empty);
  EXPECT_FALSE(named.ShouldStop());
}

// What is called for a Coordinator without asking whether it is empty.
TEST(EmptyCoordinatorTest, LacksOnlyTheFunctionsOfQueuesAndVariables) {
  const allstop_table& table = *Coordinator().handle()->table;
  constexpr std::size_t kFirst = offsetof(allstop_table, retain) / sizeof(void*);
  std::array<const void*, sizeof(allstop_table) / sizeof(void*)> entries;
  std::memcpy(entries.data(), &table, sizeof(table));
  const auto absent = std::count(entries.begin() + kFirst, entries.end(), nullptr);
  const bool are_those[] = {
      !table.queue_retain,     !table.queue_release,       !table.queue_enqueue,
      !table.queue_dequeue,    !table.queue_close,         !table.queue_info,
      !table.item_copy,        !table.queue_dequeue_least, !table.variable_retain,
      !table.variable_release, !table.variable_info,       !table.variable_read,
      !table.variable_assign,  !table.variable_assign_add};
  EXPECT_EQ(absent, std::count(std::begin(are_those), std::end(are_those), true));
}

TEST(EmptyCoordinatorTest, WhatNeedsACoordinatorSaysSo) {
  const Coordinator empty;
  int runs = 0;
  LooperThread looper(empty, milliseconds(0), [&] { ++runs; });
  EXPECT_EQ(looper.Start(), ALLSTOP_INVALID_ARGUMENT);
  looper.Join();
  EXPECT_EQ(runs, 0);
  EXPECT_FALSE(BoundedQueue(empty, 1));
}

TEST(EmptyCoordinatorDeathTest, AnExceptionOfItsThreadEndsTheProcessAsThatOfAStdThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      Thread(Coordinator(), "thrower", [] { throw std::runtime_error("disk gone"); }).Join(), "");
}

}  // namespace
}  // namespace allstop
