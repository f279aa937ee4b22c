#include "thread_kick.h"

#include <system_error>
#include <utility>

#ifdef _WIN32

#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

namespace allstop::core {

ThreadKick::ThreadKick() : thread_(nullptr) {
  // GetCurrentThread gives a name for "the calling thread", which would be the kicking one.
  if (!DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &thread_, 0,
                       FALSE, DUPLICATE_SAME_ACCESS)) {
    throw std::system_error(static_cast<int>(GetLastError()), std::system_category(),
                            "DuplicateHandle");
  }
}

ThreadKick::~ThreadKick() { CloseHandle(thread_); }

void ThreadKick::Kick() noexcept { CancelSynchronousIo(thread_); }

bool ThreadKick::IsEffective() const noexcept { return true; }

}  // namespace allstop::core

#else

#include <signal.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

#include <atomic>
#include <memory>
#include <mutex>

#include "of_this_process.h"

namespace allstop::core {

// Of a thread that has a ThreadKick. Found by a key of pthreads: with a thread_local object in this
// library LeakSanitizer dies when the process exits while native threads run.
struct KickedThread {
  std::atomic<int> unhandled{0};  // signals sent since the handler ran last: invariant 3
  // The thread itself only:
  long process = ThisProcess();
  int kicks = 0;            // ThreadKick objects
  int signal = 0;           // of the first of them
  bool was_closed = false;  // whether the signal was in the mask before the first of them
};

namespace {

std::atomic<pthread_key_t> own_key;  // made before a handler is installed, never deleted

// Of the calling thread; null if it has no ThreadKick. A plain read, also in a signal handler.
KickedThread* ThisThread() {
  return static_cast<KickedThread*>(pthread_getspecific(own_key.load()));
}

extern "C" void AllstopOnKick(int, siginfo_t* info, void*) {
#ifdef __linux__
  if (info->si_code != SI_TKILL || info->si_pid != getpid()) return;
  // Other code of this process may send the signal to a thread without a ThreadKick.
  if (KickedThread* const thread = ThisThread(); thread != nullptr) thread->unhandled = 0;
#else
  static_cast<void>(info);  // signals do not queue there
#endif
}

bool HandlesKicks(int signal) {
  struct sigaction current = {};
  return signal != 0 && sigaction(signal, nullptr, &current) == 0 &&
         (current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == AllstopOnKick;
}

// Installs the handler, unless the signal has one.
bool Install(int signal) {
  struct sigaction own = {};
  own.sa_sigaction = AllstopOnKick;
  own.sa_flags = SA_SIGINFO;  // without SA_RESTART
  sigfillset(&own.sa_mask);
  struct sigaction before = {};
  if (sigaction(signal, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) != 0 ||
      before.sa_handler != SIG_DFL || sigaction(signal, &own, &before) != 0) {
    return false;
  }
  if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL) return true;
  sigaction(signal, &before, nullptr);  // another thread was faster: the signal is not ours
  return false;
}

// The signal of this process.
struct Choice {
  std::mutex mutex;  // taken with no other lock held
  int signal = 0;    // guarded by mutex
};

// Chosen again if somebody has replaced the handler since.
int Signal() {
  static bool has_key = false;  // guarded by the mutex; a forked process inherits the key
  auto& [mutex, signal] = OfThisProcess<Choice>::Get();
  const std::lock_guard<std::mutex> lock(mutex);
  if (!has_key) {
    pthread_key_t key;
    if (const int error = pthread_key_create(&key, nullptr); error != 0) {
      throw std::system_error(error, std::generic_category(), "pthread_key_create");
    }
    own_key = key;
    has_key = true;
  }
  if (HandlesKicks(signal)) return signal;
#ifdef __linux__
  // From above, since programs count from SIGRTMIN, but for the highest, which debuggers take.
  for (int each = SIGRTMAX - 1; each >= SIGRTMIN; --each) {
    if (HandlesKicks(each) || Install(each)) return signal = each;
  }
#else
  // By default these are ignored.
  for (const int each : {SIGURG, SIGIO}) {
    if (HandlesKicks(each) || Install(each)) return signal = each;
  }
#endif
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                          "Each signal that could interrupt a thread has a handler");
}

// Of the calling thread, made if it has no ThreadKick. Throws std::system_error, std::bad_alloc.
KickedThread& Enter() {
  const int signal = Signal();
  if (KickedThread* const known = ThisThread(); known != nullptr) {
    // Signals that had not been handled at a fork come to the parent alone.
    if (std::exchange(known->process, ThisProcess()) != ThisProcess()) known->unhandled = 0;
    return *known;
  }
  auto thread = std::make_unique<KickedThread>();
  thread->signal = signal;
  if (const int error = pthread_setspecific(own_key.load(), thread.get()); error != 0) {
    throw std::system_error(error, std::generic_category(), "pthread_setspecific");
  }
  return *thread.release();
}

#ifdef __linux__
// Not pthread_kill: glibc's holds a lock of the thread meanwhile, which a process that the thread
// forks at that moment inherits.
long OwnId() { return syscall(SYS_gettid); }
bool Send(long thread, int signal) { return syscall(SYS_tgkill, getpid(), thread, signal) == 0; }
#else
pthread_t OwnId() { return pthread_self(); }
bool Send(pthread_t thread, int signal) { return pthread_kill(thread, signal) == 0; }
#endif

sigset_t Only(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

}  // namespace

ThreadKick::ThreadKick() : thread_(OwnId()), own_(Enter()) {
  if (own_.kicks == 0) {
    const sigset_t signal = Only(own_.signal);
    sigset_t before;
    pthread_sigmask(SIG_UNBLOCK, &signal, &before);
    own_.was_closed = sigismember(&before, own_.signal) == 1;
  }
  ++own_.kicks;
}

ThreadKick::~ThreadKick() {
  const sigset_t signal = Only(own_.signal);
  sigset_t before;
  pthread_sigmask(SIG_UNBLOCK, &signal, &before);  // invariant 4
  const bool is_last = --own_.kicks == 0;
  if (sigismember(&before, own_.signal) == 1 || (is_last && own_.was_closed)) {
    pthread_sigmask(SIG_BLOCK, &signal, nullptr);
  }
  if (!is_last) return;
  pthread_setspecific(own_key.load(), nullptr);
  delete &own_;
}

bool ThreadKick::IsEffective() const noexcept { return HandlesKicks(own_.signal); }

void ThreadKick::Kick() noexcept {
  if (!HandlesKicks(own_.signal)) return;
#ifdef __linux__
  constexpr int kMostUnhandled = 16;
  if (own_.unhandled >= kMostUnhandled) return;
  ++own_.unhandled;
#endif
  if (!Send(thread_, own_.signal)) --own_.unhandled;
}

}  // namespace allstop::core

#endif
