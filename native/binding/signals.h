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

// Makes each of `signals` (numbers and names) request a stop, until UnlinkSignals. The first
// signal of a link also runs the handler that was installed before. A second signal, the same or
// another, gets the system's default action, unless the stop was cleared in between. With several
// links a signal is the second when every link of it has had its first. `stack` is the call site
// for the stop record. Any thread. Returns the link's id, or 0 where the platform has no such
// signals (Windows): then JavaScript listens for them.
std::uint64_t LinkSignals(std::shared_ptr<core::Coordinator> coordinator,
                          std::vector<std::pair<int, std::string>> signals, std::string stack);
void UnlinkSignals(std::uint64_t link);
// Installs the handlers of all linked signals again, where the runtime has taken them away.
void ReinstallSignals();

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_SIGNALS_H_
