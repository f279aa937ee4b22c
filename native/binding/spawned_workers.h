// Which worker threads were spawned by a coordinator, and what they died of.
#ifndef ALLSTOP_BINDING_SPAWNED_WORKERS_H_
#define ALLSTOP_BINDING_SPAWNED_WORKERS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "../core/condition_variable.h"
#include "../core/coordinator.h"

namespace allstop::binding {

// Keyed by the worker's threadId, which Node never uses twice: so a spawned
// worker finds its coordinator without anything of ours in its workerData or
// environment, and a grandchild does not inherit it. Any thread.
class SpawnedWorkers {
 public:
  struct Spawned {
    std::shared_ptr<core::Coordinator> coordinator;
    std::string name;
  };

  static SpawnedWorkers& Get();  // never destroyed

  // Between these the caller starts the worker and learns its threadId. A worker
  // that is quicker than its parent waits in Find until End.
  std::uint64_t Begin();
  void End(std::uint64_t ticket);

  void Add(std::uint32_t thread_id, Spawned spawned);
  void Remove(std::uint32_t thread_id);
  // Blocks while a spawn that began before this call is unfinished.
  std::optional<Spawned> Find(std::uint32_t thread_id);

  // The error that a worker is dying of, encoded on its own thread, where class
  // and fields are still there. The last kMaxUncaught are kept.
  void NoteUncaught(std::uint32_t thread_id, std::string record);
  std::optional<std::string> TakeUncaught(std::uint32_t thread_id);

 private:
  static constexpr std::size_t kMaxUncaught = 64;

  std::mutex mutex_;  // taken with no other lock held; guards what follows
  core::ConditionVariable ended_;
  std::uint64_t next_ticket_ = 1;
  std::set<std::uint64_t> in_progress_;
  std::unordered_map<std::uint32_t, Spawned> spawned_;
  std::list<std::pair<std::uint32_t, std::string>> uncaught_;  // newest last
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_SPAWNED_WORKERS_H_
