// The function table of include/allstop/allstop.h, over the core.
#ifndef ALLSTOP_ABI_TABLE_H_
#define ALLSTOP_ABI_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "../core/bounded_queue.h"
#include "../core/coordinator.h"
#include "../core/variables.h"
#include "../include/allstop/allstop.h"

namespace allstop::abi {

const allstop_table& Table();

// The opaque types of allstop.h are classes of the core.
inline allstop_state* ToState(core::Coordinator* coordinator) {
  return reinterpret_cast<allstop_state*>(coordinator);
}
inline core::Coordinator& FromState(allstop_state* state) {
  return *reinterpret_cast<core::Coordinator*>(state);
}

inline std::string ToString(allstop_string string) {
  return string.data == nullptr ? std::string() : std::string(string.data, string.size);
}

// Keeps exceptions from crossing the C interface. The core throws here only if memory or
// threads run out, so every exception is ALLSTOP_RESOURCE_EXHAUSTED.
template <typename Body>
allstop_status ExceptionsToStatus(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return ALLSTOP_RESOURCE_EXHAUSTED;
  }
}

// The smallest `size` of a struct that is accepted: up to its first field of use. A struct of an
// older header may be shorter than ours, one of a newer header longer.
constexpr std::uint32_t kSmallestStruct = 8;

template <typename Struct>
Struct Read(const Struct& given) {
  Struct read = {};
  std::memcpy(&read, &given, std::min<std::size_t>(given.size, sizeof(read)));
  return read;
}

inline allstop_queue_state* ToState(core::BoundedQueue* queue) {
  return reinterpret_cast<allstop_queue_state*>(queue);
}

// The table's functions of queues (queue.cc).
allstop_status QueueCreate(const allstop_queue_options* options, allstop_queue_state** queue);
void QueueRetain(allstop_queue_state* queue);
void QueueRelease(allstop_queue_state* queue);
allstop_status QueueEnqueue(allstop_queue_state* queue, allstop_item* items, std::size_t count,
                            double timeout_ms, std::size_t* enqueued);
allstop_status QueueDequeue(allstop_queue_state* queue, allstop_item* items, std::size_t max,
                            double timeout_ms, std::size_t* dequeued);
allstop_status QueueDequeueLeast(allstop_queue_state* queue, allstop_item* items, std::size_t max,
                                 std::size_t least, double timeout_ms, std::size_t* dequeued);
allstop_status QueueClose(allstop_queue_state* queue, std::uint32_t flags);
allstop_status QueueInfo(allstop_queue_state* queue, allstop_queue_info* info);
allstop_status ItemCopy(const void* data, std::size_t size, allstop_item* item);

inline allstop_variable_state* ToState(core::Variable* variable) {
  return reinterpret_cast<allstop_variable_state*>(variable);
}

// The table's functions of variables (variable.cc).
void VariableRetain(allstop_variable_state* variable);
void VariableRelease(allstop_variable_state* variable);
allstop_status VariableInfo(allstop_variable_state* variable, allstop_variable_info* info);
allstop_status VariableRead(allstop_variable_state* variable, std::uint32_t type, void* values,
                            std::size_t count);
allstop_status VariableAssign(allstop_variable_state* variable, std::uint32_t type,
                              const void* values, std::size_t count);
allstop_status VariableAssignAdd(allstop_variable_state* variable, std::uint32_t type,
                                 const void* deltas, std::size_t count);

}  // namespace allstop::abi

#endif  // ALLSTOP_ABI_TABLE_H_
