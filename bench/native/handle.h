// A handle as another addon would get it, without Node in between.
#ifndef ALLSTOP_BENCH_NATIVE_HANDLE_H_
#define ALLSTOP_BENCH_NATIVE_HANDLE_H_

#include <memory>
#include <utility>

#include "abi/table.h"
#include "core/coordinator.h"

namespace allstop::bench {

inline std::shared_ptr<core::Coordinator> MakeCoordinator() {
  return core::Coordinator::Create({"bench", {"OutOfRangeError"}});
}

// Borrowed: valid as long as `coordinator`.
inline allstop_coordinator HandleOf(const std::shared_ptr<core::Coordinator>& coordinator) {
  allstop_state* const state = abi::ToState(coordinator.get());
  return {&abi::Table(), state, abi::Table().stop_word(state)};
}

}  // namespace allstop::bench

#endif  // ALLSTOP_BENCH_NATIVE_HANDLE_H_
