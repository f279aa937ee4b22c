// A function that runs once when a stop is requested, with the guarantees of
// std::stop_callback.
#ifndef ALLSTOP_CORE_STOP_CALLBACK_H_
#define ALLSTOP_CORE_STOP_CALLBACK_H_

#include <cstdint>
#include <list>
#include <memory>
#include <thread>

#include "cancellation.h"

namespace allstop::core {

// Made and removed by Coordinator::OnStop and Coordinator::RemoveStopCallback.
//
// A callback runs at most once. When the stop that it ran for is cleared, a caller that wants
// to hear of the next stop registers another callback.
class StopCallback {
 public:
  using Function = void (*)(void* context);

  StopCallback(Function function, void* context) : function_(function), context_(context) {}

 private:
  friend class Coordinator;

  void Run() const {
    const CancellationDisabled disabled;  // the function may write to a pipe
    function_(context_);
  }

  enum class Phase : std::uint8_t { kWaiting, kRunning, kDone };

  const Function function_;
  void* const context_;
  // Guarded by Coordinator::mutex_.
  Phase phase_ = Phase::kWaiting;
  std::thread::id runner_;  // set from kRunning on
  bool is_listed_ = false;  // in Coordinator::callbacks_, at place_: no stop has taken it
  // Lets RemoveStopCallback take constant time.
  std::list<std::shared_ptr<StopCallback>>::iterator place_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_STOP_CALLBACK_H_
