#include "parent_watch.h"

#include <thread>

#if defined(_WIN32)
#include <windows.h>
#else
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#endif

namespace allstop::binding {

#if defined(_WIN32)

void ExitWithParent(std::uint64_t parent_id) {
  const HANDLE parent = OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(parent_id));
  if (parent == nullptr) return;  // the channel says that it is gone
  std::thread([parent] {
    WaitForSingleObject(parent, INFINITE);
    TerminateProcess(GetCurrentProcess(), 1);
  }).detach();
}

#else

namespace {

// Asked, not told: Linux' PR_SET_PDEATHSIG is about the parent's thread, and a pipe would
// stay open in whatever else the parent has forked.
constexpr std::chrono::milliseconds kInterval{500};

bool IsOrphan(pid_t parent) {
  if (getppid() == parent) return false;
#if defined(__APPLE__)
  return kill(parent, 0) != 0;  // a debugger that attaches becomes the parent there
#else
  return true;
#endif
}

}  // namespace

void ExitWithParent(std::uint64_t parent_id) {
  const auto parent = static_cast<pid_t>(parent_id);
  // Handlers of signals are not to run on this thread, which inherits the mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([parent] {
      while (!IsOrphan(parent)) std::this_thread::sleep_for(kInterval);
      _exit(1);
    }).detach();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

#endif

}  // namespace allstop::binding
