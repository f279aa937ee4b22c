// Coordinator::StopAfter: a deadline that ends with its object.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "record.h"

namespace allstop {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(DeadlineTest, StopsWithADeadlineExceededErrorAndNotBefore) {
  const Coordinator coord = Coordinator::Create({"upload"});
  const auto began = steady_clock::now();
  const Deadline deadline = coord.StopAfter(milliseconds(20));
  EXPECT_TRUE(deadline);
  EXPECT_TRUE(coord.WaitForStop());
  EXPECT_GE(steady_clock::now() - began, milliseconds(20));
  const auto record = test::RecordOf(coord);
  EXPECT_EQ(record.kind, ALLSTOP_STOP_ERROR);
  EXPECT_EQ(record.name, "DeadlineExceededError");
  EXPECT_EQ(record.message, "The deadline of the coordinator 'upload' has passed: StopAfter(20)");
  EXPECT_EQ(coord.FirstError()->code, "ERR_ALLSTOP_DEADLINE_EXCEEDED");
}

// The first deadline was due before the last: when the last has come, the first would have come.
TEST(DeadlineTest, IsCalledOffByTheEndOfItsObject) {
  const Coordinator kept = Coordinator::Create();
  const Coordinator moved = Coordinator::Create();
  const Coordinator last = Coordinator::Create();
  const Deadline end = last.StopAfter(milliseconds(60));
  {
    const Deadline first = kept.StopAfter(milliseconds(30));
    Deadline given = moved.StopAfter(hours(1));
    given = kept.StopAfter(milliseconds(30));
    const Deadline taken = std::move(given);
    EXPECT_FALSE(given);
    EXPECT_TRUE(taken);
  }
  EXPECT_TRUE(last.WaitForStop());
  EXPECT_FALSE(kept.ShouldStop());
  EXPECT_FALSE(moved.ShouldStop());
}

TEST(DeadlineTest, ThatHasPassedStopsAtOnce) {
  for (const auto timeout : {milliseconds(0), milliseconds(-5)}) {
    const Coordinator coord = Coordinator::Create();
    const Deadline deadline = coord.StopAfter(timeout);
    EXPECT_TRUE(coord.WaitForStop());
  }
}

TEST(DeadlineTest, ThatNeverComesIsOneNonetheless) {
  const Coordinator coord = Coordinator::Create();
  Deadline never = coord.StopAfter(Milliseconds(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(never);
  never.CallOff();
  EXPECT_FALSE(never);
  EXPECT_FALSE(coord.ShouldStop());
}

TEST(DeadlineTest, RefusesWhatIsNoTime) {
  const Coordinator coord = Coordinator::Create();
  allstop_deadline* deadline = nullptr;
  for (const double ms : {std::nan(""), -1.0}) {
    EXPECT_EQ(allstop_stop_after(coord.handle(), ms, &deadline), ALLSTOP_INVALID_ARGUMENT);
    EXPECT_EQ(deadline, nullptr);
  }
  allstop_deadline_release(coord.handle(), nullptr);
}

// A deadline that is due keeps its coordinator; one that is called off does not.
TEST(DeadlineTest, OutlivesTheCoordinatorObject) {
  Coordinator coord = Coordinator::Create();
  const Coordinator child = coord.Child();
  const Deadline deadline = coord.StopAfter(milliseconds(10));
  coord = Coordinator();
  EXPECT_TRUE(child.WaitForStop());
}

}  // namespace
}  // namespace allstop
