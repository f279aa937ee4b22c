#include "background_thread.h"

#include <thread>
#include <utility>

#ifndef _WIN32
#include <signal.h>
#endif

namespace allstop::core {
namespace {

#ifdef _WIN32

struct SignalsBlocked {};

#else

// In the calling thread, and in the threads that it makes meanwhile. A fault of the code itself is
// left to whoever reports crashes.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

#endif

}  // namespace

void StartBackgroundThread(std::function<void()> body) {
  [[maybe_unused]] const SignalsBlocked blocked;
  std::thread(std::move(body)).detach();
}

}  // namespace allstop::core
