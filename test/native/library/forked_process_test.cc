// What works in a process that was forked when the library had threads already.
#include <gtest/gtest.h>

// ThreadSanitizer ends a process that was forked from one with several threads when it makes a
// thread.
#if !defined(_WIN32) && !defined(__SANITIZE_THREAD__)

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_bridges.hpp>
#include <allstop/allstop_interruptible.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace allstop {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// The child ends with 0 if `body` returns true there.
template <typename Body>
bool HoldsInAFork(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status == 0;
}

bool TakesAnError(const Coordinator& coord) {
  Thread(coord, "fails", [] { throw std::runtime_error("of a thread"); }).Join();
  return coord.Join() == ALLSTOP_STOPPED_BY_ERROR;
}

TEST(ForkedProcessTest, MeetsItsOwnDeadlinesAndNotThoseOfItsParent) {
  const Coordinator parents = Coordinator::Create();
  const Coordinator other = Coordinator::Create();
  Deadline of_parent = parents.StopAfter(milliseconds(30));
  EXPECT_TRUE(HoldsInAFork([&] {
    const Coordinator own = Coordinator::Create();
    const Deadline deadline = own.StopAfter(milliseconds(60));
    of_parent = other.StopAfter(hours(1));  // calls off what is the parent's
    return own.WaitForStop() && !parents.ShouldStop();
  }));
  EXPECT_TRUE(parents.WaitForStop());
}

TEST(ForkedProcessTest, ItsStopWakesNoPollOfItsParent) {
  const Coordinator coord = Coordinator::Create();
  const StopFd of_parent(coord);
  EXPECT_TRUE(HoldsInAFork([&] {
    coord.RequestStop();
    const StopFd own(coord);
    pollfd polled = {own.get(), POLLIN, 0};
    return poll(&polled, 1, 0) == 1;
  }));
  pollfd polled = {of_parent.get(), POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 0), 0);
  EXPECT_FALSE(coord.ShouldStop());
}

TEST(ForkedProcessTest, InterruptsItsSystemCalls) {
  const Coordinator coord = Coordinator::Create();
  { const Interruptible starts_the_helper_thread(coord); }
  EXPECT_TRUE(HoldsInAFork([&] {
    const Interruptible guard(coord);
    const Deadline deadline = coord.StopAfter(milliseconds(10));
    return guard && pause() == -1 && errno == EINTR && coord.ShouldStop();
  }));
  EXPECT_FALSE(coord.ShouldStop());
}

TEST(ForkedProcessTest, TheGuardOfItsParentIsFalseAndANewOneInterrupts) {
  const Coordinator coord = Coordinator::Create();
  std::thread forks([&] {  // not the main thread: that of the fork has another id
    const Interruptible of_parent(coord);
    EXPECT_TRUE(HoldsInAFork([&] {
      const timespec moment = {0, 5'000'000};
      coord.RequestStop();
      if (of_parent || nanosleep(&moment, nullptr) != 0) return false;
      const Interruptible own(coord);
      return own && pause() == -1 && errno == EINTR;
    }));
    EXPECT_TRUE(of_parent);
  });
  forks.join();
}

TEST(ForkedProcessTest, IsInterruptedAlthoughItsParentHasHandledNoInterruption) {
  const Coordinator coord = Coordinator::Create();
  const Interruptible of_parent(coord);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  coord.RequestStop();
  for (int i = 0; i < 16; ++i) sigwaitinfo(&all, nullptr);  // after 16 none is sent any more
  EXPECT_TRUE(HoldsInAFork([&] {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    const Coordinator own = Coordinator::Create();
    const Interruptible guard(own);
    const Deadline deadline = own.StopAfter(milliseconds(10));
    return pause() == -1 && own.ShouldStop();
  }));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(ForkedProcessTest, UsesTheLibraryWhateverItsParentsThreadsWereDoing) {
  std::atomic<bool> is_over{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      while (!is_over) {
        const Coordinator parents = Coordinator::Create();
        const Interruptible guard(parents.Child());
        EXPECT_TRUE(TakesAnError(parents));
      }
    });
  }
  bool holds = true;
  for (int i = 0; i < 100 && holds; ++i) {
    holds = HoldsInAFork([] {
      const Coordinator own = Coordinator::Create();
      const Interruptible guard(own.Child());
      return guard && TakesAnError(own);
    });
  }
  EXPECT_TRUE(holds);
  is_over = true;
  for (std::thread& each : busy) each.join();
}

}  // namespace
}  // namespace allstop

#endif
