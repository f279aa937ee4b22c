// The end of a process that has outlived the stop of a coordinator, and what is said about it; and
// the last words about errors that no JavaScript is left to tell.
#ifndef ALLSTOP_CORE_EXIT_REPORT_H_
#define ALLSTOP_CORE_EXIT_REPORT_H_

#include <optional>

#include "coordinator.h"

namespace allstop::core {

// Writes to standard error who requested the stop and which threads are left, of this coordinator
// and of all others that are stopped; then ends the process: with `exit_code`, else with 128 + N if
// signal N made the stop, else with 1. `ms` is the length of the countdown. Runs no exit handler.
// Any thread; does not wait for other threads, nor for a reader of standard error.
[[noreturn]] void EndProcess(const Coordinator& coordinator, double ms,
                             std::optional<int> exit_code);

// Takes the errors that the program was not given, and writes them to standard error. Any thread.
void TellUnseen() noexcept;

// Ends the process at once: runs no exit handler, and waits for no thread. Any thread.
[[noreturn]] void EndProcess(int exit_code);

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_EXIT_REPORT_H_
