// Who asked for a stop, or reported an error.
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

// How a request came about. The order is that of kVia in binding/convert.cc.
enum class Via : std::uint8_t {
  kCall,
  kException,
  kSignal,
  kAbort,
  kClose,
  kTimeout,
  kParent,
  kWorkerExit,
};

struct Requester {
  Language language = Language::kNative;
  Via via = Via::kCall;
  std::string thread_name;
  std::uint64_t thread_id = 0;  // JavaScript's threadId, or the OS thread id
  std::int64_t pid = 0;
  std::string stack;       // the call site; empty if unknown
  std::string signal;      // "SIGINT"; empty unless via kSignal or a killed child
  std::int64_t at_ms = 0;  // when; wall clock, for people
};

// A requester for the calling native thread, named by the OS.
Requester ThisNativeThread(Via via);

// Adds to a requester what was found out. May throw, in vain.
using Describe = std::function<void(Requester&)>;

// The requester of what is recorded, as told once the waiters have been woken: to
// find it out (the name of a thread, the stack of a call) takes longer than all the
// rest. Two steps, on the thread that has requested: Begin with what is quickly told,
// then Complete.
class Origin {
 public:
  void Begin(Requester known) noexcept;
  // Once. `locate` may be empty, and may call JavaScript.
  void Complete(const Describe& locate) noexcept;

  // Any thread. Waits until it is complete, unless that is for the calling thread to
  // do: then, as after a second of waiting, it is what was told so far. (`locate` may
  // run a program's own code, and that may wait for the caller in turn.)
  Requester Get() const;

 private:
  std::atomic<bool> is_complete_{false};
  mutable std::mutex mutex_;  // last in the lock order; guards what follows
  mutable ConditionVariable completed_;
  std::thread::id teller_;  // the thread that completes it
  Requester requester_;     // constant once is_complete_
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_REQUESTER_H_
