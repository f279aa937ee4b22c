// Threads of the library's own.
#ifndef ALLSTOP_CORE_BACKGROUND_THREAD_H_
#define ALLSTOP_CORE_BACKGROUND_THREAD_H_

#include <functional>

namespace allstop::core {

// Starts a thread that nobody joins. All signals that a process can be sent are blocked in it: a
// handler of the program must not run on a thread of which the program does not know, and a thread
// that inherited an open mask would take the signals for which another thread waits (sigwait).
// The thread may run after a program has unloaded this module. So the module has to stay in memory:
// the addon and allstop_library_table call allstop_pin_module.
// Throws std::bad_alloc or std::system_error: no memory, or no thread.
void StartBackgroundThread(std::function<void()> body);

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_BACKGROUND_THREAD_H_
