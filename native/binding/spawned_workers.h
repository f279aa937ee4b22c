// The worker threads that coordinators have spawned, and the errors that workers died of.
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

// A worker finds the coordinator that spawned it here, by its threadId, which Node never uses
// twice. So the package adds nothing to a worker's workerData or environment variables, which a
// worker's own workers would inherit. Any thread.
class SpawnedWorkers {
 public:
  struct Spawned {
    std::shared_ptr<core::Coordinator> coordinator;
    std::string name;
  };

  static SpawnedWorkers& Get();  // never destroyed

  // Between Begin and End the caller starts a worker, learns its threadId, and calls Add. The
  // worker may call Find before that: Find waits until End. Begin returns the ticket for End.
  std::uint64_t Begin();
  void End(std::uint64_t ticket);

  void Add(std::uint32_t thread_id, Spawned spawned);
  void Remove(std::uint32_t thread_id);
  // Blocks until every spawn that began before this call has ended.
  std::optional<Spawned> Find(std::uint32_t thread_id);

  // Keeps the encoded error that a worker is dying of. The worker's own thread calls this, since
  // Node's 'error' event in the parent loses the error's class. The last kMaxUncaught are kept.
  void NoteUncaught(std::uint32_t thread_id, std::string error);
  std::optional<std::string> TakeUncaught(std::uint32_t thread_id);

 private:
  static constexpr std::size_t kMaxUncaught = 64;

  std::mutex mutex_;               // taken with no other lock held
  core::ConditionVariable ended_;  // notified by End
  // Guarded by mutex_.
  std::uint64_t next_ticket_ = 1;
  std::set<std::uint64_t> in_progress_;                        // tickets without End
  std::unordered_map<std::uint32_t, Spawned> spawned_;         // by threadId
  std::list<std::pair<std::uint32_t, std::string>> uncaught_;  // threadId and error, newest last
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_SPAWNED_WORKERS_H_
