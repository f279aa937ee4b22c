/// @file allstop_interruptible.hpp
/// allstop::Interruptible: a stop ends the system call in which a thread is blocked.
#ifndef ALLSTOP_ALLSTOP_INTERRUPTIBLE_HPP_
#define ALLSTOP_ALLSTOP_INTERRUPTIBLE_HPP_

#include "allstop.hpp"

namespace allstop {
// allstop.hpp says why this type has another name in a file without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

/// A guard around a system call that may block. From the stop on, and until the guard's end, a
/// system call in which this thread is blocked fails with EINTR (on Windows:
/// ERROR_OPERATION_ABORTED).
///
/// @code
///   ssize_t size;
///   {
///     const allstop::Interruptible guard(coord);
///     do {
///       size = read(fd, buffer, sizeof(buffer));
///     } while (size < 0 && errno == EINTR && !coord.ShouldStop());
///   }
///   if (coord.ShouldStop()) return;  // errno is that of read()
/// @endcode
///
/// Keep it around little more than the call: every other system call in it may fail with EINTR,
/// too. allstop_interruptible_enter says which calls end, and how. Guards may be nested, of one
/// coordinator or of several. The guard keeps a reference to the coordinator's state.
///
/// Destroy it on the thread that made it, as a local variable is; its end keeps errno. No method
/// blocks.
///
/// With an empty Coordinator, or a package older than 1.5 of allstop.h, the guard does nothing; nor
/// does its copy in a process that was forked (allstop_interruptible_enter).
///
/// @throws std::bad_alloc, from the constructor, if no memory, no thread or no signal without a
///   handler is left. Without exceptions, the process ends.
class Interruptible {
 public:
  explicit Interruptible(const Coordinator& coord) : handle_(*coord.handle()) {
    if (allstop_interruptible_enter(&handle_, &guard_) == ALLSTOP_RESOURCE_EXHAUSTED) {
      internal::OutOfMemory();
    }
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() { allstop_interruptible_leave(&handle_, guard_); }

  /// False if the guard does nothing: also if another handler has been installed for its signal
  /// since (by a library, with sigaction). A system call (since 1.7 of allstop.h).
  explicit operator bool() const noexcept {
    return allstop_interruptible_is_effective(&handle_, guard_) != 0;
  }

 private:
  const allstop_coordinator handle_;  // its state is kept by guard_
  allstop_interruptible* guard_ = nullptr;
};

}  // inline namespace catching or not_catching
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_INTERRUPTIBLE_HPP_
