// The requester of a stop or of a reported error: the thread, and the call.
#ifndef ALLSTOP_CORE_REQUESTER_H_
#define ALLSTOP_CORE_REQUESTER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "condition_variable.h"

namespace allstop::core {

enum class Language : std::uint8_t { kJavaScript, kNative };

// What made the request. The order is that of kVia in binding/convert.cc.
enum class Via : std::uint8_t {
  kCall,
  kException,
  kSignal,
  kAbort,
  kClose,
  kTimeout,
  kParent,
  kWorkerExit,
  kUncaught,
  kHook,
  kDefer,
};

struct Requester {
  Language language = Language::kNative;
  Via via = Via::kCall;
  std::string thread_name;
  std::uint64_t thread_id = 0;  // JavaScript's threadId, or the OS thread id
  std::int64_t pid = 0;
  std::string stack;       // of the call; empty if unknown
  std::string signal;      // "SIGINT"; empty unless via kSignal, or a child process was killed
  std::int64_t at_ms = 0;  // the time of the request, by WallClockMs()
};

// Describes the calling native thread, with the name that it has in the operating system.
Requester ThisNativeThread(Via via);

// A function that fills in fields of a requester. An exception that it throws is ignored.
using Describe = std::function<void(Requester&)>;

// The requester of a stop or of a reported error, which becomes known in two steps: finding it
// out (the name of a thread, the stack of a call) takes longer than the stop itself, so it comes
// after the waiting threads have been woken. The thread that made the request calls Begin with
// the fields that are quickly found, then Complete.
class Origin {
 public:
  void Begin(Requester known) noexcept;
  // Called once. `locate` may be empty, and may call JavaScript.
  void Complete(const Describe& locate) noexcept;

  // Any thread. Waits until Complete has been called, for at most a second: `locate` may run a
  // program's own code, which may wait for the calling thread in turn. Does not wait if
  // the caller is the thread that is to call Complete. Returns the fields that are known by then.
  Requester Get() const { return GetWithin(1000); }
  // As Get, but from Begin on waits for at most `patience_ms` milliseconds. Before Begin no
  // program's code runs, so that the language, the process and the thread are there soon.
  Requester GetWithin(double patience_ms) const;

 private:
  std::atomic<bool> is_complete_{false};  // written under mutex_, read without it
  bool is_begun_ = false;                 // guarded by mutex_
  mutable std::mutex mutex_;              // last in the lock order
  mutable ConditionVariable changed_;     // Begin or Complete was called
  std::thread::id completing_thread_;     // guarded by mutex_; the thread that called Begin
  Requester requester_;                   // guarded by mutex_ until is_complete_, then constant
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_REQUESTER_H_
