// Ends this process when its parent process has ended, and waits for children at its own end.
#ifndef ALLSTOP_BINDING_PARENT_WATCH_H_
#define ALLSTOP_BINDING_PARENT_WATCH_H_

#include <cstdint>

namespace allstop::binding {

// Starts a thread that ends this process (exit code 1, no cleanup) `grace_ms` after the process
// `parent_id` has ended, even if its JavaScript threads are busy: a thread in a busy loop does
// not learn that its channel to the parent is closed. The thread does not keep the process
// alive. Called once.
void ExitWithParent(std::uint64_t parent_id, std::uint64_t grace_ms);

// Ends this process (exit code 1, no cleanup) after `grace_ms`.
[[noreturn]] void EndProcessAfter(std::uint64_t grace_ms);

// Waits until the child process has ended, `patience_ms` at most. For the exit of this process,
// after which nothing hears of a child: the child stays unreaped. False: it has not ended.
bool AwaitChild(std::uint64_t child_id, std::uint64_t patience_ms);

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_PARENT_WATCH_H_
