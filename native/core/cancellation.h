// pthread_cancel, of a thread that is in the library.
//
// glibc ends a cancelled thread at its next cancellation point (a wait, a write) by an exception
// that must be rethrown. The C interface lets no exception out, so glibc would abort the process;
// elsewhere the thread would end with a lock of the library held. So the library disables
// cancellation where it waits and where it calls observers, callbacks and the `release` of an item:
// the thread returns from there as usual, and is cancelled at its next cancellation point after
// that.
#ifndef ALLSTOP_CORE_CANCELLATION_H_
#define ALLSTOP_CORE_CANCELLATION_H_

#ifndef _WIN32
#include <pthread.h>
#endif

namespace allstop::core {

// Disables cancellation of the calling thread while it lives. May be nested. Does not block.
class CancellationDisabled {
 public:
#ifndef _WIN32
  CancellationDisabled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancellationDisabled() { pthread_setcancelstate(before_, nullptr); }
#else
  // Windows has no pthread_cancel.
  CancellationDisabled() noexcept {}
  ~CancellationDisabled() {}
#endif
  CancellationDisabled(const CancellationDisabled&) = delete;
  CancellationDisabled& operator=(const CancellationDisabled&) = delete;

#ifndef _WIN32
 private:
  int before_ = 0;
#endif
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_CANCELLATION_H_
