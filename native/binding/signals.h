// From the operating system's signals to stops, without JavaScript's help: the
// main thread may be blocked or busy.
#ifndef ALLSTOP_BINDING_SIGNALS_H_
#define ALLSTOP_BINDING_SIGNALS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/coordinator.h"

namespace allstop::binding {

// Each of these signals requests a stop, until UnlinkSignals. Whoever handled the
// signal before is still called for the first one. A second one, whatever its
// kind, gets the system's default action, unless the stop was cleared in between.
// The call site is kept for the record. Returns 0 where the platform has no such
// signals (Windows); then JavaScript must listen by itself.
std::uint64_t LinkSignals(std::shared_ptr<core::Coordinator> coordinator,
                          std::vector<std::pair<int, std::string>> signals, std::string stack);
void UnlinkSignals(std::uint64_t link);

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_SIGNALS_H_
