// Errors that RequestStop refuses, because a join has completed or because there is no memory for
// the record. They go with the end of their thread, which keeps them, or back to the caller.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <allstop/allstop_looper.hpp>
#include <allstop/allstop_queue_runner.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "record.h"

namespace allstop {
namespace {

using test::RecordOf;

[[noreturn]] void ThrowDiskGone() { throw std::runtime_error("disk gone"); }

// Runs a QueueRunner of `op` to its end, which is an error.
void RunOp(const Coordinator& coord, const QueueRunner::Op& op) {
  std::unique_ptr<QueueRunner> runner;
  const BoundedQueue queue(Coordinator::Create(), 1);
  EXPECT_TRUE(QueueRunner::New(queue, {op}, {}, coord, &runner).ok());
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_FALSE(runner->Join().ok());
}

QueueRunner::Op Throwing() {
  return [](const BoundedQueue&) -> Status { ThrowDiskGone(); };
}
QueueRunner::Op Returning() {
  return [](const BoundedQueue&) { return Status(ALLSTOP_UNAVAILABLE, "disk gone"); };
}

// What the coordinator has suppressed after a completed join and `fail`, which must not stop it.
std::vector<Error> SuppressedAfterAJoin(const std::function<void(const Coordinator&)>& fail) {
  const Coordinator coord = Coordinator::Create();
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
  fail(coord);
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
  EXPECT_FALSE(coord.ShouldStop());
  return coord.SuppressedErrors();
}

TEST(LateErrorTest, TheErrorOfAnOpIsSuppressedWhetherThrownOrReturned) {
  for (const auto& op : {Throwing(), Returning()}) {
    const auto errors = SuppressedAfterAJoin([&](const Coordinator& coord) { RunOp(coord, op); });
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].message, "disk gone");
  }
}

TEST(LateErrorTest, TheErrorOfALooperThatCannotRunIsSuppressed) {
  const auto errors = SuppressedAfterAJoin(
      [](const Coordinator& coord) { LooperThread::Loop(coord, Milliseconds(-1), [] {}).Join(); });
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].name, "InvalidArgumentError");
}

// A coordinator whose table has no memory for the error of a stop that is requested. The end of a
// thread goes past that function.
class NoMemoryForStopsTest : public testing::Test {
 protected:
  NoMemoryForStopsTest() : table_(*real_.handle()->table) {
    request_stop_ = table_.request_stop;
    table_.request_stop = [](allstop_state* state, const allstop_error* error) {
      return error != nullptr ? ALLSTOP_RESOURCE_EXHAUSTED : request_stop_(state, nullptr);
    };
    allstop_coordinator handle = *real_.handle();
    handle.table = &table_;
    allstop_retain(&handle);
    coord_ = Coordinator(handle);
  }

  static inline decltype(allstop_table::request_stop) request_stop_;
  const Coordinator real_ = Coordinator::Create();
  allstop_table table_;
  Coordinator coord_;
};

TEST_F(NoMemoryForStopsTest, StopOnExceptionThrowsTheExceptionOn) {
  EXPECT_THROW(StopOnException(coord_, ThrowDiskGone), std::runtime_error);
  EXPECT_FALSE(coord_.ShouldStop());
}

TEST_F(NoMemoryForStopsTest, WhatALooperThrowsStopsEverybody) {
  LooperThread::Loop(coord_, Milliseconds(0), ThrowDiskGone).Join();
  EXPECT_EQ(coord_.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(RecordOf(coord_).message, "disk gone");
  EXPECT_EQ(RecordOf(coord_).native_type, "std::runtime_error");
}

TEST_F(NoMemoryForStopsTest, WhatAnOpThrowsStopsEverybody) {
  RunOp(coord_, Throwing());
  EXPECT_EQ(coord_.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(RecordOf(coord_).message, "disk gone");
}

TEST_F(NoMemoryForStopsTest, TheErrorThatAnOpReturnsStopsEverybody) {
  RunOp(coord_, Returning());
  EXPECT_EQ(coord_.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(RecordOf(coord_).name, "UnavailableError");
}

TEST_F(NoMemoryForStopsTest, ALooperThatCannotRunStopsEverybody) {
  LooperThread::Loop(coord_, Milliseconds(-1), [] {}).Join();
  EXPECT_EQ(coord_.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(RecordOf(coord_).name, "InvalidArgumentError");
}

}  // namespace
}  // namespace allstop
