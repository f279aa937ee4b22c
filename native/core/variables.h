// The variables of one cluster: named numbers and arrays of numbers that the threads of a process
// share and update (TensorFlow keeps them on parameter servers).
//
// Invariants, cited by number:
//
//  1. The bytes of a variable change only while its mutex is held exclusively, and are read while
//     it is held. So every operation is atomic: a reader gets the value between two operations.
//     (A short value is read by one thread at a time, which costs less than to count the readers.)
//  2. applied_[call] is how many AssignAdds of that call have been applied to the variable.
//     A call numbers its AssignAdds on a variable from 1, in each of its attempts again. The
//     n-th is applied if n is greater than that count, and has no effect else: so a call that
//     is run again, or a request that is sent again, adds once.
//  3. Variables of a set are never removed, and never change their type or length. So a Variable
//     that was found stays the one of that name.
//  4. Lock order: the set's mutex, then a variable's mutex_. Several variables are locked together
//     in the order of their addresses, under the set's mutex; all other operations lock one. A
//     writer that waits for the readers of its variable waits for single reads, which wait for
//     nothing, and for reads of several, which wait for later variables alone. So no two threads
//     wait for each other.
//  5. A variable that was defined as published has its bytes in PublishedBytes, if the platform has
//     them; each change by 1 is between its BeginWrite and EndWrite. So other processes read them
//     without its mutex. Of changes of several together all begin before one ends: a process that
//     has read one of them changed reads none of them unchanged.
#ifndef ALLSTOP_CORE_VARIABLES_H_
#define ALLSTOP_CORE_VARIABLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fair_shared_mutex.h"
#include "foreign_references.h"
#include "of_this_process.h"
#include "published_bytes.h"

namespace allstop::core {

// The order is that of VARIABLE_TYPES in lib/native/binding.ts.
enum class VariableType : std::uint8_t { kNumber, kFloat64, kFloat32, kInt32 };

// Any thread may call any method. `bytes` arguments point to size() bytes, without alignment.
class Variable : public ForeignReferences<Variable> {
 public:
  friend class Variables;

  // `bytes`: the first value.
  Variable(std::string name, VariableType type, const void* bytes, std::size_t size,
           bool is_published = false);

  const std::string& name() const { return name_; }
  VariableType type() const { return type_; }
  std::size_t size() const { return size_; }
  // How many elements.
  std::size_t length() const;
  // For PublishedReader::Open in other processes; empty: its bytes are this process's alone.
  std::string path() const { return published_ ? published_->Path() : std::string(); }

  // Not in a process that was forked from the variable's, which writes to the published bytes alone
  // (published_bytes.h, 1), and one of whose threads may have had mutex_ at the fork.
  bool IsOfThisProcess() const noexcept { return process_ == ThisProcess(); }

  void Read(void* bytes) const;
  void Assign(const void* bytes);
  // Adds each element; integers wrap around. `ordinal` is the number of this AssignAdd among those
  // of the call on this variable, from 1. A `call` of 0 stands for no call: then the delta
  // always counts.
  // Returns false if it had been applied before.
  bool AssignAdd(const void* bytes, std::uint64_t call, std::uint64_t ordinal);
  // The call has ended for good: no AssignAdd of it follows.
  void Forget(std::uint64_t call);

 private:
  // Around each change of bytes_ (5).
  class Change;

  const std::string name_;
  const VariableType type_;
  const std::size_t size_;
  const long process_ = ThisProcess();
  mutable FairSharedMutex mutex_;
  // How many calls applied_ knows. Changed under mutex_; Forget looks first without it, and sees
  // what the call has added: that it has ended was told after its last AssignAdd.
  std::atomic<std::size_t> applied_count_{0};
  const std::unique_ptr<PublishedBytes> published_;   // one of the two has the bytes
  const std::unique_ptr<unsigned char[]> own_bytes_;  // aligned for every type
  unsigned char* const bytes_;                        // what it points to is guarded by mutex_
  // Guarded by mutex_.
  std::unordered_map<std::uint64_t, std::uint64_t> applied_;
  // The entry in applied_ of the call that has added last, which often adds again.
  std::pair<const std::uint64_t, std::uint64_t>* last_applied_ = nullptr;
};

// Owned by the object that made it, and found by its id (Registry).
class Variables {
 public:
  static std::shared_ptr<Variables> Create();
  ~Variables();
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

  std::uint64_t id() const { return id_; }

  // The variable of this name, made with these bytes if there was none; its bytes are readable by
  // other processes if `is_published` and the platform lets them. Null if there is one of
  // another type or size.
  std::shared_ptr<Variable> Define(const std::string& name, VariableType type, const void* bytes,
                                   std::size_t size, bool is_published = false);
  // Null if there is none.
  std::shared_ptr<Variable> Find(const std::string& name) const;
  // Reads several variables of this set as they stand at one moment: a consistent cut. Element i
  // of `to` receives the bytes of element i of `variables`, which are distinct.
  void ReadAll(const std::vector<const Variable*>& variables, const std::vector<void*>& to) const;
  // Assigns several variables of this set: no other operation sees some of them assigned.
  void AssignAll(const std::vector<Variable*>& variables, const std::vector<const void*>& from);
  void Forget(std::uint64_t call);
  // No process opens the bytes of a variable any more.
  void EndPublishing();

 private:
  explicit Variables(std::uint64_t id) : id_(id) {}

  const std::uint64_t id_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Variable>> by_name_;  // guarded by mutex_
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_VARIABLES_H_
