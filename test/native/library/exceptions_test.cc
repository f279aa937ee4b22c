// An exception becomes a record at once, and the exceptions nested in it become causes.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <allstop/allstop_looper.hpp>
#include <allstop/allstop_queue_runner.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#if __has_include(<unwind.h>)
#include <unwind.h>
#endif

namespace allstop {
namespace {

// An exception of this program with a field that no record carries.
struct DiskError : std::runtime_error {
  explicit DiskError(int sector)
      : std::runtime_error("bad sector " + std::to_string(sector)), sector(sector) {}
  int sector;
};

TEST(RaiseRequestedExceptionTest, ThrowsTheRecordOfTheException) {
  const Coordinator coord = Coordinator::Create();
  Thread(coord, "reader", [] { throw DiskError(7); }).Join();
  for (int i = 0; i < 2; ++i) {  // it is not cleared
    try {
      RaiseRequestedException(coord);
      FAIL() << "it should have thrown";
    } catch (const StopError& raised) {
      EXPECT_EQ(raised.error().message, "bad sector 7");
      EXPECT_NE(raised.error().native_type.find("DiskError"), std::string::npos);
    }
  }
}

// An exception may belong to its thread: no other one may destroy it, however many come later.
TEST(StopOnExceptionTest, KeepsNoException) {
  struct Owned : std::runtime_error {
    explicit Owned(std::shared_ptr<int> owned)
        : std::runtime_error("owned"), owned(std::move(owned)) {}
    std::shared_ptr<int> owned;
  };
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = owned;
  StopOnException(Coordinator::Create(), [&] { throw Owned(std::move(owned)); });
  EXPECT_TRUE(watched.expired());
}

TEST(StopOnExceptionTest, AnExceptionMayHaveNoText) {
  struct Quiet : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  struct QuietSystemError : std::system_error {
    QuietSystemError() : std::system_error(std::make_error_code(std::errc::io_error)) {}
    const char* what() const noexcept override { return nullptr; }
  };
  for (const std::function<void()>& quiet :
       {std::function<void()>([] { throw Quiet(); }), {[] { throw QuietSystemError(); }}}) {
    const Coordinator coord = Coordinator::Create();
    StopOnException(coord, quiet);
    EXPECT_EQ(coord.FirstError()->message, "an exception whose what() is null");
  }
}

TEST(StopOnExceptionTest, ASystemErrorHasTheNameOfItsErrno) {
  const Coordinator coord = Coordinator::Create();
  StopOnException(coord, [] { throw std::system_error(ENOENT, std::generic_category(), "open"); });
  EXPECT_EQ(coord.FirstError()->code, "ENOENT");
}

TEST(StopOnExceptionTest, AThrownNumberIsTheMessage) {
  const Coordinator coord = Coordinator::Create();
  StopOnException(coord, [] { throw 42; });
  EXPECT_EQ(coord.FirstError()->message, "42");
  EXPECT_EQ(coord.FirstError()->native_type, "int");
}

TEST(RegistrationTest, FailsWithTheCaughtException) {
  const Coordinator coord = Coordinator::Create();
  Registration work(coord, "work");
  try {
    throw DiskError(9);
  } catch (...) {
    work.Fail();
  }
  EXPECT_FALSE(work);
  EXPECT_EQ(coord.FirstError()->message, "bad sector 9");
}

TEST(RaiseRequestedExceptionTest, ThrowsAStopErrorForWhatComesFromElsewhere) {
  const Coordinator coord = Coordinator::Create();
  Error error;
  error.name = "TypeError";
  error.message = "not a function";
  error.code = "ERR_SOMETHING";
  coord.RequestStop(error);
  try {
    RaiseRequestedException(coord);
    FAIL() << "it should have thrown";
  } catch (const StopError& raised) {
    EXPECT_STREQ(raised.what(), "TypeError: not a function");
    EXPECT_EQ(raised.error().code, "ERR_SOMETHING");
  }
}

TEST(RaiseRequestedExceptionTest, ThrowsNothingWithoutAnError) {
  const Coordinator coord = Coordinator::Create();
  RaiseRequestedException(coord);
  coord.RequestStop();
  RaiseRequestedException(coord);
}

TEST(RaiseRequestedExceptionTest, AForeignErrorKeepsItsIdentityThroughAnotherCoordinator) {
  const Coordinator one = Coordinator::Create();
  const Coordinator other = Coordinator::Create();
  Error error;
  error.name = "TypeError";
  error.message = "not a function";
  error.code = "E_SOMETHING";
  one.RequestStop(error);
  StopOnException(other, [&] { RaiseRequestedException(one); });
  const std::optional<Error> arrived = other.FirstError();
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->id, one.FirstError()->id);
  EXPECT_EQ(arrived->name, "TypeError");
  EXPECT_EQ(arrived->message, "not a function");
  EXPECT_EQ(arrived->code, "E_SOMETHING");
}

void FailDeeply(int depth) {
  try {
    if (depth == 0) throw DiskError(7);
    FailDeeply(depth - 1);
  } catch (...) {
    std::throw_with_nested(std::runtime_error("level " + std::to_string(depth)));
  }
}

// "TYPE: MESSAGE" of the exception that `function` throws and of each of its causes, as
// DescribeCaught describes them; no coordinator is involved.
std::vector<std::string> Causes(void (*function)()) {
  std::vector<std::string> messages;
  try {
    function();
  } catch (...) {
    allstop_error error = {};
    internal::DescribeCaught(
        Coordinator(), error, nullptr, 32,
        [](void* context, const allstop_error& described) {
          auto& own = *static_cast<std::vector<std::string>*>(context);
          for (const allstop_error* each = &described; each; each = each->cause) {
            own.push_back(std::string(each->native_type.data, each->native_type.size) + ": " +
                          std::string(each->message.data, each->message.size));
          }
        },
        &messages);
  }
  return messages;
}

#if __has_include(<unwind.h>) && !defined(_WIN32)
int foreign_ends = 0;  // how many of them were destroyed

// Throws as another language does: an exception of a class that C++ does not know.
void ThrowForeign() {
  static _Unwind_Exception thrown;
  thrown = {};
  std::memcpy(&thrown.exception_class, "TESTTEST", sizeof(thrown.exception_class));
  thrown.exception_cleanup = [](_Unwind_Reason_Code, _Unwind_Exception*) { ++foreign_ends; };
  _Unwind_RaiseException(&thrown);
  FAIL() << "it should not have returned";
}

TEST(ForeignExceptionTest, OneThatLeavesAThreadStopsEverybody) {
  foreign_ends = 0;
  const Coordinator coord = Coordinator::Create();
  Thread(coord, "reader", ThrowForeign).Join();
  EXPECT_EQ(coord.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(coord.FirstError()->message, "an exception of another language");
  EXPECT_EQ(foreign_ends, 1) << "it was destroyed, once";
  EXPECT_THROW(RaiseRequestedException(coord), StopError) << "it is not kept";
}

TEST(ForeignExceptionTest, OneThatARunOrAnOpThrowsStopsEverybody) {
  foreign_ends = 0;
  const Coordinator one = Coordinator::Create();
  bool ended = false;
  LooperOptions options;
  options.stop_loop = [&] { ended = true; };
  LooperThread::Loop(one, Milliseconds(0), ThrowForeign, options).Join();
  EXPECT_EQ(one.FirstError()->message, "an exception of another language");
  EXPECT_TRUE(ended);
  const Coordinator other = Coordinator::Create();
  std::unique_ptr<QueueRunner> runner;
  const auto op = [](const BoundedQueue&) {
    ThrowForeign();
    return Status();
  };
  const BoundedQueue queue(other, 1);
  EXPECT_TRUE(QueueRunner::New(queue, {op}, {}, other, &runner).ok());
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_EQ(runner->Join(), Status(ALLSTOP_STOPPED_BY_ERROR, "an exception of another language"));
  EXPECT_EQ(other.FirstError()->message, "an exception of another language");
  EXPECT_EQ(foreign_ends, 2);
}

TEST(ForeignExceptionTest, StopOnExceptionThrowsItOnAfterACompletedJoin) {
  foreign_ends = 0;
  const Coordinator coord = Coordinator::Create();
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
  Thread(coord, "late", [](const Coordinator& own) { StopOnException(own, ThrowForeign); }).Join();
  ASSERT_EQ(coord.SuppressedErrors().size(), 1u);
  EXPECT_EQ(coord.SuppressedErrors()[0].message, "an exception of another language");
  EXPECT_EQ(foreign_ends, 1);
}
#endif

TEST(NestedExceptionTest, TheWholeChainIsReported) {
  const auto causes = Causes([] { FailDeeply(2); });
  ASSERT_EQ(causes.size(), 4u);
  EXPECT_NE(causes[0].find("level 2"), std::string::npos);
  EXPECT_NE(causes[2].find("level 0"), std::string::npos);
  EXPECT_NE(causes[3].find("DiskError: bad sector 7"), std::string::npos);
}

TEST(NestedExceptionTest, ALongChainEndsWhereARecordEnds) {
  EXPECT_EQ(Causes([] { FailDeeply(100); }).size(), 33u);
}

// musl gives a thread 128 KB.
TEST(NestedExceptionTest, ALongChainNeedsLittleOfTheStack) {
  std::uintptr_t used = 0;
  try {
    FailDeeply(100);
  } catch (...) {
    allstop_error error = {};
    used = reinterpret_cast<std::uintptr_t>(&error);
    internal::DescribeCaught(
        Coordinator(), error, nullptr, ALLSTOP_MAX_CAUSES,
        [](void* context, const allstop_error&) {
          auto& from = *static_cast<std::uintptr_t*>(context);
          from -= reinterpret_cast<std::uintptr_t>(&context);
        },
        &used);
  }
  EXPECT_LT(used, 100'000u);
}

TEST(NestedExceptionTest, TheCauseOfAnObjectThatIsNoStdExceptionIsReportedToo) {
  struct Odd {};
  const auto causes = Causes([] {
    try {
      throw 42;
    } catch (...) {
      std::throw_with_nested(Odd());
    }
  });
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[1], "int: 42");
}

TEST(NestedExceptionTest, AnErrorStructMayHaveACause) {
  const Coordinator coord = Coordinator::Create();
  Error root;
  root.message = "root";
  Error error;
  error.message = "outer";
  error.cause = std::make_shared<const Error>(root);
  EXPECT_EQ(coord.RequestStop(error), ALLSTOP_OK);
  EXPECT_EQ(coord.Join(), ALLSTOP_STOPPED_BY_ERROR);
}

}  // namespace
}  // namespace allstop
