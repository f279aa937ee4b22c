#include "variables.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "registry.h"

namespace allstop::core {
namespace {

// `from` may be anywhere in the memory of a JavaScript program, so it is read by memcpy.
template <typename Element, typename Sum>
void Add(unsigned char* to, const void* from, std::size_t size) {
  auto* const sums = reinterpret_cast<Element*>(to);
  const auto* const deltas = static_cast<const unsigned char*>(from);
  const std::size_t count = size / sizeof(Element);
  for (std::size_t index = 0; index < count; ++index) {
    Element delta;
    std::memcpy(&delta, deltas + index * sizeof(Element), sizeof(Element));
    sums[index] = static_cast<Element>(static_cast<Sum>(sums[index]) + static_cast<Sum>(delta));
  }
}

// The order in which several are locked.
template <typename T>
std::vector<T*> InOrder(std::vector<T*> variables) {
  std::sort(variables.begin(), variables.end(), std::less<T*>());
  return variables;
}

}  // namespace

Variable::Variable(VariableType type, const void* bytes, std::size_t size)
    : type_(type), size_(size), bytes_(new unsigned char[size]) {
  std::memcpy(bytes_.get(), bytes, size);
}

std::shared_lock<std::shared_mutex> Variable::LockToRead() const {
  const std::lock_guard<std::mutex> turn(turn_);
  return std::shared_lock<std::shared_mutex>(mutex_);
}

void Variable::Read(void* bytes) const {
  const auto lock = LockToRead();
  std::memcpy(bytes, bytes_.get(), size_);
}

void Variable::Assign(const void* bytes) {
  const std::lock_guard<std::mutex> turn(turn_);
  const std::lock_guard<std::shared_mutex> lock(mutex_);
  std::memcpy(bytes_.get(), bytes, size_);
}

bool Variable::AssignAdd(const void* bytes, std::uint64_t closure, std::uint64_t ordinal) {
  const std::lock_guard<std::mutex> turn(turn_);
  const std::lock_guard<std::shared_mutex> lock(mutex_);
  if (closure != 0) {
    std::uint64_t& applied = applied_[closure];  // throws before anything has changed
    if (ordinal <= applied) return false;
    applied = ordinal;
  }
  switch (type_) {
    case VariableType::kNumber:
    case VariableType::kFloat64: Add<double, double>(bytes_.get(), bytes, size_); break;
    case VariableType::kFloat32: Add<float, float>(bytes_.get(), bytes, size_); break;
    case VariableType::kInt32:
      // Unsigned, since the overflow of a signed sum is undefined.
      Add<std::uint32_t, std::uint32_t>(bytes_.get(), bytes, size_);
      break;
  }
  return true;
}

void Variable::Forget(std::uint64_t closure) {
  const std::lock_guard<std::mutex> turn(turn_);
  const std::lock_guard<std::shared_mutex> lock(mutex_);
  applied_.erase(closure);
}

std::shared_ptr<Variables> Variables::Create() {
  auto& registry = Registry<Variables>::Get();
  std::shared_ptr<Variables> made(new Variables(registry.NextId()));
  registry.Add(made->id(), made);
  return made;
}

Variables::~Variables() { Registry<Variables>::Get().Remove(id_); }

std::shared_ptr<Variable> Variables::Define(const std::string& name, VariableType type,
                                            const void* bytes, std::size_t size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Variable>& variable = by_name_[name];
  if (!variable) {
    try {
      variable = std::make_shared<Variable>(type, bytes, size);
    } catch (...) {
      by_name_.erase(name);
      throw;
    }
  }
  return variable->type() == type && variable->size() == size ? variable : nullptr;
}

std::shared_ptr<Variable> Variables::Find(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

void Variables::ReadAll(const std::vector<const Variable*>& variables,
                        const std::vector<void*>& to) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_lock<std::shared_mutex>> locks;
  locks.reserve(variables.size());
  for (const Variable* const variable : InOrder(variables)) {
    locks.push_back(variable->LockToRead());
  }
  for (std::size_t index = 0; index < variables.size(); ++index) {
    std::memcpy(to[index], variables[index]->bytes_.get(), variables[index]->size_);
  }
}

void Variables::AssignAll(const std::vector<Variable*>& variables,
                          const std::vector<const void*>& from) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::unique_lock<std::mutex>> turns;
  std::vector<std::unique_lock<std::shared_mutex>> locks;
  turns.reserve(variables.size());
  locks.reserve(variables.size());
  for (Variable* const variable : InOrder(variables)) {
    turns.emplace_back(variable->turn_);
    locks.emplace_back(variable->mutex_);
  }
  for (std::size_t index = 0; index < variables.size(); ++index) {
    std::memcpy(variables[index]->bytes_.get(), from[index], variables[index]->size_);
  }
}

void Variables::Forget(std::uint64_t closure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, variable] : by_name_) variable->Forget(closure);
}

}  // namespace allstop::core
