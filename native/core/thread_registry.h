// The threads that are registered at a coordinator and that its joins wait for: workers,
// processes, async tasks, loopers, native threads, and threads of other kinds.
#ifndef ALLSTOP_CORE_THREAD_REGISTRY_H_
#define ALLSTOP_CORE_THREAD_REGISTRY_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace allstop::core {

class Join;
struct StopRecord;
struct StopRequest;

// The order is that of THREAD_KINDS in lib/native/binding.ts.
enum class ThreadKind : std::uint8_t { kWorker, kProcess, kTask, kLooper, kNative, kHook, kCustom };

// Whether a nursery (Coordinator.run) ends although the thread is alive.
enum class Daemon : std::uint8_t { kUnsaid, kNo, kYes };

struct ThreadInfo {
  std::uint64_t id = 0;  // never used twice in a coordinator
  std::string name;
  ThreadKind kind = ThreadKind::kCustom;
  bool alive = true;        // started and not ended
  bool unobserved = false;  // counts as ended because the environment that watched it ended
  bool has_begun = true;    // false: a hook that has to run for a stop, and does not run yet
  Daemon daemon = Daemon::kUnsaid;
  bool has_thread_id = false;
  bool is_os_thread = false;       // a native thread that has entered: thread_id is its OS id
  std::uint64_t thread_id = 0;     // JavaScript's threadId, the OS id, or a pid
  std::int64_t started_at_ms = 0;  // since 1970, for people
  std::chrono::steady_clock::time_point started_at;  // the same: the wall clock may be set
  std::int64_t ended_at_ms = 0;                      // 0 until it has ended
};

// A thread that was alive when a join ended that had waited for it.
struct LeftBehindThread {
  ThreadInfo info;
  std::chrono::steady_clock::time_point stop_requested_at;  // the stop that it did not heed
};

struct NewThread {
  std::string name;
  ThreadKind kind = ThreadKind::kCustom;
  bool started = true;
  Daemon daemon = Daemon::kUnsaid;
  bool has_thread_id = false;
  std::uint64_t thread_id = 0;
  std::uint64_t owner = 0;  // id of the environment that watches the thread; 0: none
};

// Guarded by Coordinator::mutex_ of the coordinator that owns it.
class ThreadRegistry {
 public:
  struct Entry {
    ThreadInfo info;
    std::uint64_t owner = 0;
    std::uint64_t entered_over = 0;  // the thread that had this OS thread when it entered; 0: none
    bool forgotten = false;  // no longer registered; kept while a join waits for it or it is alive
    std::chrono::steady_clock::time_point stop_requested_at;  // set by Forget
    std::vector<Join*> joins;  // the joins in progress that wait for it
    // Of a hook: the newest stop that it has not begun to run for; null if there is none.
    std::shared_ptr<const StopRecord> stop_to_run_for;
    // Set when this entry is a worker that has ended before the threads it watched: the request
    // that End makes unless the coordinator has been stopped since (EndThreadsOwnedBy).
    std::shared_ptr<const StopRequest> on_end;
    std::uint64_t on_end_generation = 0;  // Coordinator::generation_ when on_end was set
    std::uint64_t seen_generation = 0;    // the last stop that the thread was noted to have seen
    // Its node in ended_, allocated in advance. The end of a thread must not need memory: if an
    // end was not recorded, joins would wait for that thread without a limit.
    std::list<ThreadInfo> place_among_ended = std::list<ThreadInfo>(1);
  };

  using Entries = std::map<std::uint64_t, std::shared_ptr<Entry>>;  // by ThreadInfo::id

  static constexpr std::size_t kMaxEnded = 64;
  // A promise that is never settled stays left behind for as long as the coordinator lives. So
  // that a server which leaves one behind at every request does not grow, the oldest go.
  static constexpr std::size_t kMaxLeftBehind = 1024;

  std::shared_ptr<Entry> Add(NewThread thread);
  std::shared_ptr<Entry> Find(std::uint64_t id) const;
  // Removes the entry and, if the thread is alive, adds it to ended(). Null if there is no entry
  // (the thread has ended before, or was forgotten before it started).
  std::shared_ptr<Entry> End(std::uint64_t id, bool unobserved);
  // Called when a join has ended that waited for the thread: it is no longer registered. If it is
  // alive, the join leaves it behind. Find still finds it then, and while another join waits for
  // it. Allocates nothing. A hook that does not run stays registered.
  void Forget(Entry& entry, std::chrono::steady_clock::time_point stop_requested_at);
  // Called when `join` stops waiting for the thread.
  void Unlist(Entry& entry, Join* join);
  // It runs from now on: a hook that begins, whose time before was the wait for its turn.
  static void Starts(ThreadInfo& info);
  // The hooks, in the order of their registration.
  const Entries& hooks() const;
  // Allocates what EndRun needs. Call it before Start; Add has done it for the first run.
  static void PrepareRun(Entry& hook);
  // The hook has ended, is listed in ended(), and stays registered for the next stop.
  void EndRun(Entry& hook);
  // Undoes Forget, if the entry is still there. False if it is not.
  bool Readmit(std::uint64_t id);
  // The thread is alive from now on, and registered, even if a join has forgotten it before.
  void Start(Entry& entry);
  // The thread is the native thread with this OS thread id.
  void Enter(Entry& entry, std::uint64_t os_thread_id);

  // The native thread that has entered with this OS thread id, or null.
  std::shared_ptr<Entry> OnOsThread(std::uint64_t os_thread_id) const;
  std::vector<std::shared_ptr<Entry>> Live() const;  // all that are not forgotten, by id
  // Calls `visit(Entry&)` for each entry of `owner`, with forgotten ones. It may End that entry.
  template <typename Visit>
  void EachOwnedBy(std::uint64_t owner, Visit visit) {
    for (Entries* of : {&live_, &left_behind_}) {
      for (auto at = of->begin(); at != of->end();) {
        const std::shared_ptr<Entry> entry = (at++)->second;
        if (entry->owner == owner) visit(*entry);
      }
    }
  }
  // The live, registered entry of the JavaScript worker with this threadId that an environment
  // other than `owner` watches; null if there is none.
  std::shared_ptr<Entry> OfWorker(std::uint64_t thread_id, std::uint64_t owner) const;
  // Those that joins have left behind, by id, until they end or are readmitted.
  std::vector<LeftBehindThread> LeftBehind() const;
  const std::list<ThreadInfo>& ended() const { return ended_; }

 private:
  void Erase(std::uint64_t id);
  void LimitLeftBehind();
  // Takes the entry out of the entries of its OS thread, which are a list by `entered_over`.
  void Unindex(const Entry& entry);

  std::uint64_t next_id_ = 1;
  Entries live_;                    // all but those in left_behind_
  Entries left_behind_;             // those that are forgotten and alive
  std::unique_ptr<Entries> hooks_;  // null before the first hook
  std::unordered_map<std::uint64_t, std::uint64_t> by_os_thread_;  // OS thread id to id
  std::list<ThreadInfo> ended_;  // newest last (a list, as an empty deque takes 576 bytes)
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_THREAD_REGISTRY_H_
