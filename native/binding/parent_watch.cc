#include "parent_watch.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#if defined(_WIN32)
#include <windows.h>
#else
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#if defined(__linux__)
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <sys/event.h>
#endif
#endif

#include "../core/background_thread.h"

namespace allstop::binding {

#if defined(_WIN32)

void ExitWithParent(std::uint64_t parent_id, std::uint64_t grace_ms) {
  const HANDLE parent = OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(parent_id));
  if (parent == nullptr) return;  // the parent has ended: JavaScript sees its channel closed
  core::StartBackgroundThread([parent, grace_ms] {
    WaitForSingleObject(parent, INFINITE);
    EndProcessAfter(grace_ms);
  });
}

void EndProcessAfter(std::uint64_t grace_ms) {
  Sleep(static_cast<DWORD>(grace_ms));
  TerminateProcess(GetCurrentProcess(), 1);
  std::abort();  // not reached
}

bool AwaitChild(std::uint64_t child_id, std::uint64_t patience_ms) {
  const HANDLE child = OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(child_id));
  if (child == nullptr) return true;
  const DWORD waited = WaitForSingleObject(child, static_cast<DWORD>(patience_ms));
  CloseHandle(child);
  return waited == WAIT_OBJECT_0;
}

#else

namespace {

// Two simpler ways do not work: Linux' PR_SET_PDEATHSIG fires when the parent's thread ends, not
// its process, and a pipe stays open in other processes that the parent has forked.
#if defined(__linux__)

// Returns a descriptor that becomes readable when the process has ended, or -1 if the kernel has
// no pidfd_open (before Linux 5.3).
int OpenEnd(pid_t process) {
  // The number of the system call is the same on all architectures.
  constexpr long kPidfdOpen = 434;  // NOLINT(google-runtime-int): the type of syscall()
  return static_cast<int>(syscall(kPidfdOpen, process, 0));
}

void WaitForEnd(int descriptor) {
  pollfd end{descriptor, POLLIN, 0};
  while (poll(&end, 1, -1) == -1 && errno == EINTR) {
  }
}

#elif defined(__APPLE__)

int OpenEnd(pid_t process) {
  const int queue = kqueue();
  struct kevent end;
  EV_SET(&end, process, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, nullptr);
  if (queue != -1 && kevent(queue, &end, 1, nullptr, 0, nullptr) == -1) {
    close(queue);
    return -1;
  }
  return queue;
}

void WaitForEnd(int descriptor) {
  struct kevent end;
  while (kevent(descriptor, nullptr, 0, &end, 1, nullptr) == -1 && errno == EINTR) {
  }
}

#else

int OpenEnd(pid_t) { return -1; }
void WaitForEnd(int) {}

#endif

bool IsOrphan(pid_t parent) {
  if (getppid() == parent) return false;
#if defined(__APPLE__)
  return kill(parent, 0) != 0;  // on macOS a debugger that attaches becomes the parent
#else
  return true;
#endif
}

void WaitForParent(pid_t parent) {
  const int end = OpenEnd(parent);
  // The parent may have ended before OpenEnd, and another process may have its id now.
  if (end != -1 && !IsOrphan(parent)) WaitForEnd(end);
  // Where the system cannot wait for a process, this thread polls.
  constexpr std::chrono::milliseconds kInterval{500};
  while (!IsOrphan(parent)) std::this_thread::sleep_for(kInterval);
}

}  // namespace

void ExitWithParent(std::uint64_t parent_id, std::uint64_t grace_ms) {
  const auto parent = static_cast<pid_t>(parent_id);
  core::StartBackgroundThread([parent, grace_ms] {
    WaitForParent(parent);
    EndProcessAfter(grace_ms);
  });
}

void EndProcessAfter(std::uint64_t grace_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(grace_ms));
  _exit(1);
}

bool AwaitChild(std::uint64_t child_id, std::uint64_t patience_ms) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kInterval{2};
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(patience_ms);
  for (;;) {
    siginfo_t end = {};
    const int result =
        waitid(P_PID, static_cast<id_t>(child_id), &end, WEXITED | WNOHANG | WNOWAIT);
    if (result == -1 && errno != EINTR) return true;  // it was reaped
    if (end.si_pid != 0) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kInterval);
  }
}

#endif

}  // namespace allstop::binding
