#include "core/condition_variable.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "gate.h"

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>
#endif

namespace allstop::core {
namespace {

using test::Gate;
using Clock = std::chrono::steady_clock;

static_assert(!std::is_copy_constructible_v<ConditionVariable>);
static_assert(!std::is_copy_assignable_v<ConditionVariable>);

// A wait may wake up spuriously, but not that often: a wait with this many wake-ups does not wait.
constexpr int kTooMany = 50;

TEST(ConditionVariableTest, ATimedWaitLastsUntilItsTime) {
  std::mutex mutex;
  ConditionVariable condition;
  std::unique_lock<std::mutex> lock(mutex);
  const auto at = Clock::now() + std::chrono::milliseconds(20);
  int waits = 0;
  for (; Clock::now() < at && waits < kTooMany; ++waits) condition.wait_until(lock, at);
  EXPECT_LT(waits, kTooMany);
  EXPECT_TRUE(lock.owns_lock());
}

TEST(ConditionVariableTest, ATimeThatHasPassedEndsAtOnce) {
  std::mutex mutex;
  ConditionVariable condition;
  std::unique_lock<std::mutex> lock(mutex);
  const auto now = Clock::now();
  for (const auto passed :
       {now, now - std::chrono::nanoseconds(1), Clock::time_point(),
        Clock::time_point() - std::chrono::nanoseconds(1),
        Clock::time_point() - std::chrono::milliseconds(1500), Clock::time_point::min()}) {
    condition.wait_until(lock, passed);
    EXPECT_TRUE(lock.owns_lock());
  }
}

TEST(ConditionVariableTest, TheLastTimeThereIsIsFarAwayAndANotificationIsNot) {
  std::mutex mutex;
  ConditionVariable condition;
  bool done = false;
  int waits = 0;
  Gate over;
  std::thread waiter([&] {
    {
      std::unique_lock<std::mutex> lock(mutex);
      for (; !done && waits < kTooMany; ++waits) {
        condition.wait_until(lock, Clock::time_point::max());
      }
    }
    over.Open();
  });
  EXPECT_FALSE(over.OpensWrongly());
  {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
  }
  condition.notify_one();
  waiter.join();
  EXPECT_LT(waits, kTooMany);
}

TEST(ConditionVariableTest, EachNotificationWakesOneAtLeast) {
  constexpr int kWaiters = 3;
  std::mutex mutex;
  ConditionVariable condition;
  ConditionVariable taken;
  int waiting = 0;
  int offered = 0;
  std::vector<std::thread> waiters;
  for (int i = 0; i < kWaiters; ++i) {
    waiters.emplace_back([&] {
      std::unique_lock<std::mutex> lock(mutex);
      ++waiting;
      taken.notify_one();
      condition.wait(lock, [&] { return offered > 0; });
      --offered;
      --waiting;
      taken.notify_one();
    });
  }
  std::unique_lock<std::mutex> lock(mutex);
  taken.wait(lock, [&] { return waiting == kWaiters; });
  for (int left = kWaiters; left > 0; --left) {
    ++offered;
    condition.notify_one();
    taken.wait(lock, [&] { return offered == 0; });
    EXPECT_EQ(waiting, left - 1);
  }
  lock.unlock();
  for (std::thread& waiter : waiters) waiter.join();
}

TEST(ConditionVariableTest, NotifyAllWakesAll) {
  constexpr int kWaiters = 3;
  std::mutex mutex;
  ConditionVariable condition;
  ConditionVariable arrived;
  int waiting = 0;
  bool done = false;
  std::vector<std::thread> waiters;
  for (int i = 0; i < kWaiters; ++i) {
    waiters.emplace_back([&, is_timed = i == 0] {
      std::unique_lock<std::mutex> lock(mutex);
      ++waiting;
      arrived.notify_one();
      while (!done) {
        if (is_timed) {
          condition.wait_until(lock, Clock::now() + std::chrono::hours(1));
        } else {
          condition.wait(lock);
        }
      }
    });
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    arrived.wait(lock, [&] { return waiting == kWaiters; });
    done = true;
  }
  condition.notify_all();
  for (std::thread& waiter : waiters) waiter.join();
}

#ifdef __linux__

// The system call that a thread of this process is in, read from /proc.
class SystemCall {
 public:
  explicit SystemCall(long thread_id) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread_id) + "/syscall");
    std::string number;
    is_told_ = static_cast<bool>(file >> number);
    if (!is_told_ || number == "running") return;
    number_ = std::stol(number);
    std::string text;
    for (unsigned long& argument : arguments_) {
      if (file >> text) argument = std::stoul(text, nullptr, 16);
    }
  }

  bool is_told() const { return is_told_; }
  bool IsTimedFutexWait() const {
    bool is_futex = number_ == SYS_futex;
#ifdef SYS_futex_time64
    is_futex = is_futex || number_ == SYS_futex_time64;
#endif
    return is_futex && arguments_[3] != 0;
  }
  bool IsOnTheWallClock() const { return (arguments_[1] & FUTEX_CLOCK_REALTIME) != 0; }

 private:
  bool is_told_ = false;
  long number_ = -1;
  unsigned long arguments_[6] = {};
};

// A test cannot set the wall clock, but the kernel shows which clock a wait uses.
TEST(ConditionVariableTest, TheKernelDoesNotWaitOnTheWallClock) {
  std::mutex mutex;
  ConditionVariable condition;
  bool done = false;
  int waits = 0;
  long thread_id = 0;
  Gate begins;
  std::thread waiter([&] {
    std::unique_lock<std::mutex> lock(mutex);
    thread_id = syscall(SYS_gettid);
    begins.Open();
    for (; !done && waits < kTooMany; ++waits) {
      condition.wait_until(lock, Clock::now() + std::chrono::hours(1));
    }
  });
  begins.Wait();
  mutex.lock();  // succeeds once the waiter has released it, inside wait_until
  mutex.unlock();
  SystemCall call(thread_id);
  while (call.is_told() && !call.IsTimedFutexWait()) {
    std::this_thread::yield();
    call = SystemCall(thread_id);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
  }
  condition.notify_one();
  waiter.join();
  ASSERT_LT(waits, kTooMany);
  ASSERT_TRUE(call.is_told()) << "/proc/self/task/*/syscall cannot be read";
  EXPECT_FALSE(call.IsOnTheWallClock());
}

#endif

}  // namespace
}  // namespace allstop::core
