// A process that ends when the one that started it has.
#ifndef ALLSTOP_BINDING_PARENT_WATCH_H_
#define ALLSTOP_BINDING_PARENT_WATCH_H_

#include <cstdint>

namespace allstop::binding {

// From now on this process ends at once, without running anything more, soon after its
// parent has ended, whatever its JavaScript threads do: a thread that computes for ever
// never hears that its channel is closed. Keeps nothing from ending. Called once.
void ExitWithParent(std::uint64_t parent_id);

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_PARENT_WATCH_H_
