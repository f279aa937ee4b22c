// The variable functions of the table in include/allstop/allstop_variable.h, over the core.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "table.h"

static_assert(offsetof(allstop_variable_info, length) == 8);
static_assert(sizeof(allstop_variable_info) == 16 + sizeof(allstop_string));

namespace allstop::abi {
namespace {

using core::Variable;
using core::VariableType;

static_assert(ALLSTOP_VARIABLE_NUMBER == static_cast<std::uint32_t>(VariableType::kNumber));
static_assert(ALLSTOP_VARIABLE_FLOAT64 == static_cast<std::uint32_t>(VariableType::kFloat64));
static_assert(ALLSTOP_VARIABLE_FLOAT32 == static_cast<std::uint32_t>(VariableType::kFloat32));
static_assert(ALLSTOP_VARIABLE_INT32 == static_cast<std::uint32_t>(VariableType::kInt32));

Variable& FromState(allstop_variable_state* variable) {
  return *reinterpret_cast<Variable*>(variable);
}

// Whether `count` elements of `type` are a value of the variable, which this process may use.
// `values` may be null if `count` is 0.
allstop_status Check(const Variable& variable, std::uint32_t type, const void* values,
                     std::size_t count) {
  const auto own = static_cast<std::uint32_t>(variable.type());
  const bool is_number = own == ALLSTOP_VARIABLE_NUMBER && type == ALLSTOP_VARIABLE_FLOAT64;
  const bool fits =
      (type == own || is_number) && count == variable.length() && (values != nullptr || count == 0);
  if (!fits) return ALLSTOP_INVALID_ARGUMENT;
  return variable.IsOfThisProcess() ? ALLSTOP_OK : ALLSTOP_FAILED_PRECONDITION;
}

}  // namespace

void VariableRetain(allstop_variable_state* variable) { FromState(variable).Retain(); }

void VariableRelease(allstop_variable_state* variable) { FromState(variable).Release(); }

allstop_status VariableInfo(allstop_variable_state* state, allstop_variable_info* info) {
  if (info->size < kSmallestStruct) return ALLSTOP_INVALID_ARGUMENT;
  const Variable& variable = FromState(state);
  allstop_variable_info full = {};
  full.size = info->size;
  full.type = static_cast<std::uint32_t>(variable.type());
  full.length = variable.length();
  full.name = {variable.name().data(), variable.name().size()};
  std::memcpy(info, &full, std::min<std::size_t>(info->size, sizeof(full)));
  return ALLSTOP_OK;
}

allstop_status VariableRead(allstop_variable_state* state, std::uint32_t type, void* values,
                            std::size_t count) {
  const Variable& variable = FromState(state);
  const allstop_status checked = Check(variable, type, values, count);
  if (checked != ALLSTOP_OK) return checked;
  return ExceptionsToStatus([&] {
    if (count > 0) variable.Read(values);
    return ALLSTOP_OK;
  });
}

allstop_status VariableAssign(allstop_variable_state* state, std::uint32_t type, const void* values,
                              std::size_t count) {
  Variable& variable = FromState(state);
  const allstop_status checked = Check(variable, type, values, count);
  if (checked != ALLSTOP_OK) return checked;
  return ExceptionsToStatus([&] {
    if (count > 0) variable.Assign(values);
    return ALLSTOP_OK;
  });
}

allstop_status VariableAssignAdd(allstop_variable_state* state, std::uint32_t type,
                                 const void* deltas, std::size_t count) {
  Variable& variable = FromState(state);
  const allstop_status checked = Check(variable, type, deltas, count);
  if (checked != ALLSTOP_OK) return checked;
  return ExceptionsToStatus([&] {
    if (count > 0) variable.AssignAdd(deltas, 0, 0);
    return ALLSTOP_OK;
  });
}

}  // namespace allstop::abi
