// Errors that RequestStop refuses, because a join has completed or because there is no memory for
// the record. They go with the end of their thread, which keeps them, or back to the caller.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "record.h"

namespace allstop {
namespace {

using test::RecordOf;

[[noreturn]] void Throw() { throw std::runtime_error("disk gone"); }

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
  EXPECT_THROW(StopOnException(coord_, Throw), std::runtime_error);
  EXPECT_FALSE(coord_.ShouldStop());
}

TEST_F(NoMemoryForStopsTest, WhatALooperThrowsStopsEverybody) {
  LooperThread::Loop(coord_, Milliseconds(0), Throw).Join();
  EXPECT_EQ(coord_.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(RecordOf(coord_).message, "disk gone");
  EXPECT_EQ(RecordOf(coord_).native_type, "std::runtime_error");
}

TEST_F(NoMemoryForStopsTest, WhatAnOpThrowsStopsEverybody) {
  std::unique_ptr<QueueRunner> runner;
  const auto op = [](const BoundedQueue&) -> Status { Throw(); };
  const BoundedQueue queue(Coordinator::Create(), 1);
  EXPECT_TRUE(QueueRunner::New(queue, {op}, {}, coord_, &runner).ok());
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_FALSE(runner->Join().ok());
  EXPECT_EQ(coord_.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(RecordOf(coord_).message, "disk gone");
}

}  // namespace
}  // namespace allstop
