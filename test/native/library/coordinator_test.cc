// allstop::Coordinator in a C++ program without JavaScript, through the public headers only.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "record.h"

namespace allstop {
namespace {

using test::RecordOf;

Error Named(std::string name, std::string message = "why") {
  Error error;
  error.name = std::move(name);
  error.message = std::move(message);
  return error;
}

TEST(LibraryTest, ACoordinatorIsMadeAndStops) {
  const Coordinator coord = Coordinator::Create();
  ASSERT_TRUE(coord);
  EXPECT_FALSE(coord.ShouldStop());
  EXPECT_EQ(coord.RequestStop(), ALLSTOP_OK);
  EXPECT_TRUE(coord.ShouldStop());
  EXPECT_TRUE(coord.WaitForStop());
  EXPECT_EQ(RecordOf(coord).kind, ALLSTOP_STOP_PLAIN);
}

TEST(LibraryTest, ARequestSaysWhetherItMadeTheStop) {
  const Coordinator coord = Coordinator::Create();
  bool made = false;
  bool made_by_the_callback = true;
  const StopCallback callback(coord, [&] { coord.RequestStop(&made_by_the_callback); });
  EXPECT_EQ(coord.RequestStop(&made), ALLSTOP_OK);
  EXPECT_TRUE(made);
  EXPECT_FALSE(made_by_the_callback);
  EXPECT_EQ(coord.RequestStop(Named("TypeError"), &made), ALLSTOP_OK) << "kept as suppressed";
  EXPECT_FALSE(made);
  coord.ClearStop();
  EXPECT_EQ(coord.RequestStop(Named("TypeError"), &made), ALLSTOP_OK);
  EXPECT_TRUE(made);
}

TEST(LibraryTest, AChildOfAStoppedParentDoesNotMakeItsStop) {
  const Coordinator parent = Coordinator::Create();
  const Coordinator child = parent.Child();
  parent.RequestStop();
  bool made = true;
  EXPECT_EQ(child.RequestStop(&made), ALLSTOP_OK);
  EXPECT_FALSE(made);
}

TEST(LibraryTest, ARequestThatIsRefusedMadeNoStop) {
  const Coordinator coord = Coordinator::Create();
  coord.Join();
  bool made = true;
  EXPECT_EQ(coord.RequestStop(Named("TypeError"), &made), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_FALSE(made);
  const allstop_error sizeless = {};
  int made_in_c = 1;
  EXPECT_EQ(allstop_request_stop_made(coord.handle(), &sizeless, &made_in_c),
            ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(made_in_c, 0);
}

TEST(LibraryTest, AnErrorWithoutFieldsStillIsAnError) {
  const Coordinator coord = Coordinator::Create();
  coord.RequestStop({});
  EXPECT_EQ(RecordOf(coord).kind, ALLSTOP_STOP_ERROR);
}

TEST(LibraryTest, CopiesShareOneState) {
  Coordinator one = Coordinator::Create();
  const Coordinator other = one;
  one = Coordinator();
  EXPECT_FALSE(one);
  std::thread([other] { other.RequestStop(); }).join();
  EXPECT_TRUE(other.ShouldStop());
}

TEST(LibraryTest, TheEndOfTheDataIsACleanStopUnlessTheOptionsSayOtherwise) {
  const Coordinator coord = Coordinator::Create();
  coord.RequestStop(Named("OutOfRangeError"));
  EXPECT_EQ(RecordOf(coord).kind, ALLSTOP_STOP_CLEAN);
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);

  Options none;
  none.clean_stop_types.emplace();
  const Coordinator strict = Coordinator::Create(none);
  strict.RequestStop(Named("OutOfRangeError"));
  EXPECT_EQ(RecordOf(strict).kind, ALLSTOP_STOP_ERROR);
  EXPECT_EQ(strict.Join(), ALLSTOP_STOPPED_BY_ERROR);

  Options own;
  own.clean_stop_types = {"EndOfTape"};
  const Coordinator tape = Coordinator::Create(own);
  tape.RequestStop(Named("EndOfTape"));
  EXPECT_EQ(RecordOf(tape).kind, ALLSTOP_STOP_CLEAN);
}

TEST(LibraryTest, AChildStopsWithItsParentAndNotTheOtherWayRound) {
  const Coordinator parent = Coordinator::Create();
  const Coordinator child = parent.Child();
  const Coordinator sibling = parent.Child();
  ASSERT_TRUE(child);
  child.RequestStop();
  EXPECT_FALSE(parent.ShouldStop());
  EXPECT_FALSE(sibling.ShouldStop());
  parent.RequestStop();
  EXPECT_TRUE(sibling.ShouldStop());
  EXPECT_EQ(sibling.ClearStop(), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_TRUE(parent.Child().ShouldStop());
}

TEST(LibraryTest, AChildTakesItsParentsCleanStopTypes) {
  Options options;
  options.clean_stop_types = {"EndOfTape"};
  const Coordinator child = Coordinator::Create(options).Child();
  child.RequestStop(Named("EndOfTape"));
  EXPECT_EQ(RecordOf(child).kind, ALLSTOP_STOP_CLEAN);
}

TEST(LibraryTest, ChildrenNestNoDeeperThanIsSafe) {
  Coordinator coord = Coordinator::Create();
  int depth = 0;
  for (Coordinator child = coord.Child(); child; child = coord.Child(), ++depth) coord = child;
  EXPECT_EQ(depth, 256);
}

TEST(LibraryTest, AReportedErrorStopsNobodyAndIsWhatAStoppedJoinComesTo) {
  const Coordinator coord = Coordinator::Create();
  EXPECT_EQ(coord.ReportError(Named("TypeError", "first")), ALLSTOP_OK);
  EXPECT_EQ(coord.ReportError(Named("RangeError", "second")), ALLSTOP_OK);
  EXPECT_FALSE(coord.ShouldStop());
  EXPECT_EQ(coord.Join(), ALLSTOP_OK) << "no stop was requested";
  coord.ClearStop();
  EXPECT_EQ(coord.ReportError(Named("TypeError", "again")), ALLSTOP_OK);
  coord.RequestStop();
  EXPECT_EQ(coord.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(RecordOf(coord).kind, ALLSTOP_STOP_PLAIN);
}

TEST(LibraryTest, AReportedErrorIsForgottenWithTheStop) {
  const Coordinator coord = Coordinator::Create();
  coord.ReportError(Named("TypeError"));
  coord.ClearStop();
  coord.RequestStop();
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
}

TEST(LibraryTest, AReportOfACleanStopTypeIsNotKept) {
  const Coordinator coord = Coordinator::Create();
  EXPECT_EQ(coord.ReportError(Named("OutOfRangeError")), ALLSTOP_OK);
  coord.RequestStop();
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
}

TEST(LibraryTest, TheErrorOfTheStopGoesBeforeTheReportedOne) {
  const Coordinator coord = Coordinator::Create();
  coord.ReportError(Named("TypeError", "reported"));
  coord.RequestStop(Named("RangeError", "stopped"));
  EXPECT_EQ(RecordOf(coord, allstop_first_error).message, "stopped");
}

TEST(LibraryTest, AReportedErrorSaysWhoReportedItAndIsTheSameWhenItIsReportedAgain) {
  const Coordinator coord = Coordinator::Create();
  char id[64];
  Error error = Named("TypeError", "first");
  error.id.assign(id, allstop_new_id(coord.handle(), id, sizeof(id)));
  Thread(coord, "reporter", [&] { coord.ReportError(error); }).Join();
  EXPECT_EQ(RecordOf(coord, allstop_first_error).thread, "reporter");
  coord.ReportError(error);
  coord.RequestStop(Named("RangeError"));
  EXPECT_EQ(coord.FirstError()->name, "RangeError");
}

TEST(LibraryTest, AnErrorIsReadWithItsCauses) {
  const Coordinator coord = Coordinator::Create();
  Error middle = Named("RangeError", "middle");
  middle.cause = std::make_shared<const Error>(Named("TypeError", "root"));
  Error outer = Named("", "outer");
  outer.cause = std::make_shared<const Error>(middle);
  coord.RequestStop(outer);
  const Error read = *coord.FirstError();
  EXPECT_EQ(read.message, "outer");
  ASSERT_TRUE(read.cause);
  EXPECT_EQ(read.cause->name, "RangeError");
  ASSERT_TRUE(read.cause->cause);
  EXPECT_EQ(read.cause->cause->message, "root");
  EXPECT_FALSE(read.cause->cause->cause);
}

TEST(LibraryTest, LaterErrorsAreReadAsSuppressedOnes) {
  const Coordinator coord = Coordinator::Create();
  EXPECT_TRUE(coord.SuppressedErrors().empty());
  coord.RequestStop(Named("TypeError", "the stop"));
  EXPECT_TRUE(coord.SuppressedErrors().empty());
  Error second = Named("RangeError", "second");
  second.cause = std::make_shared<const Error>(Named("", "its cause"));
  coord.RequestStop(second);
  for (int i = 3; i < 30; ++i) coord.ReportError(Named("", "number " + std::to_string(i)));
  const std::vector<Error> suppressed = coord.SuppressedErrors();
  ASSERT_EQ(suppressed.size(), 16u);
  EXPECT_EQ(suppressed[0].message, "second");
  EXPECT_EQ(suppressed[0].cause->message, "its cause");
  EXPECT_EQ(suppressed[1].message, "number 3");
  EXPECT_EQ(suppressed[15].message, "number 17");
  coord.ClearStop();
  EXPECT_TRUE(coord.SuppressedErrors().empty());
}

TEST(LibraryTest, NoMoreSuppressedErrorsAreGivenThanThereIsRoomFor) {
  const Coordinator coord = Coordinator::Create();
  coord.RequestStop();
  for (int i = 0; i < 3; ++i) coord.RequestStop(Named("", std::to_string(i)));
  allstop_record* records[2] = {};
  std::size_t count = 9;
  EXPECT_EQ(allstop_suppressed_errors(coord.handle(), records, 2, &count), ALLSTOP_OK);
  ASSERT_EQ(count, 2u);
  for (allstop_record* const record : records) allstop_record_release(coord.handle(), record);
}

TEST(LibraryTest, IdsAreNeverGivenTwice) {
  const Coordinator coord = Coordinator::Create();
  char one[64];
  char other[64];
  const std::string first(one, allstop_new_id(coord.handle(), one, sizeof(one)));
  const std::string second(other, allstop_new_id(coord.handle(), other, sizeof(other)));
  EXPECT_FALSE(first.empty());
  EXPECT_NE(first, second);
  EXPECT_EQ(allstop_new_id(coord.handle(), one, 3), 0u) << "it does not fit";
}

TEST(LibraryTest, ATimeThatIsNotANumberIsRefusedAsInC) {
  const Milliseconds nan(std::nan(""));
  const Coordinator coord = Coordinator::Create();
  EXPECT_EQ(coord.Join(nan), ALLSTOP_INVALID_ARGUMENT);
  Item item;
  EXPECT_EQ(BoundedQueue(coord, 1).Dequeue(item, nan), ALLSTOP_INVALID_ARGUMENT);
  coord.RequestStop();
  EXPECT_FALSE(coord.WaitForStop(nan));
  EXPECT_TRUE(coord.WaitForStop(Milliseconds(-1)));
}

}  // namespace
}  // namespace allstop
