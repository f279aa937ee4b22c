// allstop::WaitUntilStop: a stop ends a wait at a condition variable.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_wait_until_stop.hpp>
#include <condition_variable>
#include <future>
#include <mutex>

namespace allstop {
namespace {

// A thread that waits for `ready`, and says under the mutex that it is about to wait.
class WaitUntilStopTest : public testing::Test {
 protected:
  void Start() {
    result_ = std::async(std::launch::async, [this] {
      std::unique_lock<std::mutex> lock(mutex_);
      const bool result = WaitUntilStop(coord_, lock, condition_, [this] {
        waiting_ = true;
        seen_.notify_all();
        return ready_;
      });
      EXPECT_TRUE(lock.owns_lock());
      return result;
    });
    std::unique_lock<std::mutex> lock(mutex_);
    seen_.wait(lock, [this] { return waiting_; });
  }

  const Coordinator coord_ = Coordinator::Create();
  std::mutex mutex_;
  std::condition_variable condition_;
  std::condition_variable seen_;
  bool ready_ = false;    // guarded by mutex_
  bool waiting_ = false;  // guarded by mutex_
  std::future<bool> result_;
};

TEST_F(WaitUntilStopTest, ReturnsTrueWhenThePredicateIs) {
  Start();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ready_ = true;
  }
  condition_.notify_one();
  EXPECT_TRUE(result_.get());
}

TEST_F(WaitUntilStopTest, ReturnsFalseAtTheStop) {
  Start();
  coord_.RequestStop();
  EXPECT_FALSE(result_.get());
}

TEST_F(WaitUntilStopTest, ReturnsAtAStopThatIsClearedAtOnce) {
  Start();
  coord_.RequestStop();
  coord_.ClearStop();
  EXPECT_FALSE(result_.get());
}

TEST_F(WaitUntilStopTest, TheStopMayBeRequestedUnderTheMutex) {
  Start();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    coord_.RequestStop();
  }
  EXPECT_FALSE(result_.get());
}

TEST_F(WaitUntilStopTest, ReturnsThePredicateThatBecameTrueWithTheStop) {
  Start();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ready_ = true;
    coord_.RequestStop();
  }
  EXPECT_TRUE(result_.get());
}

TEST_F(WaitUntilStopTest, DoesNotWaitAfterAStop) {
  coord_.RequestStop();
  std::unique_lock<std::mutex> lock(mutex_);
  EXPECT_FALSE(WaitUntilStop(coord_, lock, condition_, [] { return false; }));
  EXPECT_TRUE(WaitUntilStop(coord_, lock, condition_, [] { return true; }));
}

TEST_F(WaitUntilStopTest, GivesTheLockBackWhenThePredicateThrows) {
  std::unique_lock<std::mutex> lock(mutex_);
  EXPECT_THROW(WaitUntilStop(coord_, lock, condition_, []() -> bool { throw 42; }), int);
  EXPECT_TRUE(lock.owns_lock());
}

TEST_F(WaitUntilStopTest, WaitsWithAnEmptyCoordinatorForThePredicateAlone) {
  std::unique_lock<std::mutex> lock(mutex_);
  int asked = 0;
  EXPECT_TRUE(WaitUntilStop(Coordinator(), lock, condition_, [&] { return ++asked == 3; }));
}

// Stops at the moment between the check and the wait, again and again: no wait lasts for ever.
TEST_F(WaitUntilStopTest, NoStopIsMissed) {
  for (int round = 0; round < 200; ++round) {
    waiting_ = false;
    Start();
    coord_.RequestStop();
    EXPECT_FALSE(result_.get());
    coord_.ClearStop();
  }
}

}  // namespace
}  // namespace allstop
