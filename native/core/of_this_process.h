// State of which each process has its own: a process that was forked must not use its parent's,
// whose locks and lists may be anybody's at the moment of the fork, and whose threads it has not.
#ifndef ALLSTOP_CORE_OF_THIS_PROCESS_H_
#define ALLSTOP_CORE_OF_THIS_PROCESS_H_

#include <atomic>

#include "identity.h"

namespace allstop::core {

// The number of this process; on Windows, where no process is forked, 0.
inline long ThisProcess() noexcept {
#ifdef _WIN32
  return 0;
#else
  return static_cast<long>(ProcessId());
#endif
}

// The State of this process. Never destroyed, since threads outlive process.exit(); a forked
// process leaves its parent's untouched. Any thread; takes no lock.
template <typename State>
class OfThisProcess {
 public:
  // Made by the first call in the process. Throws what the constructor throws.
  static State& Get() {
    Owned* known = Current().load();
    while (known == nullptr || known->process != ThisProcess()) {
      auto* const made = new Owned{ThisProcess(), known, {}};
      if (Current().compare_exchange_strong(known, made)) return made->state;
      delete made;  // another thread was faster
    }
    return known->state;
  }

  // Null if Get has not been called in this process.
  static State* Find() noexcept {
    Owned* const known = Current().load();
    return known == nullptr || known->process != ThisProcess() ? nullptr : &known->state;
  }

 private:
  struct Owned {
    const long process;
    Owned* const inherited;  // reachable for the leak checker
    State state;
  };

  static std::atomic<Owned*>& Current() noexcept {
    static std::atomic<Owned*> current{nullptr};
    return current;
  }
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_OF_THIS_PROCESS_H_
