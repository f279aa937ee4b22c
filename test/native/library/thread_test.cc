// allstop::Thread and StopOnException turn an exception into the error that stops all threads;
// StopCallback.
#include <gtest/gtest.h>

#include <algorithm>
#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <allstop/allstop_looper.hpp>
#include <allstop/allstop_queue_runner.hpp>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record.h"

namespace allstop {
namespace {

using test::Record;
using test::RecordOf;

TEST(ThreadTest, RunsUntilTheStopAndIsJoined) {
  const Coordinator coord = Coordinator::Create();
  int turns = 0;
  Thread worker(coord, "worker", [&](const Coordinator& own) {
    while (!own.ShouldStop()) turns = 1;
  });
  coord.RequestStop();
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
}

TEST(ThreadTest, WhatItThrowsStopsEverybodyAndSaysWhoAndWhat) {
  const Coordinator coord = Coordinator::Create();
  Thread reader(coord, "reader", [] { throw std::runtime_error("disk gone"); });
  Thread other(coord, "other", [](const Coordinator& own) { own.WaitForStop(); });
  EXPECT_EQ(coord.Join(), ALLSTOP_STOPPED_BY_ERROR);
  const Record info = RecordOf(coord);
  EXPECT_EQ(info.name, "NativeError");
  EXPECT_EQ(info.message, "disk gone");
  EXPECT_EQ(info.native_type, "std::runtime_error");
  EXPECT_EQ(info.thread, "reader");
}

TEST(ThreadTest, CatchesObjectsThatAreNoStdException) {
  const Coordinator coord = Coordinator::Create();
  Thread(coord, "thrower", [] { throw 42; }).Join();
  EXPECT_EQ(RecordOf(coord).native_type, "int");
  EXPECT_EQ(RecordOf(coord).message, "42");
}

TEST(ThreadTest, AThrownTextIsTheMessage) {
  const auto thrown = [](void (*function)()) {
    const Coordinator coord = Coordinator::Create();
    Thread(coord, "thrower", [function] { function(); }).Join();
    return RecordOf(coord);
  };
  const Record literal = thrown([] { throw "disk gone"; });
  EXPECT_EQ(literal.message, "disk gone");
  EXPECT_EQ(literal.native_type, "char const*");
  static char text[] = "disk full";
  const Record pointer = thrown([] { throw static_cast<char*>(text); });
  EXPECT_EQ(pointer.message, "disk full");
  EXPECT_EQ(pointer.native_type, "char*");
  const Record string = thrown([] { throw std::string("a disk that is gone, and its twin"); });
  EXPECT_EQ(string.message, "a disk that is gone, and its twin");
  EXPECT_NE(string.native_type.find("string"), std::string::npos);
  const Record zero = thrown([] { throw std::string("a\0b", 3); });
  EXPECT_EQ(zero.message, std::string("a\0b", 3));
  EXPECT_EQ(thrown([] { throw static_cast<const char*>(nullptr); }).message, "a null pointer");
}

// A text that lives as long as a capture: it is overwritten when the function is destroyed.
struct CapturedText {
  CapturedText() { shared = "a text that is too long for a small string"; }
  CapturedText(const CapturedText&) = delete;
  CapturedText& operator=(const CapturedText&) = delete;
  ~CapturedText() { std::fill(shared.begin(), shared.end(), '!'); }

  static std::string shared;
};
std::string CapturedText::shared;

struct ReadsCapture : std::exception {
  const char* what() const noexcept override { return CapturedText::shared.c_str(); }
};

// The error of a thread that calls `fail`, and whose function owns the text that `fail` throws.
Error ErrorOfCapture(void (*fail)()) {
  const Coordinator coord = Coordinator::Create();
  Thread(coord, "thrower", [fail, text = std::make_unique<CapturedText>()] { fail(); }).Join();
  return *coord.FirstError();
}

TEST(ThreadTest, WhatItThrowsMayReadACapture) {
  const std::string text = "a text that is too long for a small string";
  EXPECT_EQ(ErrorOfCapture([] { throw CapturedText::shared.c_str(); }).message, text);
  EXPECT_EQ(ErrorOfCapture([] { throw std::string_view(CapturedText::shared); }).message, text);
  EXPECT_EQ(ErrorOfCapture([] { throw ReadsCapture(); }).message, text);
  const Error outer = ErrorOfCapture([] {
    try {
      throw ReadsCapture();
    } catch (...) {
      std::throw_with_nested(std::runtime_error("outer"));
    }
  });
  ASSERT_NE(outer.cause, nullptr);
  EXPECT_EQ(outer.cause->message, text);
}

TEST(ThreadTest, WhatALooperOrAnOpThrowsMayReadACapture) {
  const Coordinator coord = Coordinator::Create();
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);  // so that the end of the thread reports the errors
  LooperOptions options;
  options.start_loop = [text = std::make_shared<CapturedText>()] { throw ReadsCapture(); };
  LooperThread::Loop(
      coord, Milliseconds(1), [] {}, std::move(options))
      .Join();
  const auto run = [text = std::make_shared<CapturedText>()] { throw ReadsCapture(); };
  LooperThread::Loop(coord, Milliseconds(1), run).Join();
  std::unique_ptr<QueueRunner> runner;
  const auto op = [text = std::make_shared<CapturedText>()](const BoundedQueue&) -> Status {
    throw ReadsCapture();
  };
  EXPECT_TRUE(QueueRunner::New(BoundedQueue(coord, 1), {op}, {}, coord, &runner).ok());
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_FALSE(runner->Join().ok());
  const auto errors = coord.SuppressedErrors();
  ASSERT_EQ(errors.size(), 3u);
  for (const Error& each : errors) EXPECT_EQ(each.message[0], 'a');
}

TEST(ThreadTest, TakesTheFieldsOfAThrownError) {
  const Coordinator coord = Coordinator::Create();
  Error root;
  root.message = "the disk is gone";
  Error error;
  error.name = "RangeError";
  error.message = "no such block";
  error.code = "E_BLOCK";
  error.cause = std::make_shared<const Error>(root);
  Thread(coord, "thrower", [&error] { throw error; }).Join();
  const auto first = coord.FirstError();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->name, "RangeError");
  EXPECT_EQ(first->message, "no such block");
  EXPECT_EQ(first->code, "E_BLOCK");
  ASSERT_NE(first->cause, nullptr);
  EXPECT_EQ(first->cause->message, "the disk is gone");
  // Of a recorded error nothing is new.
  Thread(coord, "again", [&first] { throw Error(*first); }).Join();
  EXPECT_TRUE(coord.SuppressedErrors().empty());
}

TEST(ThreadTest, DestroysItsFunctionBeforeItCountsAsEnded) {
  const Coordinator coord = Coordinator::Create();
  const auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = captured;
  {
    Thread worker(coord, "worker", [captured = std::move(captured)] {});
    worker.Detach();
  }
  coord.Join();
  EXPECT_TRUE(watched.expired() || watched.use_count() == 1);
}

TEST(ThreadTest, AThreadThatFailsAfterTheJoinIsSuppressedAndCrashesNothing) {
  const Coordinator coord = Coordinator::Create();
  coord.RequestStop();
  coord.Join();
  Thread(coord, "late", [] { throw std::logic_error("too late"); }).Join();
  EXPECT_EQ(RecordOf(coord).message, "");
}

TEST(StopOnExceptionTest, ReportsAndSwallows) {
  const Coordinator coord = Coordinator::Create();
  EXPECT_TRUE(StopOnException(coord, [] {}));
  EXPECT_FALSE(coord.ShouldStop());
  EXPECT_FALSE(StopOnException(coord, [] { throw std::out_of_range("at 7"); }));
  EXPECT_EQ(RecordOf(coord).native_type, "std::out_of_range");
}

TEST(StopOnExceptionTest, RethrowsAfterACompletedJoin) {
  const Coordinator coord = Coordinator::Create();
  coord.Join();
  EXPECT_THROW(StopOnException(coord, [] { throw std::out_of_range("at 7"); }), std::out_of_range);
  EXPECT_FALSE(coord.ShouldStop());
}

TEST(StopCallbackTest, RunsOnceAndNotAfterItsEnd) {
  const Coordinator coord = Coordinator::Create();
  int calls = 0;
  {
    const StopCallback gone(coord, [&] { calls += 100; });
  }
  const StopCallback callback(coord, [&] { ++calls; });
  coord.RequestStop();
  coord.ClearStop();
  coord.RequestStop();
  EXPECT_EQ(calls, 1);
  const StopCallback late(coord, [&] { ++calls; });
  EXPECT_EQ(calls, 2) << "at once";
}

}  // namespace
}  // namespace allstop
