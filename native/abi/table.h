// The function table of include/allstop/allstop.h, over the core.
#ifndef ALLSTOP_ABI_TABLE_H_
#define ALLSTOP_ABI_TABLE_H_

#include "../core/coordinator.h"
#include "../include/allstop/allstop.h"

namespace allstop::abi {

const allstop_table& Table();

// The opaque type is the core's coordinator.
inline allstop_state* ToState(core::Coordinator* coordinator) {
  return reinterpret_cast<allstop_state*>(coordinator);
}

}  // namespace allstop::abi

#endif  // ALLSTOP_ABI_TABLE_H_
