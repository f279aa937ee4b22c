// The state that a set of threads shares in order to stop together.
#ifndef ALLSTOP_CORE_COORDINATOR_H_
#define ALLSTOP_CORE_COORDINATOR_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "condition_variable.h"
#include "deadline.h"
#include "foreign_references.h"
#include "status.h"
#include "stop_callback.h"
#include "stop_record.h"
#include "thread_registry.h"

namespace allstop::core {

// A copy of the state in somebody else's memory, for whoever cannot call us each
// time. Written under the mutex, the flag last; read without.
struct Mirror {
  std::atomic<std::int32_t> stopped;     // 1 or 0
  std::atomic<std::int32_t> generation;  // its lower 32 bits
};

// Somebody outside the core who wants to be told, with no lock held, on whatever
// thread made the change. It must not block, must not throw, and must not wait for
// JavaScript. It may be told in vain (when memory ran out half-way).
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void OnStop() {}
  virtual void OnClear() {}
  virtual void OnJoinProgress() {}

 private:
  friend class Coordinator;

  // Guarded by the mutex of the coordinator that it observes.
  Mirror* mirror_ = nullptr;                  // may be null
  bool interested_ = false;                   // in stops and clears
  std::shared_ptr<const StopRecord> unseen_;  // first stop not yet taken
};

// One join in progress. Made by BeginJoin, ended by FinishJoin or AbandonJoin.
class Join {
 private:
  friend class Coordinator;

  // Guarded by the coordinator's mutex.
  std::vector<std::shared_ptr<ThreadRegistry::Entry>> snapshot_;
  std::size_t alive_ = 0;                   // of the snapshot
  std::shared_ptr<const StopRecord> stop_;  // the first one it saw, or null
  Clock::time_point began_ = Clock::now();
  bool in_progress_ = true;
  std::weak_ptr<Observer> waiter_;  // empty for a blocking join
  // The memory for telling the waiter that all have ended.
  std::list<std::shared_ptr<Observer>> reserve_ = std::list<std::shared_ptr<Observer>>(1);
};

// Who calls join: to tell whether a thread would wait for itself.
struct JoinCaller {
  bool is_worker = false;  // a JavaScript worker with this threadId
  std::uint64_t worker_thread_id = 0;
  std::vector<std::uint64_t> tasks;  // ids of the tasks that it runs in
};

struct JoinResult {
  bool is_over = true;                        // false: it came upon a provisional record
  std::shared_ptr<const StopRecord> stop;     // the first stop that it saw, or null
  std::shared_ptr<const StopRecord> record;   // the one that stands now, or null
  std::shared_ptr<const EncodedError> error;  // to be thrown, or null
  std::vector<ThreadInfo> stragglers;
};

// Every method may be called on any thread that holds a reference, and none of
// them blocks unless it says so. Callbacks and observers run before the method
// that caused them returns, on its thread, with no lock held.
class Coordinator : public ForeignReferences<Coordinator> {
 public:
  struct Options {
    std::string name;
    std::vector<std::string> clean_stop_types;  // see EncodedError::IsOfType
    double stop_grace_period_ms = 120'000;      // a default, for who joins
  };

  static std::shared_ptr<Coordinator> Create(Options options);
  // Stops when this one does, now if it is stopped. Its own stop stays its own.
  // Null if this one is kMaxDepth levels deep already (a stop descends by
  // recursion, with a lock held per level).
  std::shared_ptr<Coordinator> CreateChild(Options options);
  static constexpr int kMaxDepth = 256;
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  std::uint64_t id() const { return id_; }
  const std::string& name() const { return options_.name; }
  const Options& options() const { return options_; }
  bool has_parent() const { return parent_ != nullptr; }
  const std::shared_ptr<Coordinator>& parent() const { return parent_; }

  StopOutcome RequestStop(const StopRequest& request);
  // The stop is one of several processes': an arbiter elsewhere says whose is the record.
  // Until AnswerStop or AnswerNone a record is provisional, and joins that saw the stop do
  // not end, whatever their grace period.
  void AwaitAnswer();
  // The arbiter's answer. Where no stop was requested, this is one, also after a join; else
  // `winner` (told by its id) takes the record's place, in the children that inherited it as
  // well, and the error that was there is suppressed. The stop itself, its generation, and who
  // was told of it stay as they are: nobody sees the flag fall.
  void AnswerStop(const StopRequest& winner);
  // There will be no answer: what stands is the record.
  void AnswerNone();
  // TensorFlow's ReportStatus: keeps the first error that is not of a clean-stop type,
  // beside the record, and requests no stop. A join that ends stopped without an error
  // comes to it. Later ones are suppressed.
  void Report(const StopRequest& request);
  bool ShouldStop() const { return stop_word_.load(std::memory_order_acquire) != 0; }
  const std::atomic<std::uint32_t>& stop_word() const { return stop_word_; }
  // Counts the stops. A wait that began at `generation` is over once a stop is
  // requested or the generation is another.
  std::uint64_t generation() const;
  // Blocks until then, or until the deadline: true = stopped.
  bool WaitForStop(std::uint64_t generation, const Deadline& deadline);
  bool WaitForStop(const Deadline& deadline) { return WaitForStop(generation(), deadline); }
  // kFailedPrecondition: the parent is stopped.
  Status ClearStop();
  bool joined() const;
  StopView View() const;

  std::uint64_t RegisterThread(NewThread thread);
  // A native thread says that it is the calling one, and alive from now on.
  void EnterThread(std::uint64_t id);
  // The same of a thread that is no native one, but may be a worker with this
  // threadId. False: it has ended, or a join has forgotten it. Twice is harmless.
  bool StartThread(std::uint64_t id, std::optional<std::uint64_t> worker_thread_id);
  // Registers again a thread that a join has forgotten. False if it has ended, or
  // is gone altogether: then it needs a new registration.
  bool ReadmitThread(std::uint64_t id);
  void EndThread(std::uint64_t id);
  // The observer of these threads is gone. They end as unobserved and, without a
  // stop, request one with `error`.
  void EndThreadsOwnedBy(std::uint64_t owner, const StopRequest& request);
  std::vector<ThreadInfo> LiveThreads() const;
  std::vector<ThreadInfo> EndedThreads() const;
  // The requester of the calling thread, by its registered name if it has one.
  Requester ThisThread(Via via) const;

  // Whether the caller is among the threads that a join would wait for.
  bool WouldJoinItself(const JoinCaller& caller) const;
  // Null if it would join itself. `waiter` is
  // told when the join may have got further; without one, use BlockingJoin.
  std::shared_ptr<Join> BeginJoin(const JoinCaller& caller, std::weak_ptr<Observer> waiter = {});
  // How long the join may still take: 0 if it is over, infinity if neither all
  // threads have ended nor a stop was requested, else what is left of the grace
  // period, in milliseconds.
  double JoinRemainingMs(const Join& join, double grace_period_ms) const;
  // Whether all threads have ended that it waits for.
  bool JoinHasEnded(const Join& join) const;
  // Marks the coordinator joined and forgets the joined threads. If it throws, or is not
  // over yet, the join is still in progress.
  JoinResult FinishJoin(Join& join);
  void AbandonJoin(Join& join);
  // All three in one. Blocks. kOk, kStoppedByError, kStragglers, kSelfJoin.
  Status BlockingJoin(double grace_period_ms, bool ignore_live_threads);

  // Null if `function` has run already, as the stop was there.
  std::shared_ptr<StopCallback> OnStop(StopCallback::Function function, void* context);
  // After it has returned, the function is not running and never will. Blocks
  // while it runs on another thread.
  void RemoveStopCallback(StopCallback& callback);

  // `mirror` (may be null) is kept from now until RemoveObserver has returned.
  void AddObserver(std::shared_ptr<Observer> observer, Mirror* mirror);
  void RemoveObserver(Observer& observer);
  // From now on OnStop and OnClear are called. Returns the generation.
  std::uint64_t SetInterested(Observer& observer, bool interested);
  // The first stop since this was last called or interest was declared.
  std::shared_ptr<const StopRecord> TakeUnseen(Observer& observer);

  // Links are described in words, for explain().
  std::uint64_t AddLink(std::string description);
  void RemoveLink(std::uint64_t id);
  std::vector<std::string> Links() const;

 private:
  class Effects;
  struct Stopped;

  Coordinator(Options options, std::shared_ptr<Coordinator> parent, int depth);

  // All of these: the mutex is held.
  StopOutcome Decide(const StopRequest& request, Effects& effects);
  void Latch(std::shared_ptr<const StopRecord> record, Stopped& stopped, Effects& effects);
  static std::shared_ptr<StopRecord> NewRecord();
  void PrepareRecord() noexcept;
  void LatchFromParent(const std::shared_ptr<const StopRecord>& record, Effects& effects);
  std::shared_ptr<StopRecord> RecordOf(const StopRequest& request);
  void Replace(const StopRequest& winner, Effects& effects);
  void Inherit(const std::shared_ptr<const StopRecord>& old,
               const std::shared_ptr<const StopRecord>& record);
  std::shared_ptr<StopRecord> Inherited(const std::shared_ptr<const StopRecord>& record) const;
  // Puts it in the place of the one that was `old`, or inherited from it.
  void Swap(std::shared_ptr<const StopRecord> record, const std::shared_ptr<const StopRecord>& old);
  // Whoever joins will be told, here and below, where the record was inherited.
  void WillAnswer(Effects& effects);
  void Answered() noexcept;
  StopOutcome Suppress(const StopRequest& request, Effects& effects);
  bool Keep(SuppressedError error);
  void Update(Mirror& mirror) const;
  bool IsClean(const EncodedError& error) const;
  bool IsEcho(const StopRequest& request) const;
  bool IsReported(const StopRequest& request) const;
  bool IsAmongThreads(const JoinCaller& caller, std::uint64_t os_thread_id) const;
  static void ReserveEnd(ThreadRegistry::Entry& entry);  // memory for telling of its end
  void Begin(ThreadRegistry::Entry& entry);
  void Ended(ThreadRegistry::Entry& entry, Effects& effects);
  void Detach(Join& join);
  void AwaitJoin(Join& join, double grace_period_ms);  // takes the mutex itself

  const std::uint64_t id_;
  const Options options_;
  const std::shared_ptr<Coordinator> parent_;
  const int depth_;  // 0 without a parent

  mutable std::mutex mutex_;                 // guards all that follows
  ConditionVariable stop_changed_;           // the stop waiters
  std::atomic<std::uint32_t> stop_word_{0};  // written under it, read without
  std::uint32_t waiters_ = 0;                // threads in a wait that a stop ends
  bool joined_ = false;
  bool awaits_answer_ = false;                // a stop is provisional
  std::uint64_t generation_ = 0;              // stops so far
  std::shared_ptr<const StopRecord> record_;  // not null = stopped
  std::shared_ptr<StopRecord> spare_;         // the next one, if there was time to make it
  std::unordered_set<Join*> joins_;
  std::vector<std::shared_ptr<StopCallback>> callbacks_;
  std::vector<std::shared_ptr<Observer>> observers_;
  std::unordered_set<Coordinator*> children_;
  // Up to here what every request touches: it takes its time to be fetched.
  ConditionVariable join_changed_;   // the blocking joins
  ConditionVariable callback_done_;  // RemoveStopCallback
  SuppressedError reported_;         // without a stop; its error may be null
  std::vector<SuppressedError> suppressed_;
  std::uint32_t suppressed_count_ = 0;
  std::list<std::string> past_ids_;  // of cleared stops, the newest last
  std::string replaced_id_;          // of the record that the arbiter's has replaced
  ThreadRegistry threads_;
  std::map<std::uint64_t, std::string> links_;
  std::uint64_t next_link_ = 1;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_COORDINATOR_H_
