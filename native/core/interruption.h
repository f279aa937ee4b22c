// A stop for a thread that is blocked in a system call.
#ifndef ALLSTOP_CORE_INTERRUPTION_H_
#define ALLSTOP_CORE_INTERRUPTION_H_

#include <list>
#include <memory>

#include "coordinator.h"
#include "deadline.h"
#include "thread_kick.h"

namespace allstop::core {

// From the stop on, interrupts the system calls of the thread that made it, again and again until
// End: the first time at once, then after 1, 2, 4 ... and at last every 100 ms, since a signal that
// comes before the system call has begun is lost. A clearStop() does not end that. The first one
// starts a thread that serves the process and never ends.
class Interruption {
 public:
  // The calling thread is the one to be interrupted. Throws std::bad_alloc or std::system_error if
  // there is no memory, no thread or no signal.
  static Interruption* Begin(std::shared_ptr<Coordinator> coordinator);
  // Frees `interruption`, which may be null. The thread that made it; keeps errno. In a process
  // that this thread has forked meanwhile, it takes no lock and frees nothing: other threads may
  // have held the locks when the process was forked.
  static void End(Interruption* interruption) noexcept;

  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  friend class Interrupter;

  explicit Interruption(std::shared_ptr<Coordinator> coordinator);

  // Destroyed in the reverse order: first nobody kicks any more, then the kick, then the reference.
  const std::shared_ptr<Coordinator> coordinator_;
  const long process_;  // of the thread
  ThreadKick kick_;
  std::shared_ptr<StopCallback> callback_;  // null: the coordinator was stopped already
  // Guarded by Interrupter::mutex_:
  bool is_stopped_ = false;
  Clock::time_point due_ = {};               // of the next kick
  Clock::duration distance_ = {};            // from the next kick to the one after it
  std::list<Interruption*> unlisted_{this};  // its one node, while not in Interrupter::stopped_
  const std::list<Interruption*>::iterator place_ = unlisted_.begin();  // of that node, anywhere
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_INTERRUPTION_H_
