// A stop for a thread that is blocked in a system call.
#ifndef ALLSTOP_CORE_INTERRUPTION_H_
#define ALLSTOP_CORE_INTERRUPTION_H_

#include <chrono>
#include <memory>

#include "alarm.h"
#include "coordinator.h"
#include "of_this_process.h"
#include "thread_kick.h"

namespace allstop::core {

// From the stop on, interrupts the system calls of the thread that made it, again and again until
// End: the first time at once, then after 1, 2, 4 ... and at last every 100 ms, since a signal that
// comes before the system call has begun is lost. A clearStop() does not end that.
//
// Invariants.
//
//  1. The helper thread kicks in Ring, and the destructor waits for its end (Alarm::End) on the
//     thread itself. So the thread is alive whenever it is kicked, and its id is its own.
//  2. When Alarm::End is called, the stop callback has been removed before.
//  3. A stop needs neither memory nor a new thread: it only sets the alarm. So the copy in a
//     process that the thread has forked interrupts nothing: its alarm is the parent's, as
//     deadlines are, and a stop there could make no other. IsEffective says so.
class Interruption final : private Alarm {
 public:
  // The calling thread is the one to be interrupted. Throws std::bad_alloc or std::system_error if
  // there is no memory, no thread or no signal.
  static Interruption* Begin(std::shared_ptr<Coordinator> coordinator);
  // Frees `interruption`, which may be null. The thread that made it; keeps errno. In a process
  // that this thread has forked meanwhile, it takes no lock and frees nothing: other threads may
  // have held the locks when the process was forked.
  static void End(Interruption* interruption) noexcept;
  // A stop interrupts: nobody has taken the signal since, and this is the process of the thread.
  bool IsEffective() const noexcept { return process_ == ThisProcess() && kick_.IsEffective(); }

  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  explicit Interruption(std::shared_ptr<Coordinator> coordinator);

  void Ring() noexcept override;

  // Destroyed in the reverse order: the kick, then the reference.
  const std::shared_ptr<Coordinator> coordinator_;
  const long process_;  // of the thread
  ThreadKick kick_;
  Clock::duration distance_ = std::chrono::milliseconds(1);  // to the next kick; of Ring
  std::shared_ptr<StopCallback> callback_;  // null: the coordinator was stopped already
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_INTERRUPTION_H_
