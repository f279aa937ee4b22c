// allstop::Interruptible: a stop ends the system call in which a thread is blocked.
#include <gtest/gtest.h>

#ifdef __linux__

#include <sched.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_interruptible.hpp>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "blocking_calls.h"

namespace allstop {
namespace {

struct Outcome {
  long result;
  int error;
};

// Makes the call on a thread of its own, under a guard, and again as long as nothing but the stop
// could have ended it.
class GuardedCall {
 public:
  GuardedCall(const Coordinator& coord, const std::function<long()>& block) {
    std::promise<void> begins;
    const std::future<void> begun = begins.get_future();
    outcome_ = std::async(std::launch::async, [coord, block, &begins] {
      long result;
      {
        const Interruptible guard(coord);
        EXPECT_TRUE(guard);
        begins.set_value();
        result = block();
      }
      return Outcome{result, errno};
    });
    begun.wait();
  }

  void ExpectInterrupted() {
    const Outcome outcome = outcome_.get();
    EXPECT_EQ(outcome.result, -1);
    EXPECT_EQ(outcome.error, EINTR) << "the end of a guard keeps errno";
  }

 private:
  std::future<Outcome> outcome_;
};

// Signals that are open in the mask of the calling thread.
std::vector<int> OpenSignals() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::vector<int> open;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (sigismember(&mask, signal) == 0) open.push_back(signal);
  }
  return open;
}

void CloseAllSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

// Runs `body` on a thread of its own, whose mask is closed.
template <typename Body>
void OnAThreadWithAClosedMask(Body body) {
  std::thread([&] {
    CloseAllSignals();
    body();
  }).join();
}

// The signal that interrupts.
int Signal(const Coordinator& coord) {
  int signal = 0;
  OnAThreadWithAClosedMask([&] {
    const auto before = OpenSignals();
    const Interruptible guard(coord);
    const auto inside = OpenSignals();
    ASSERT_EQ(inside.size(), before.size() + 1);
    for (const int each : inside) {
      if (std::find(before.begin(), before.end(), each) == before.end()) signal = each;
    }
  });
  return signal;
}

TEST(InterruptibleTest, AStopEndsEachBlockingCall) {
  test::BlockingCalls calls;
  for (const test::BlockingCall& call : calls.All()) {
    SCOPED_TRACE(call.name);
    const Coordinator coord = Coordinator::Create();
    GuardedCall guarded(coord, call.block);
    coord.RequestStop();
    guarded.ExpectInterrupted();
  }
}

TEST(InterruptibleTest, ThreadsWithoutAGuardAreNotInterrupted) {
  test::BlockingCalls calls;
  const Coordinator coord = Coordinator::Create();
  int pipes[2][2];
  ASSERT_EQ(pipe(pipes[0]) + pipe(pipes[1]), 0);
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  std::atomic<int> interrupted{0};
  std::atomic<bool> end{false};
  std::vector<std::thread> others;
  others.emplace_back([&] {
    char byte;
    if (read(pipes[0][0], &byte, 1) != 1) ++interrupted;
  });
  others.emplace_back([&] {
    pollfd polled = {pipes[1][0], POLLIN, 0};
    if (poll(&polled, 1, -1) != 1) ++interrupted;
  });
  others.emplace_back([&] {
    if (sem_wait(&semaphore) != 0) ++interrupted;
  });
  others.emplace_back([&] {  // one that had a guard
    { const Interruptible guard(coord); }
    const timespec moment = {0, 100'000};
    while (!end) {
      if (nanosleep(&moment, nullptr) != 0) ++interrupted;
    }
  });
  for (const test::BlockingCall& call : calls.All()) {
    const Coordinator child = coord.Child();
    GuardedCall guarded(child, call.block);
    child.RequestStop();
    guarded.ExpectInterrupted();
  }
  coord.RequestStop();
  end = true;
  EXPECT_EQ(write(pipes[0][1], "x", 1) + write(pipes[1][1], "x", 1), 2);
  sem_post(&semaphore);
  for (std::thread& other : others) other.join();
  EXPECT_EQ(interrupted, 0);
}

TEST(InterruptibleTest, ACallThatBeginsAfterTheStopEndsToo) {
  test::BlockingCalls calls;
  const Coordinator coord = Coordinator::Create();
  coord.RequestStop();
  GuardedCall(coord, calls.All().front().block).ExpectInterrupted();
}

// The first signals have ended other calls.
TEST(InterruptibleTest, ACallThatBeginsAfterSeveralSignalsEnds) {
  test::BlockingCalls calls;
  const auto read = calls.All().front().block;
  const Coordinator coord = Coordinator::Create();
  GuardedCall guarded(coord, [&] {
    const timespec hour = {3600, 0};
    for (int signals = 0; signals < 5; ++signals) EXPECT_EQ(nanosleep(&hour, nullptr), -1);
    coord.ClearStop();  // changes nothing for this guard
    return read();
  });
  coord.RequestStop();
  guarded.ExpectInterrupted();
}

TEST(InterruptibleTest, TheStopOfEitherOfTwoCoordinatorsEndsACall) {
  test::BlockingCalls calls;
  const auto read = calls.All().front().block;
  for (const bool outer_stops : {false, true}) {
    const Coordinator outer = Coordinator::Create();
    const Coordinator inner = Coordinator::Create();
    GuardedCall guarded(outer, [&] {
      const Interruptible guard(inner);
      return read();
    });
    (outer_stops ? outer : inner).RequestStop();
    guarded.ExpectInterrupted();
  }
}

TEST(InterruptibleTest, AGuardMayBeLeftBeforeOneThatIsOlder) {
  test::BlockingCalls calls;
  const auto read = calls.All().front().block;
  const Coordinator coord = Coordinator::Create();
  const Coordinator other = Coordinator::Create();
  GuardedCall guarded(other, [&] {
    std::optional<Interruptible> first(coord);
    const Interruptible second(coord);
    first.reset();
    return read();
  });
  coord.RequestStop();
  guarded.ExpectInterrupted();
}

// A signal that was sent before the guard was left would end the next call.
TEST(InterruptibleTest, TheCallAfterTheGuardIsNotInterrupted) {
  const Coordinator coord = Coordinator::Create();
  const Coordinator outer = Coordinator::Create();
  const timespec moment = {0, 20'000};
  int interrupted = 0;
  for (int round = 0; round < 3000; ++round) {
    const Interruptible around(outer);  // the signal stays open
    {
      const Interruptible guard(coord);
      coord.RequestStop();
    }
    coord.ClearStop();
    if (nanosleep(&moment, nullptr) != 0) ++interrupted;
  }
  EXPECT_EQ(interrupted, 0);
}

TEST(InterruptibleTest, TheMaskIsRestored) {
  const Coordinator coord = Coordinator::Create();
  const int signal = Signal(coord);
  ASSERT_GE(signal, SIGRTMIN);
  OnAThreadWithAClosedMask([&] {
    const auto closed = OpenSignals();
    {
      const Interruptible guard(coord);
      const Interruptible inner(coord);
    }
    EXPECT_EQ(OpenSignals(), closed);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    const auto open = OpenSignals();
    { const Interruptible guard(coord); }
    EXPECT_EQ(OpenSignals(), open);
    {
      const Interruptible guard(coord);
      CloseAllSignals();  // by the program, which means it
    }
    EXPECT_EQ(OpenSignals(), closed);
  });
}

std::atomic<int> handled{0};

TEST(InterruptibleTest, ASignalThatHasAHandlerIsLeftAlone) {
  test::BlockingCalls calls;
  const auto read = calls.All().front().block;
  const Coordinator coord = Coordinator::Create();
  const int before = Signal(coord);
  struct sigaction own = {};
  own.sa_handler = [](int) { ++handled; };
  sigaction(before, &own, nullptr);
  sigaction(before - 1, &own, nullptr);

  EXPECT_EQ(Signal(coord), before - 2);
  GuardedCall guarded(coord, read);
  coord.RequestStop();
  guarded.ExpectInterrupted();
  EXPECT_EQ(handled, 0);
  for (const int signal : {before, before - 1}) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    EXPECT_EQ(now.sa_handler, own.sa_handler);
  }
}

// Without its handler the signal would end the process.
TEST(InterruptibleTest, NoSignalIsSentWhoseHandlerWasTakenAway) {
  const Coordinator coord = Coordinator::Create();
  const int signal = Signal(coord);
  {
    const Interruptible guard(coord);
    struct sigaction none = {};
    none.sa_handler = SIG_DFL;
    sigaction(signal, &none, nullptr);
    coord.RequestStop();
    const timespec moment = {0, 5'000'000};
    EXPECT_EQ(nanosleep(&moment, nullptr), 0);
  }
}

TEST(InterruptibleTest, AGuardWhoseSignalAnotherHandlerHasTakenIsFalse) {
  test::BlockingCalls calls;
  const Coordinator coord = Coordinator::Create();
  const int signal = Signal(coord);
  {
    const Interruptible guard(coord);
    EXPECT_TRUE(guard);
    struct sigaction own = {};
    own.sa_handler = [](int) { ++handled; };
    sigaction(signal, &own, nullptr);
    EXPECT_FALSE(guard);
  }
  GuardedCall guarded(coord, calls.All().front().block);  // by another signal
  coord.RequestStop();
  guarded.ExpectInterrupted();
}

TEST(InterruptibleTest, NoSignalLeftIsAnError) {
  struct sigaction own = {};
  own.sa_handler = [](int) {};
  for (int signal = SIGRTMIN; signal < SIGRTMAX; ++signal) sigaction(signal, &own, nullptr);
  const Coordinator coord = Coordinator::Create();
  EXPECT_THROW(const Interruptible guard(coord), std::bad_alloc);
  allstop_interruptible* guard = nullptr;
  EXPECT_EQ(allstop_interruptible_enter(coord.handle(), &guard), ALLSTOP_RESOURCE_EXHAUSTED);
  EXPECT_EQ(guard, nullptr);
  own.sa_handler = SIG_DFL;
  for (int signal = SIGRTMIN; signal < SIGRTMAX; ++signal) sigaction(signal, &own, nullptr);
  EXPECT_TRUE(Interruptible(coord));
}

// The other threads may hold any lock when the process is forked.
TEST(InterruptibleTest, TheCopyInAForkedProcessMayBeLeft) {
  const Coordinator coord = Coordinator::Create();
  coord.RequestStop();
  std::atomic<bool> end{false};
  std::thread locks([&] {
    while (!end) const Interruptible guard(coord);
  });
  for (int round = 0; round < 100; ++round) {
    pid_t child = -1;
    {
      const Interruptible guard(coord);
      child = fork();
    }
    if (child == 0) _exit(0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  end = true;
  locks.join();
}

TEST(InterruptibleTest, KeepsItsCoordinator) {
  test::BlockingCalls calls;
  const auto read = calls.All().front().block;
  const Coordinator parent = Coordinator::Create();
  GuardedCall guarded(Coordinator::Create(), [&] {
    const Interruptible guard(parent.Child());
    return read();
  });
  parent.RequestStop();
  guarded.ExpectInterrupted();
}

TEST(InterruptibleTest, WithAnEmptyCoordinatorDoesNothing) {
  const Interruptible guard((Coordinator()));
  EXPECT_FALSE(guard);
  allstop_interruptible_leave(Coordinator().handle(), nullptr);
}

TEST(InterruptibleTest, ManyThreadsEnterAndLeaveWhileTheyAreStopped) {
  test::BlockingCalls calls;
  const auto read = calls.All().front().block;
  const Coordinator root = Coordinator::Create();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 100; ++round) {
        const Coordinator coord = root.Child();
        std::thread stopper([&] { coord.RequestStop(); });
        {
          const Interruptible guard(coord);
          if ((round + i) % 3 != 0) {
            EXPECT_EQ(read(), -1);
            EXPECT_EQ(errno, EINTR);
          }
        }
        stopper.join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace allstop

#endif
