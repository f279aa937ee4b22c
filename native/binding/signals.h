// Requests a stop when a signal of the operating system arrives. A native thread makes the
// request, as the main JavaScript thread may be blocked or busy.
#ifndef ALLSTOP_BINDING_SIGNALS_H_
#define ALLSTOP_BINDING_SIGNALS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/coordinator.h"

namespace allstop::binding {

// Makes each of `signals` (numbers and names) request a stop, until UnlinkSignals. `stack` is the
// call site for the stop record. Any thread. Returns the link's id, or 0 where the platform has no
// such signals (Windows): then JavaScript listens for them.
//
// - The first signal of a link also runs the handler that was installed before. It is the first
//   again when the stop was cleared in between. With several links a signal counts as a first one
//   until every link of it has had its first.
// - A further one, the same or another, gets the system's default action if it comes 500 ms after
//   the first or later, and this process has not sent it to itself. Else it does nothing, and no
//   other handler is called.
// - A process that an addon makes by a bare fork() has the handlers, too, but no link: there each
//   signal gets its default action.
std::uint64_t LinkSignals(std::shared_ptr<core::Coordinator> coordinator,
                          std::vector<std::pair<int, std::string>> signals, std::string stack);
// After it, what comes within 500 ms of a first signal still does nothing, as the program may be
// writing its last output: unless `ends_press`, or another link is there. To be called when
// JavaScript listens no more, since the runtime then takes the handler away.
void UnlinkSignals(std::uint64_t link, bool ends_press);
// Installs the handlers of all linked signals again, where the runtime has taken them away.
void ReinstallSignals();

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_SIGNALS_H_
