// allstop::Registration: work on threads of a pool counts as a registered thread.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <future>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "record.h"

namespace allstop {
namespace {

using test::Record;
using test::RecordOf;

constexpr Milliseconds kNoGrace{0};

static_assert(!std::is_copy_constructible_v<Registration>);
static_assert(std::is_nothrow_move_constructible_v<Registration>);
static_assert(std::is_nothrow_move_assignable_v<Registration>);

Error MakeError(std::string name, std::string message) {
  Error error;
  error.name = std::move(name);
  error.message = std::move(message);
  return error;
}

TEST(RegistrationTest, AJoinWaitsForWorkThatHasNoThreadYet) {
  const Coordinator coord = Coordinator::Create();
  Registration work(coord, "queued");
  EXPECT_TRUE(work);
  coord.RequestStop();
  EXPECT_EQ(coord.Join(kNoGrace), ALLSTOP_STRAGGLERS);
  coord.ClearStop();
  Registration again(coord, "queued again");
  work = Registration();
  again = Registration();
  EXPECT_FALSE(again);
  EXPECT_EQ(coord.Join(), ALLSTOP_OK);
}

TEST(RegistrationTest, ItsWorkIsEnteredOnAThreadOfThePoolAndEndsOnAnother) {
  const Coordinator coord = Coordinator::Create();
  {
    Registration work(coord, "hash");
    std::thread([&] {
      work.Enter();
      EXPECT_EQ(coord.Join(), ALLSTOP_SELF_JOIN) << "this thread does the registered work";
      coord.RequestStop(MakeError("RangeError", "too long"));
    }).join();
    EXPECT_EQ(RecordOf(coord).thread, "hash");
  }
  EXPECT_EQ(coord.Join(), ALLSTOP_STOPPED_BY_ERROR);
}

TEST(RegistrationTest, AThreadOfThePoolKeepsNoNameOfAnEarlierWork) {
  const Coordinator coord = Coordinator::Create();
  std::promise<void> entered;
  std::promise<void> ended;
  Registration work(coord, "hash");
  std::thread pool([&] {
    work.Enter();
    entered.set_value();
    ended.get_future().wait();
    EXPECT_EQ(coord.Join(), ALLSTOP_OK) << "the thread is no longer a registered one";
    coord.RequestStop();
  });
  entered.get_future().wait();
  work = Registration();
  ended.set_value();
  pool.join();
  EXPECT_NE(RecordOf(coord).thread, "hash");
}

TEST(RegistrationTest, AThreadHasItsNameAgainInWhateverOrderNestedWorkEnds) {
  const Coordinator coord = Coordinator::Create();
  Registration outer(coord, "outer");
  outer.Enter();
  Registration middle(coord, "middle");
  middle.Enter();
  Registration inner(coord, "inner");
  inner.Enter();
  middle = Registration();
  inner = Registration();
  coord.RequestStop();
  EXPECT_EQ(RecordOf(coord).thread, "outer");
}

TEST(RegistrationTest, WorkThatFailsStopsEverybodyAndSaysWhy) {
  const Coordinator coord = Coordinator::Create();
  Thread other(coord, "other", [](const Coordinator& own) { own.WaitForStop(); });
  Registration work(coord, "hash");
  std::thread([&] {
    work.Enter();
    work.Fail(MakeError("RangeError", "too long"));
  }).join();
  EXPECT_FALSE(work);
  work.Fail(MakeError("RangeError", "again"));
  work.Enter();
  EXPECT_EQ(coord.Join(), ALLSTOP_STOPPED_BY_ERROR);
  const Record info = RecordOf(coord);
  EXPECT_EQ(info.message, "too long");
  EXPECT_EQ(info.thread, "hash");
}

TEST(RegistrationTest, MovesWithTheWork) {
  const Coordinator coord = Coordinator::Create();
  Registration first(coord, "first");
  Registration second(coord, "second");
  first = std::move(second);  // "first" ends here
  const Registration moved = std::move(first);
  EXPECT_TRUE(moved);
  coord.RequestStop();
  EXPECT_EQ(coord.Join(kNoGrace), ALLSTOP_STRAGGLERS) << "\"second\" is alive";
}

TEST(RegistrationTest, KeepsItsCoordinatorAlive) {
  Registration work(Coordinator::Create(), "orphan");
  work.Enter();
  work.Fail(MakeError("RangeError", "nobody hears of it"));
}

TEST(RegistrationTest, WithAnEmptyCoordinatorItDoesNothing) {
  Registration work(Coordinator(), "nothing");
  EXPECT_FALSE(work);
  work.Enter();
  work.Fail(MakeError("RangeError", "nobody hears of it"));
}

}  // namespace
}  // namespace allstop
