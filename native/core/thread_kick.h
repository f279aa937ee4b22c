// Ends the system call in which another thread is blocked: by a signal without SA_RESTART, on
// Windows by CancelSynchronousIo.
//
// Invariants.
//
//  1. A signal is sent only to a thread that has a ThreadKick, and only while the handler of this
//     file is installed for that signal. This matters because the system call of any other thread
//     must not be interrupted, and because the default action of the signal ends the process.
//  2. The owner of a ThreadKick calls Kick and the destructor one at a time (interruption.h:
//     by Alarm::Ring, and after its end). This matters because a thread's id may be
//     given to another thread as soon as the thread has ended.
//  3. At most 16 signals are on their way to a thread: real-time signals queue, and a thread that
//     does not get round to them would fill the queue of the user. One would not do:
//     ThreadSanitizer may hold a signal back while the thread blocks.
//  4. When the destructor has returned, no signal is on its way: the next system call of the thread
//     is not interrupted. The destructor opens the signal by pthread_sigmask, and pending signals
//     that are open are delivered before a system call returns.
//  5. The handler reads a pthread key and writes one number of its thread. It allocates nothing and
//     changes no errno. The number lives from the first ThreadKick of the thread to the last.
#ifndef ALLSTOP_CORE_THREAD_KICK_H_
#define ALLSTOP_CORE_THREAD_KICK_H_

#ifndef _WIN32
#include <pthread.h>
#endif

namespace allstop::core {

struct KickedThread;

// The thread that makes a ThreadKick is the one to be kicked, and destroys the object. A thread may
// have several.
class ThreadKick {
 public:
  // Opens the signal in the thread's mask. The first one of the process chooses the signal and
  // installs its handler. Throws std::system_error if every signal that could be used has a handler
  // already, or if the system has no handle.
  ThreadKick();
  // Closes the signal in the thread's mask, if it was closed before the first ThreadKick of the
  // thread or has been closed since. Takes no lock.
  ~ThreadKick();
  ThreadKick(const ThreadKick&) = delete;
  ThreadKick& operator=(const ThreadKick&) = delete;

  // Ends the system call in which the thread is blocked, if it is blocked in one. Any thread; does
  // not block.
  void Kick() noexcept;
  // False: another handler has been installed for the signal, so Kick does nothing. The thread
  // itself; a system call.
  bool IsEffective() const noexcept;

 private:
#ifdef _WIN32
  void* thread_;  // a HANDLE
#else
#ifdef __linux__
  const long thread_;  // the kernel's id
#else
  const pthread_t thread_;
#endif
  KickedThread& own_;  // of the thread that made this object, shared by its ThreadKicks
#endif
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_THREAD_KICK_H_
