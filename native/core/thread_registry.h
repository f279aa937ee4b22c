// The threads that a coordinator knows: workers, processes, tasks, loopers,
// native threads, and anything else that can be joined.
#ifndef ALLSTOP_CORE_THREAD_REGISTRY_H_
#define ALLSTOP_CORE_THREAD_REGISTRY_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace allstop::core {

class Join;

// The order is that of THREAD_KINDS in lib/native/binding.ts.
enum class ThreadKind : std::uint8_t { kWorker, kProcess, kTask, kLooper, kNative, kCustom };

struct ThreadInfo {
  std::uint64_t id = 0;  // within its coordinator, never used twice
  std::string name;
  ThreadKind kind = ThreadKind::kCustom;
  bool alive = true;        // started and not ended
  bool unobserved = false;  // it ended only because its observer did
  bool has_thread_id = false;
  bool is_os_thread = false;    // it has entered: then thread_id is the OS id
  std::uint64_t thread_id = 0;  // JavaScript's threadId, the OS id, or a pid
  std::int64_t started_at_ms = 0;
  std::int64_t ended_at_ms = 0;  // 0 until it has ended
};

struct NewThread {
  std::string name;
  ThreadKind kind = ThreadKind::kCustom;
  bool started = true;
  bool has_thread_id = false;
  std::uint64_t thread_id = 0;
  std::uint64_t owner = 0;  // the environment that watches it; 0 for none
};

// Everything here is guarded by the mutex of the coordinator that owns it.
class ThreadRegistry {
 public:
  struct Entry {
    ThreadInfo info;
    std::uint64_t owner = 0;
    bool forgotten = false;    // kept only for the joins that wait for it yet
    std::vector<Join*> joins;  // those in progress that wait for it
    // Its place in ended_, taken in advance: the end of a thread must not need
    // memory, as nobody could make up for an end that was not noted.
    std::list<ThreadInfo> place_among_ended = std::list<ThreadInfo>(1);
  };

  static constexpr std::size_t kMaxEnded = 64;

  std::shared_ptr<Entry> Add(NewThread thread);
  std::shared_ptr<Entry> Find(std::uint64_t id) const;
  // Takes the entry out and, if it has ever started, remembers it among the ended
  // ones. Null if it is not there (ended before, or forgotten and nobody waits for it).
  std::shared_ptr<Entry> End(std::uint64_t id, bool unobserved);
  // A join has joined it: it is no longer registered. It stays findable while
  // another join waits for it.
  void Forget(Entry& entry);
  // Called when a join stops waiting for it.
  void Unlist(Entry& entry, Join* join);
  // Undoes Forget, if the entry is still there. False if it is not.
  bool Readmit(std::uint64_t id);
  // It is alive from now on, and registered even if a join has forgotten it before.
  void Start(Entry& entry);
  // A native thread says which OS thread it is.
  void Enter(Entry& entry, std::uint64_t os_thread_id);

  // The native thread that is entered on this OS thread, or null.
  std::shared_ptr<Entry> OnOsThread(std::uint64_t os_thread_id) const;
  std::vector<std::shared_ptr<Entry>> Live() const;  // registered, in that order
  std::vector<std::shared_ptr<Entry>> OwnedBy(std::uint64_t owner) const;  // all
  const std::list<ThreadInfo>& ended() const { return ended_; }

 private:
  void Erase(std::uint64_t id);
  void Unindex(const Entry& entry);

  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, std::shared_ptr<Entry>> live_;
  std::unordered_map<std::uint64_t, std::uint64_t> by_os_thread_;  // to ids
  std::list<ThreadInfo> ended_;  // newest last (a list, as an empty deque costs 576 bytes)
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_THREAD_REGISTRY_H_
