// Ends the process if it outlives the stop of a coordinator. A native thread does that, so it
// happens in time even if all JavaScript threads are blocked or busy.
#ifndef ALLSTOP_CORE_EXIT_TIMER_H_
#define ALLSTOP_CORE_EXIT_TIMER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "coordinator.h"

namespace allstop::core {

// From now on a stop of the coordinator starts a countdown of `ms` milliseconds; of a coordinator
// that is stopped already, it starts now. When it is over, a native thread writes to standard
// error which threads are left and who requested the stop, and ends the process: with
// `exit_code`, else with 128 + N if signal N made the stop, else with 1. No exit handler and no
// destructor runs. ClearStop calls a running countdown off; the next stop starts another one.
//
// Keeps the coordinator alive until CancelExitAfterStop. `description` is listed as a link
// (Coordinator::AddLink). Returns an id, or 0 if `ms` is never. Any thread. A
// process that is forked meanwhile is not ended.
std::uint64_t ExitAfterStop(const std::shared_ptr<Coordinator>& coordinator, double ms,
                            std::optional<int> exit_code, std::string description);

// Any thread. Nothing happens if `id` is 0, or was cancelled before.
void CancelExitAfterStop(std::uint64_t id);

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_EXIT_TIMER_H_
