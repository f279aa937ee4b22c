// Stops at a deadline, whatever the JavaScript threads are doing.
#ifndef ALLSTOP_CORE_STOP_TIMER_H_
#define ALLSTOP_CORE_STOP_TIMER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "coordinator.h"

namespace allstop::core {

// Requests the stop when the deadline passes. The coordinator is kept alive until
// then. One thread serves the process; it is started by the first call, sleeps
// until the nearest deadline, and never ends. Any thread. With a description it is
// a link of the coordinator's as long as it stands (Coordinator::AddLink).
std::uint64_t ScheduleStop(const std::shared_ptr<Coordinator>& coordinator, Deadline deadline,
                           StopRequest request, std::string description = {});

// False if the stop has been requested, or is about to be. Any thread.
bool CancelScheduledStop(std::uint64_t id);

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_STOP_TIMER_H_
