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
#include "timeline.h"

namespace allstop::core {

// A copy of a coordinator's stop state in memory that JavaScript reads, since a call into
// the addon at each poll would be slow. Written under Coordinator::mutex_, `stopped` last;
// read without a lock.
struct Mirror {
  std::atomic<std::int32_t> stopped;     // 1 or 0
  std::atomic<std::int32_t> generation;  // the lower 32 bits of generation_
};

// The core calls an observer's methods after a change, with no lock held, on the thread that
// made the change. A method must not block, must not throw, and must not wait for JavaScript.
// It may be called without a change (when memory ran out half-way).
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void OnStop() {}
  virtual void OnClear() {}
  virtual void OnJoinProgress() {}
  // An error has come beside the record: the view has it as `reported`, or among `suppressed`.
  virtual void OnError() {}
  // The timeline has further events. Called only between two calls of WatchEvents.
  virtual void OnEvents() {}

 private:
  friend class Coordinator;

  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  // Guarded by Coordinator::mutex_ of the coordinator that it observes.
  Mirror* mirror_ = nullptr;                  // may stay null
  std::size_t place_ = kNowhere;              // its index in Coordinator::observers_
  std::size_t mirror_place_ = kNowhere;       // its index in Coordinator::mirrors_
  bool interested_ = false;                   // whether OnStop, OnClear and OnError are called
  bool watches_events_ = false;               // whether OnEvents is called
  std::uint64_t events_told_ = 0;             // Timeline::count at the last call of OnEvents
  std::shared_ptr<const StopRecord> unseen_;  // the first stop that TakeUnseen has not returned
};

// One join in progress. Made by BeginJoin, ended by FinishJoin or AbandonJoin.
class Join {
 private:
  friend class Coordinator;

  // Guarded by Coordinator::mutex_.
  std::vector<std::shared_ptr<ThreadRegistry::Entry>> snapshot_;  // the threads to wait for
  std::size_t alive_ = 0;                                         // threads of snapshot_ alive
  std::shared_ptr<const StopRecord> stop_;  // the first stop that the join saw, or null
  Clock::time_point began_ = Clock::now();
  bool in_progress_ = true;
  std::weak_ptr<Observer> waiter_;  // empty for a blocking join
  // Memory for the call of waiter_ when the last thread ends: EndThread must not allocate.
  std::list<std::shared_ptr<Observer>> reserve_ = std::list<std::shared_ptr<Observer>>(1);
};

// The caller of a join, so that the coordinator can tell whether it would wait for itself.
struct JoinCaller {
  bool is_worker = false;              // a JavaScript worker
  std::uint64_t worker_thread_id = 0;  // its threadId, if is_worker
  std::vector<std::uint64_t> tasks;    // ids of the async tasks that the call is made in
};

struct JoinResult {
  bool is_over = true;                        // false: the join must wait longer (FinishJoin)
  std::shared_ptr<const StopRecord> stop;     // the first stop that the join saw, or null
  std::shared_ptr<const StopRecord> record;   // the current record, or null
  std::shared_ptr<const EncodedError> error;  // the error that the join throws, or null
  std::vector<ThreadInfo> stragglers;
};

// Every method may be called on any thread that holds a reference; a method blocks only if its
// comment says so. Callbacks and observers run before the method that caused them returns, on
// its thread, with no lock held.
class Coordinator : public ForeignReferences<Coordinator> {
 public:
  struct Options {
    std::string name;
    std::vector<std::string> clean_stop_types;  // see EncodedError::IsOfType
    double stop_grace_period_ms = 120'000;      // not used by the core: the default of join()
  };

  static std::shared_ptr<Coordinator> Create(Options options);
  // The child stops when this coordinator does, at once if this one is stopped already. A stop
  // of the child does not stop this one. Returns null if this one is kMaxDepth levels deep (a
  // stop descends by recursion, with a lock held per level).
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
  // From now on ClearStop is refused in every thread: what the stop has ended, in other processes
  // or in a cluster, does not come back.
  void ForbidClear();
  bool IsClearable() const;
  // Announces that several processes share the stop, and that an arbiter in another process
  // decides which of their stops is the record. From now until AnswerStop or AnswerNone a
  // record is provisional, and joins that saw the stop do not end, whatever their grace period.
  // Forbids to clear as well.
  void AwaitAnswer();
  // The arbiter's answer. If no stop was requested here, `winner` becomes the stop, also after
  // a join. Otherwise `winner` (recognised by its id) replaces the record, also in the children
  // that inherited it, and the replaced record's error is suppressed. The stop itself stays:
  // its generation does not change, observers are not called again, and the flag does not fall.
  void AnswerStop(const StopRequest& winner);
  // The arbiter will not answer: the current record is final.
  void AnswerNone();
  // TensorFlow's ReportStatus: keeps the first error that is not of a clean-stop type, beside
  // the record, and requests no stop. A join that ends stopped, by a stop without an error,
  // throws the reported error. Later reported errors are suppressed. The error of a hook
  // (Via::kHook) is suppressed also if a later error was (StopView::first_later), or after a
  // join; that of a deferred function (Via::kDefer) if a later error was, or if it is clean.
  // kStopped: the error is kept as the reported one.
  StopOutcome Report(const StopRequest& request);
  bool ShouldStop() const { return stop_word_.load(std::memory_order_acquire) != 0; }
  const std::atomic<std::uint32_t>& stop_word() const { return stop_word_; }
  // The number of stops so far.
  std::uint64_t generation() const;
  // Blocks until the coordinator is stopped or its generation differs from `generation` (a
  // stop that was cleared meanwhile), or until the deadline. False: the deadline has passed.
  bool WaitForStop(std::uint64_t generation, const Deadline& deadline);
  bool WaitForStop(const Deadline& deadline) { return WaitForStop(generation(), deadline); }
  // kOk, or kFailedPrecondition if the parent is stopped, or after ForbidClear.
  Status ClearStop();
  bool joined() const;
  StopView View() const;

  std::uint64_t RegisterThread(NewThread thread);
  // The calling native thread is the registered thread `id`, and counts as alive from now on.
  // False: as StartThread.
  bool EnterThread(std::uint64_t id);
  // The registered thread `id`, which is not a native one, counts as alive from now on. If it
  // is a JavaScript worker, `worker_thread_id` is its threadId. May be called again.
  // False: the thread has ended, or a join has forgotten it before it was started.
  bool StartThread(std::uint64_t id, std::optional<std::uint64_t> worker_thread_id);
  // Registers again a thread that a join has forgotten. False if the thread has ended, or its
  // entry no longer exists: then it needs a new registration.
  bool ReadmitThread(std::uint64_t id);
  void EndThread(std::uint64_t id);

  // A hook is a registered thread of the kind kHook: a function of a JavaScript thread that runs
  // at each stop. It counts as alive from the stop, or from its registration while stopped, until
  // EndHook; EndThread removes it.
  //
  // The newest stop that the hook has not run for: it has to run now, also if that stop has been
  // cleared. Null if there is none, or if the hook was removed.
  std::shared_ptr<const StopRecord> TakeStopOfHook(std::uint64_t id);
  // The run that TakeStopOfHook began has ended. False: another stop has come meanwhile, so the
  // hook is still alive and has to run again.
  bool EndHook(std::uint64_t id);
  // What is known when the JavaScript thread that watched some threads has ended.
  struct Departure {
    std::uint64_t owner = 0;      // the environment that has ended
    std::uint64_t thread_id = 0;  // the threadId of that JavaScript thread
    bool is_cause_known = false;  // the JavaScript thread has died of `request.error`
    StopRequest request;
  };
  // The threads that the environment `departure.owner` watched end as unobserved. If one of
  // them was alive and the coordinator is not stopped, `departure.request` stops it: at once if
  // the cause is known, or if no other environment watches the JavaScript thread itself. Else
  // that watching environment is about to learn how the thread died, and its error comes first:
  // the request is then made when it reports the end of the thread, if nothing has stopped the
  // coordinator until then.
  void EndThreadsOwnedBy(const Departure& departure);
  std::vector<ThreadInfo> LiveThreads() const;
  // The threads that joins have found alive and forgotten: until they end, the environment that
  // watches them ends, or they are readmitted.
  std::vector<LeftBehindThread> LeftBehindThreads() const;
  std::vector<ThreadInfo> EndedThreads() const;
  // Describes the calling native thread, with its registered name if it has one.
  Requester ThisThread(Via via) const;

  // Whether the caller is among the threads that a join would wait for.
  bool WouldJoinItself(const JoinCaller& caller) const;
  // Null if the caller would wait for itself. The core calls `waiter->OnJoinProgress()` when
  // JoinRemainingMs may have changed.
  // `waits_for_daemons`: false leaves the daemon threads out, for a wait that a nursery abandons.
  std::shared_ptr<Join> BeginJoin(const JoinCaller& caller, std::weak_ptr<Observer> waiter = {},
                                  bool waits_for_daemons = true);
  // How long the join may still take, in milliseconds: 0 if it is over, infinity if the record
  // is provisional or if threads are alive and no stop was requested, else the rest of the
  // grace period, which counts from the stop or from the join's beginning, whichever is later.
  double JoinRemainingMs(const Join& join, double grace_period_ms) const;
  // Whether all threads that the join waits for have ended.
  bool JoinHasEnded(const Join& join) const;
  // Marks the coordinator joined and forgets the threads, those that it leaves behind as well
  // (LeftBehindThreads). If FinishJoin throws, or its
  // result is not over, the join is still in progress.
  // With a grace period, the join is over only if JoinRemainingMs is 0; without one, in any case.
  JoinResult FinishJoin(Join& join, std::optional<double> grace_period_ms = std::nullopt);
  void AbandonJoin(Join& join);
  // A whole join. Blocks. Returns kOk, kStoppedByError, kStragglers or kSelfJoin.
  Status BlockingJoin(double grace_period_ms, bool ignore_live_threads);

  // If the coordinator is stopped already, calls `function` at once and returns null.
  std::shared_ptr<StopCallback> OnStop(StopCallback::Function function, void* context);
  // When RemoveStopCallback has returned, the function is not running and will not run. Blocks
  // while it runs on another thread.
  void RemoveStopCallback(StopCallback& callback);

  // Writes `mirror`, which may be null, from now until RemoveObserver has returned.
  void AddObserver(std::shared_ptr<Observer> observer, Mirror* mirror);
  void RemoveObserver(Observer& observer);
  // Whether more than one JavaScript thread is attached, or another addon has a reference.
  bool IsShared() const;
  // Sets whether OnStop and OnClear of `observer` are called. Returns the current generation:
  // stops of a later generation call OnStop.
  std::uint64_t SetInterested(Observer& observer, bool interested);
  // The first stop since the last call of TakeUnseen, or since the observer became
  // interested; null if there was no stop.
  std::shared_ptr<const StopRecord> TakeUnseen(Observer& observer);
  // The id of the last stop that was cleared; empty if there is none.
  std::string PastStopId() const;

  // What has happened so far, but for the first `since` events: the newest Timeline::kCapacity.
  TimelineView TimelineSoFar(std::uint64_t since = 0) const;
  // Sets whether OnEvents of `observer` is called when a thread has started, ended or become a
  // straggler, a stop was requested, or a producer waits at a full queue. Returns the number of
  // events so far: `since` for TimelineSoFar.
  std::uint64_t WatchEvents(Observer& observer, bool watches);
  // The JavaScript thread `thread_id`, of the environment `owner`, sees the stop. `name`: its name,
  // unless it is a worker that is registered here. Does nothing while not stopped.
  void NoteSeen(std::uint64_t owner, std::uint64_t thread_id, bool is_worker,
                const std::string& name);
  // A producer begins to wait, since the queue `queue` is full.
  void NoteQueueFull(const std::string& queue);

  // A link may stop the coordinator (a signal, a timer). `description` is text for explain().
  std::uint64_t AddLink(std::string description);
  void RemoveLink(std::uint64_t id);
  std::vector<std::string> Links() const;

 private:
  class Effects;
  struct Stopped;

  Coordinator(Options options, std::shared_ptr<Coordinator> parent, int depth);

  // The caller of any method below must hold mutex_, except of those that take it themselves.
  StopOutcome Decide(const StopRequest& request, Effects& effects);
  void DecideForEnd(const StopRequest& request, Effects& effects) noexcept;  // of a thread
  // Whether another environment will say why the JavaScript thread died: see EndThreadsOwnedBy.
  bool LeaveToObserver(const Departure& departure);
  void Latch(std::shared_ptr<const StopRecord> record, Stopped& stopped, Effects& effects);
  static std::shared_ptr<StopRecord> NewRecord();
  void PrepareRecord() noexcept;
  void LatchFromParent(const std::shared_ptr<const StopRecord>& record, Effects& effects);
  std::shared_ptr<StopRecord> RecordOf(const StopRequest& request);
  // The arbiter has answered for the current record, which this coordinator has made or inherited:
  // it is final, or replaced by `record` if that is not null. The same for all that inherited it.
  void Settle(std::shared_ptr<StopRecord> record, Effects& effects);
  void Replace(std::shared_ptr<const StopRecord> record,
               const std::shared_ptr<const StopRecord>& old);
  std::shared_ptr<StopRecord> Inherited(const std::shared_ptr<const StopRecord>& record) const;
  StopOutcome Suppress(const StopRequest& request, Effects& effects);
  bool Keep(SuppressedError error);
  void Update(Mirror& mirror) const;
  void UpdateMirrors() const;
  bool IsClean(const EncodedError& error) const;
  bool IsEcho(const StopRequest& request) const;
  bool IsReported(const StopRequest& request) const;
  bool IsAmongThreads(const JoinCaller& caller, std::uint64_t os_thread_id) const;
  static void ReserveEnd(ThreadRegistry::Entry& entry);  // allocates for Ended, which must not
  void Begin(ThreadRegistry::Entry& entry);
  void BeginRun(ThreadRegistry::Entry& hook, const std::shared_ptr<const StopRecord>& stop);
  void NoteIfThrown(const StopRequest& request, std::shared_ptr<const Origin> origin) const;
  void Ended(ThreadRegistry::Entry& entry, Effects& effects);
  static double RemainingMs(const Join& join, double grace_period_ms);
  void Detach(Join& join);
  void AwaitJoin(Join& join, double grace_period_ms);  // blocks; takes mutex_ itself
  void NoteSeenByThisThread() noexcept;
  void NoteSeenBy(ThreadRegistry::Entry& entry) noexcept;
  void NoteThread(TimelineType type, const ThreadInfo& thread, bool unobserved = false) noexcept;
  void NoteStop(TimelineType type, Clock::time_point at) noexcept;
  void Note(TimelineEvent event, const std::string& name) noexcept;
  void UpdateEventsWatched() noexcept;
  void TellEvents() noexcept;                       // takes mutex_ itself
  std::shared_ptr<Observer> NextToTell() noexcept;  // takes mutex_ itself

  const std::uint64_t id_;
  const Options options_;
  const std::shared_ptr<Coordinator> parent_;
  const int depth_;  // 0 without a parent

  // Every field below is guarded by mutex_. Those down to children_ are touched by every
  // request; they are kept together so that a request fetches few cache lines.
  mutable std::mutex mutex_;
  ConditionVariable stop_changed_;           // notified on a stop, for WaitForStop
  std::atomic<std::uint32_t> stop_word_{0};  // written under mutex_, read without it
  std::uint32_t waiters_ = 0;                // threads in a wait that a stop ends
  bool joined_ = false;
  bool awaits_answer_ = false;                // a new record is provisional
  bool clearable_ = true;                     // false after ForbidClear, for ever
  std::atomic<bool> events_watched_{false};   // written under mutex_, read without it
  std::uint32_t suppressed_count_ = 0;        // the number of all suppressed errors
  std::uint64_t generation_ = 0;              // the number of stops so far
  std::shared_ptr<const StopRecord> record_;  // not null = stopped
  // The record of the next stop, allocated in advance (PrepareRecord) when a wait begins, so
  // that the request need not allocate it. May be null.
  std::shared_ptr<StopRecord> spare_;
  std::unordered_set<Join*> joins_;
  std::list<std::shared_ptr<StopCallback>> callbacks_;  // in the order of registration
  std::vector<std::shared_ptr<Observer>> observers_;
  std::vector<Observer*> mirrors_;  // the observers with a mirror: invariant 8 in coordinator.cc
  std::unordered_set<Coordinator*> children_;
  ConditionVariable join_changed_;   // notified for BlockingJoin
  ConditionVariable callback_done_;  // notified for RemoveStopCallback
  SuppressedError reported_;         // the first error of Report; its error may be null
  std::vector<SuppressedError> suppressed_;
  std::shared_ptr<const EncodedError> first_later_;  // StopView::first_later
  std::string replaced_id_;  // id of the record that an arbiter's answer has replaced
  ThreadRegistry threads_;
  // What most coordinators never have: behind a pointer, so that a coordinator takes less than 1
  // KB.
  struct Seldom {
    std::map<std::uint64_t, std::string> links;
    std::uint64_t next_link = 1;
    std::list<std::string> past_ids;  // ids of cleared stops, the newest last
  };
  Seldom& MakeSeldom();
  std::unique_ptr<Seldom> seldom_;      // null before the first link and the first cleared stop
  std::unique_ptr<Timeline> timeline_;  // null before the first event
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_COORDINATOR_H_
