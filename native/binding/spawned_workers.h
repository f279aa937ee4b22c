// The worker threads that coordinators have spawned, and the errors that workers died of.
#ifndef ALLSTOP_BINDING_SPAWNED_WORKERS_H_
#define ALLSTOP_BINDING_SPAWNED_WORKERS_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

  // Between Begin and End the caller, the JavaScript thread with this threadId, starts a worker,
  // learns the worker's threadId, and calls Add. The worker may call Find before Add is called.
  // Begin returns the ticket for End.
  std::uint64_t Begin(std::uint32_t parent_thread_id);
  void End(std::uint64_t ticket);

  void Add(std::uint32_t thread_id, Spawned spawned);
  void Remove(std::uint32_t thread_id);
  // The number of the next ticket. The spawn of a worker that runs by now has an earlier ticket.
  std::uint64_t NextTicket();
  // Waits, for `ms` at most, until it is known whether the worker with this threadId was spawned:
  // until no spawn with a ticket before `before` is unfinished on a thread that can be the
  // worker's parent (a parent has the smaller threadId). The caller waits in slices: a thread
  // that is terminated in the middle of a spawn ends its ticket only after its own workers have
  // ended, and the caller may be one of them.
  struct Found {
    bool is_known = false;
    std::optional<Spawned> spawned;  // empty if the worker was not spawned
  };
  Found Find(std::uint32_t thread_id, std::uint64_t before, double ms);

  // Keeps the encoded error that no code of a worker has caught. The worker's own thread calls
  // this, since Node's 'error' event in the parent loses the error's class. `is_fatal`: the
  // program has no handler for such errors, so the worker dies of it. The last kMaxUncaught are
  // kept.
  void NoteUncaught(std::uint32_t thread_id, std::string encoded, bool is_fatal);
  std::optional<std::string> TakeUncaught(std::uint32_t thread_id);
  // The error that the worker dies of, if it is known. TakeUncaught still finds it afterwards.
  std::optional<std::string> FatalError(std::uint32_t thread_id);

 private:
  static constexpr std::size_t kMaxUncaught = 64;

  std::mutex mutex_;               // taken with no other lock held
  core::ConditionVariable ended_;  // notified by End
  // Guarded by mutex_.
  std::uint64_t next_ticket_ = 1;
  std::map<std::uint64_t, std::uint32_t> in_progress_;  // ticket without End -> parent's threadId
  std::unordered_map<std::uint32_t, Spawned> spawned_;  // by threadId
  struct Uncaught {
    std::uint32_t thread_id = 0;
    std::string encoded;
    bool is_fatal = false;
  };
  std::list<Uncaught>::reverse_iterator LatestOf(std::uint32_t thread_id);
  std::list<Uncaught> uncaught_;  // newest last
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_SPAWNED_WORKERS_H_
