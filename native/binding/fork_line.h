// The line between a process and a child that Coordinator.fork has started: it carries the stop
// from the native threads of the one to the native threads of the other, so that neither end needs
// an event loop that turns. A worker process of a cluster has the half of it that comes from the
// parent: what the worker says goes as messages of the cluster.
//
//  1. Each end is an observer of its process's coordinator, with a thread that writes. OnStop only
//     wakes that thread, and the thread looks at the coordinator's state.
//  2. Each end writes at most one stop: the parent's end the first stop of the parent, the child's
//     end the child's own stop, which is provisional in the child until the parent has answered.
//  3. The parent's stop is the answer, whoever requested it. A child that has it stays stopped, so
//     its end of the line needs no further stop.
//  4. The first frame that the child reads says whether the parent is stopped. The child waits for
//     it when it attaches; the parent's native thread has begun to write it before the child
//     starts (Windows: before the child has opened the pipe).
//  5. The end of the parent's pipe in the child is the end of the parent: no other process has the
//     write end (fork_pipe.h). A line ends with the JavaScript thread that has opened it, too:
//     nobody else sees to the child. Only a registered child is seen to: that thread's end stops
//     the coordinator, maybe somewhat later, and the line is kept for this stop.
//  6. A worker process's own stop is a message, which the parent's end of the line answers as it
//     answers a forked child's: by the parent's stop.
//  7. The cancellation of a function of a worker process goes down the line, and as a message, too:
//     the function that computes sees the one, the event loop the other, in any order. The
//     one that is read last finds the function cancelled or ended.
//  8. Only the child attaches to its line. Other processes may have its settings (they are in an
//     environment variable): the child is the one that has the parent's pipe as its descriptor,
//     and whose parent is the line's or has ended; then its first read ends at once. On Windows it
//     is the one whose parent, dead or alive, is the line's (lib/coordinator/threads/fork.ts).
//  9. The child's end writes each error beside the child's stop once: when the error comes and the
//     child is stopped, at the latest when the child exits. A child that is not stopped writes
//     nothing before its exit: a slow reader would keep it from reading the parent's stop.
// 10. mutex_ guards what was sent (in the child: writing, too). A thread that holds it takes no
//     other mutex.
#ifndef ALLSTOP_BINDING_FORK_LINE_H_
#define ALLSTOP_BINDING_FORK_LINE_H_

#include <napi.h>

namespace allstop::binding {

// The addon's functions about lines; interface NativeBinding in lib/native/binding.ts documents
// them.
Napi::Value OpenForkLine(const Napi::CallbackInfo& info);
Napi::Value CloseForkDescriptor(const Napi::CallbackInfo& info);
Napi::Value IdentityOfDescriptor(const Napi::CallbackInfo& info);
Napi::Value KeepForkLine(const Napi::CallbackInfo& info);
Napi::Value ForkLineHasStopped(const Napi::CallbackInfo& info);
Napi::Value RefuseForkAnswer(const Napi::CallbackInfo& info);
Napi::Value CancelForkedCall(const Napi::CallbackInfo& info);
Napi::Value CloseForkLine(const Napi::CallbackInfo& info);
Napi::Value AttachToParent(const Napi::CallbackInfo& info);
Napi::Value ListenToParent(const Napi::CallbackInfo& info);
Napi::Value TakeCancelledCalls(const Napi::CallbackInfo& info);
Napi::Value SendToParent(const Napi::CallbackInfo& info);
Napi::Value SendExitCode(const Napi::CallbackInfo& info);
Napi::Value ReadForkFrame(const Napi::CallbackInfo& info);

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_FORK_LINE_H_
