// Requests stops at deadlines. Native threads do that, so they come in time even if all JavaScript
// threads are busy, and if a stop callback keeps its thread.
#ifndef ALLSTOP_CORE_STOP_TIMER_H_
#define ALLSTOP_CORE_STOP_TIMER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "coordinator.h"

namespace allstop::core {

// Requests the stop when the deadline passes; the coordinator is kept alive until then. Returns
// an id for CancelScheduledStop, or 0 if the deadline is never. Any thread. With a description
// a scheduled stop is a link (Coordinator::AddLink) until it is requested or cancelled.
// In a process that was forked, the parent's are not requested.
std::uint64_t ScheduleStop(const std::shared_ptr<Coordinator>& coordinator, Deadline deadline,
                           StopRequest request, std::string description = {});

// False if the stop has been requested or is about to be, or `id` is 0. Any thread.
bool CancelScheduledStop(std::uint64_t id);

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_STOP_TIMER_H_
