#include "variables.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <shared_mutex>
#include <utility>

#include "registry.h"

namespace allstop::core {
namespace {

// The bytes of an empty array may be null, which memcpy does not take.
void Copy(void* to, const void* from, std::size_t size) {
  if (size > 0) std::memcpy(to, from, size);
}

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

class Variable::Change {
 public:
  explicit Change(const Variable& variable) : published_(variable.published_.get()) {
    if (published_ != nullptr) published_->BeginWrite();
  }
  ~Change() {
    if (published_ != nullptr) published_->EndWrite();
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  PublishedBytes* const published_;
};

Variable::Variable(std::string name, VariableType type, const void* bytes, std::size_t size,
                   bool is_published)
    : name_(std::move(name)),
      type_(type),
      size_(size),
      published_(is_published ? PublishedBytes::Create(size) : nullptr),
      own_bytes_(published_ ? nullptr : new unsigned char[size]),
      bytes_(published_ ? published_->bytes() : own_bytes_.get()) {
  Copy(bytes_, bytes, size);
}

std::size_t Variable::length() const {
  const bool is_short = type_ == VariableType::kFloat32 || type_ == VariableType::kInt32;
  return size_ / (is_short ? 4 : 8);
}

void Variable::Read(void* bytes) const {
  constexpr std::size_t kShort = 1024;
  if (size_ <= kShort) {
    const std::lock_guard<FairSharedMutex> lock(mutex_);
    Copy(bytes, bytes_, size_);
    return;
  }
  const std::shared_lock<FairSharedMutex> lock(mutex_);
  Copy(bytes, bytes_, size_);
}

void Variable::Assign(const void* bytes) {
  const std::lock_guard<FairSharedMutex> lock(mutex_);
  const Change change(*this);
  Copy(bytes_, bytes, size_);
}

bool Variable::AssignAdd(const void* bytes, std::uint64_t call, std::uint64_t ordinal) {
  const std::lock_guard<FairSharedMutex> lock(mutex_);
  if (call != 0) {
    if (last_applied_ == nullptr || last_applied_->first != call) {
      last_applied_ = &*applied_.try_emplace(call, 0).first;  // throws before a change
      applied_count_.store(applied_.size(), std::memory_order_relaxed);
    }
    if (ordinal <= last_applied_->second) return false;
    last_applied_->second = ordinal;
  }
  const Change change(*this);
  switch (type_) {
    case VariableType::kNumber:
    case VariableType::kFloat64: Add<double, double>(bytes_, bytes, size_); break;
    case VariableType::kFloat32: Add<float, float>(bytes_, bytes, size_); break;
    case VariableType::kInt32:
      // Unsigned, since the overflow of a signed sum is undefined.
      Add<std::uint32_t, std::uint32_t>(bytes_, bytes, size_);
      break;
  }
  return true;
}

void Variable::Forget(std::uint64_t call) {
  if (applied_count_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard<FairSharedMutex> lock(mutex_);
  if (last_applied_ != nullptr && last_applied_->first == call) last_applied_ = nullptr;
  applied_.erase(call);
  applied_count_.store(applied_.size(), std::memory_order_relaxed);
}

std::shared_ptr<Variables> Variables::Create() {
  std::shared_ptr<Variables> made(new Variables(Registry<Variables>::NextId()));
  Registry<Variables>::Get().Add(made->id(), made);
  return made;
}

Variables::~Variables() { Registry<Variables>::Get().Remove(id_); }

std::shared_ptr<Variable> Variables::Define(const std::string& name, VariableType type,
                                            const void* bytes, std::size_t size,
                                            bool is_published) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Variable>& variable = by_name_[name];
  if (!variable) {
    try {
      variable = std::make_shared<Variable>(name, type, bytes, size, is_published);
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
  std::vector<std::shared_lock<FairSharedMutex>> locks;
  locks.reserve(variables.size());
  for (const Variable* const variable : InOrder(variables)) {
    locks.emplace_back(variable->mutex_);
  }
  for (std::size_t index = 0; index < variables.size(); ++index) {
    Copy(to[index], variables[index]->bytes_, variables[index]->size_);
  }
}

void Variables::AssignAll(const std::vector<Variable*>& variables,
                          const std::vector<const void*>& from) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::unique_lock<FairSharedMutex>> locks;
  locks.reserve(variables.size());
  for (Variable* const variable : InOrder(variables)) {
    locks.emplace_back(variable->mutex_);
  }
  std::deque<Variable::Change> changes;  // all begin before one ends (5)
  for (const Variable* const variable : variables) changes.emplace_back(*variable);
  for (std::size_t index = 0; index < variables.size(); ++index) {
    Copy(variables[index]->bytes_, from[index], variables[index]->size_);
  }
}

void Variables::Forget(std::uint64_t call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, variable] : by_name_) variable->Forget(call);
}

void Variables::EndPublishing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, variable] : by_name_) {
    if (variable->published_) variable->published_->EndPublishing();
  }
}

}  // namespace allstop::core
