// What the library does at a point in time, on the one helper thread of the process: ends the
// process (exit_timer.cc), hands over stops that are due (stop_timer.cc), interrupts system calls
// (interruption.cc).
#ifndef ALLSTOP_CORE_ALARM_H_
#define ALLSTOP_CORE_ALARM_H_

#include <map>

#include "deadline.h"

namespace allstop::core {

class HelperThread;

// Something that the helper thread calls at a point in time. Any thread may call any method, with
// no lock held that Ring takes.
//
// In a process that was forked, an alarm of the parent does nothing, and takes no lock: it is the
// parent's. An alarm that is made there has a helper thread of that process.
class Alarm {
 public:
  // The first one of the process starts the helper thread, which sleeps until the nearest alarm and
  // never ends. Throws std::bad_alloc or std::system_error: no memory, or no thread.
  Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Has Ring called when `at` has come; if an earlier time is set, at that one. A call while Ring
  // runs has Ring called again. Allocates nothing. Nothing happens after End.
  void RingAt(Clock::time_point at) noexcept;
  // Ring is not called any more, and does not run: waits for its end. The destructor of the derived
  // class calls it first of all. May be called again.
  void End() noexcept;

 protected:
  ~Alarm();

  // Called with no lock held. Everybody else's alarms wait meanwhile, so it waits for nobody, and
  // calls no code that is not the library's. The time that was set is used up; it may set another.
  virtual void Ring() noexcept = 0;

 private:
  friend class HelperThread;
  using Queue = std::multimap<Clock::time_point, Alarm*>;

  HelperThread& helper_;
  // Guarded by the helper's mutex.
  Queue::node_type node_;  // empty while the alarm is in the queue
  Queue::iterator place_;  // in the queue, while node_ is empty
  bool is_ended_ = false;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_ALARM_H_
