// Links to signals, without Node. What a program sees of them: test/lifecycle/signals.test.ts.
#ifndef _WIN32
#include "binding/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <type_traits>

#include "core/coordinator.h"
#include "gate.h"
#include "requests.h"

namespace allstop::binding {
namespace {

using core::Coordinator;
using test::Gate;
using test::MakeCoordinator;

std::atomic<int> heard{0};

void Hear(int) { ++heard; }

// Installs a handler of the program, as one that was there before a link, or comes after it.
template <typename Handler>
void Install(int signal, Handler handler, int flags = 0) {
  struct sigaction action = {};
  if constexpr (std::is_same_v<Handler, void (*)(int)>) {
    action.sa_handler = handler;
  } else {
    action.sa_sigaction = handler;
  }
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

std::uint64_t Link(const std::shared_ptr<Coordinator>& coordinator, int signal) {
  return LinkSignals(coordinator, {{signal, "a signal"}}, "");
}

// Waits until another signal is no longer taken for a part of the press before.
void OutlastThePress() { std::this_thread::sleep_for(std::chrono::milliseconds(550)); }

class SlowToClear final : public core::Observer {
 public:
  void OnClear() override {
    called.Open();
    goes_on.Wait();
  }

  Gate called;
  Gate goes_on;
};

TEST(SignalsTest, AClearThatComesLateRearmsNoOtherLink) {
  heard = 0;
  Install(SIGUSR1, Hear);
  const auto one = MakeCoordinator();
  const auto slow = std::make_shared<SlowToClear>();
  one->AddObserver(slow, nullptr);
  one->SetInterested(*slow, true);
  const std::uint64_t ended = Link(one, SIGUSR1);
  one->RequestStop(test::Plain());
  std::thread clears([&one] { one->ClearStop(); });  // first of the slow one, then of the link
  slow->called.Wait();
  UnlinkSignals(ended, true);

  const auto other = MakeCoordinator();
  Link(other, SIGUSR1);
  raise(SIGUSR1);
  EXPECT_EQ(heard, 1) << "a first signal is passed on";
  slow->goes_on.Open();
  clears.join();
  raise(SIGUSR1);
  EXPECT_EQ(heard, 1) << "a further one is not";
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow a forked process with threads
TEST(SignalsTest, TheThreadThatStopsTakesNoSignalOfTheProgram) {
  const auto coordinator = MakeCoordinator();
  std::promise<bool> is_blocked;
  coordinator->OnStop(
      [](void* promise) {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        static_cast<std::promise<bool>*>(promise)->set_value(sigismember(&mask, SIGUSR1) == 1);
      },
      &is_blocked);
  const std::uint64_t link = Link(coordinator, SIGTERM);
  raise(SIGTERM);
  EXPECT_TRUE(is_blocked.get_future().get());
  UnlinkSignals(link, true);
}

TEST(SignalsTest, AForkedChildHasItsSignalsForItself) {
  heard = 0;
  Install(SIGTERM, Hear);
  const auto coordinator = MakeCoordinator();
  Link(coordinator, SIGTERM);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);  // ends it if the signal does not
    if (write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_FALSE(coordinator->ShouldStop());
  raise(SIGTERM);
  EXPECT_TRUE(coordinator->WaitForStop(core::Deadline::After(30'000)));
  EXPECT_EQ(heard, 1);
}
#endif

// A handler above the link's calls it as `signal` makes people write: with the number alone. The
// other arguments are then what is left in the registers.
struct sigaction below;
void CallBelow(int signal) {
  below.sa_sigaction(signal, reinterpret_cast<siginfo_t*>(std::uintptr_t{24}), nullptr);
}

void PassBelow(int signal, siginfo_t* info, void* context) {
  below.sa_sigaction(signal, info, context);
}

void LinkBelow(int signal) {
  Link(MakeCoordinator(), signal);
  sigaction(signal, nullptr, &below);
}

TEST(SignalsDeathTest, AHandlerAboveMayPassOnTheNumberAlone) {
  const auto twice = [] {
    LinkBelow(SIGTERM);
    Install(SIGTERM, CallBelow);
    raise(SIGTERM);
    OutlastThePress();
    raise(SIGTERM);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGTERM), "");
}

TEST(SignalsTest, ASignalOfTheProcessItselfIsKnownBelowAHandlerThatPassesAllOn) {
  LinkBelow(SIGTERM);
  Install(SIGTERM, PassBelow, SA_SIGINFO);
  raise(SIGTERM);
  OutlastThePress();
  raise(SIGTERM);
  EXPECT_EQ(kill(getpid(), SIGTERM), 0);
}

TEST(SignalsDeathTest, WithoutALinkASignalHasItsDefaultActionWhenThePressIsOver) {
  const auto later = [] {
    const std::uint64_t link = Link(MakeCoordinator(), SIGTERM);
    raise(SIGTERM);
    UnlinkSignals(link, false);
    raise(SIGTERM);
    OutlastThePress();
    raise(SIGTERM);
  };
  EXPECT_EXIT(later(), testing::KilledBySignal(SIGTERM), "");
  const auto undone = [] {
    const std::uint64_t link = Link(MakeCoordinator(), SIGTERM);
    raise(SIGTERM);
    UnlinkSignals(link, true);
    raise(SIGTERM);
  };
  EXPECT_EXIT(undone(), testing::KilledBySignal(SIGTERM), "");
}

TEST(SignalsTest, WithoutALinkASignalIsIgnoredIfItWasBefore) {
  signal(SIGTERM, SIG_IGN);
  const std::uint64_t link = Link(MakeCoordinator(), SIGTERM);
  raise(SIGTERM);
  UnlinkSignals(link, false);
  OutlastThePress();
  raise(SIGTERM);
}

}  // namespace
}  // namespace allstop::binding
#endif
