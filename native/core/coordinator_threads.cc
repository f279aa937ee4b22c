// The threads of a coordinator, and the joins that wait for them. The numbered invariants
// cited here are listed at the top of coordinator.cc.
#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "coordinator.h"
#include "coordinator_effects.h"
#include "fault_point.h"
#include "identity.h"
#include "unseen_errors.h"

namespace allstop::core {

std::uint64_t Coordinator::RegisterThread(NewThread thread) {
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = threads_.Add(std::move(thread));
  if (entry->info.alive) NoteThread(TimelineType::kThreadStarted, entry->info);
  if (entry->info.kind == ThreadKind::kHook && record_) BeginRun(*entry, record_);  // invariant 10
  return entry->info.id;
}

void Coordinator::BeginRun(ThreadRegistry::Entry& hook,
                           const std::shared_ptr<const StopRecord>& stop) {
  hook.stop_to_run_for = stop;
  if (!hook.info.alive) hook.info.has_begun = false;  // else it runs, or waits for its turn already
  threads_.Readmit(hook.info.id);  // a join of an earlier stop may have left it behind
  Begin(hook);
}

std::shared_ptr<const StopRecord> Coordinator::TakeStopOfHook(std::uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = threads_.Find(id);
  if (!entry) return nullptr;
  if (!entry->info.has_begun) {
    NoteThread(TimelineType::kHookBegan, entry->info);
    ThreadRegistry::Starts(entry->info);
  }
  entry->info.has_begun = true;
  return std::exchange(entry->stop_to_run_for, nullptr);
}

bool Coordinator::EndHook(std::uint64_t id) {
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = threads_.Find(id);
  if (!entry || !entry->info.alive) return true;
  if (entry->stop_to_run_for) return false;
  NoteThread(TimelineType::kEnded, entry->info);
  threads_.EndRun(*entry);
  Ended(*entry, effects);
  return true;
}

bool Coordinator::EnterThread(std::uint64_t id) {
  const std::uint64_t os_thread_id = OsThreadId();
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = threads_.Find(id);
  if (!entry) return false;
  ReserveEnd(*entry);
  threads_.Enter(*entry, os_thread_id);
  Begin(*entry);
  return true;
}

bool Coordinator::StartThread(std::uint64_t id, std::optional<std::uint64_t> worker_thread_id) {
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = threads_.Find(id);
  if (!entry) return false;
  ReserveEnd(*entry);
  entry->info.has_thread_id = worker_thread_id.has_value();
  entry->info.thread_id = worker_thread_id.value_or(0);
  Begin(*entry);
  return true;
}

void Coordinator::ReserveEnd(ThreadRegistry::Entry& entry) {
  for (Join* join : entry.joins) {
    if (join->reserve_.empty()) join->reserve_.emplace_back();
  }
}

void Coordinator::Begin(ThreadRegistry::Entry& entry) {
  if (entry.info.alive) return;
  threads_.Start(entry);
  NoteThread(TimelineType::kThreadStarted, entry.info);
  for (Join* join : entry.joins) ++join->alive_;  // invariant 4
}

bool Coordinator::ReadmitThread(std::uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return threads_.Readmit(id);
}

void Coordinator::EndThread(std::uint64_t id) {
  std::shared_ptr<const StopRequest> on_end;  // outlives the effects, which refer to it
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = threads_.Find(id);
  if (!entry) return;
  const bool was_alive = entry->info.alive;
  on_end = entry->on_end;
  if (on_end && !record_ && entry->on_end_generation == generation_) {
    DecideForEnd(*on_end, effects);
  }
  if (was_alive) NoteThread(TimelineType::kEnded, entry->info);
  threads_.End(id, /*unobserved=*/false);
  ALLSTOP_FAULT_POINT(kThreadEnded);
  if (was_alive) Ended(*entry, effects);
}

// The thread ends also if there is no memory for the record: joins would wait for it for ever.
void Coordinator::DecideForEnd(const StopRequest& request, Effects& effects) noexcept {
  try {
    Decide(request, effects);
  } catch (const std::bad_alloc&) {
  }
}

void Coordinator::Ended(ThreadRegistry::Entry& entry, Effects& effects) {
  for (Join* join : entry.joins) {
    if (--join->alive_ > 0) continue;
    effects.joins_changed = true;
    effects.on_join_progress.splice(effects.on_join_progress.end(), join->reserve_);
    effects.on_join_progress.back() = join->waiter_.lock();
  }
}

void Coordinator::EndThreadsOwnedBy(const Departure& departure) {
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  bool any_alive = false;
  threads_.EachOwnedBy(departure.owner, [&](const ThreadRegistry::Entry& entry) {
    const bool is_hook = entry.info.kind == ThreadKind::kHook;
    any_alive = any_alive || (entry.info.alive && !entry.forgotten && !is_hook);
  });
  // The stop comes before the threads end, so that a join which waits for them has its error.
  if (any_alive && !record_ && !LeaveToObserver(departure)) {
    DecideForEnd(departure.request, effects);
  }
  threads_.EachOwnedBy(departure.owner, [&](ThreadRegistry::Entry& entry) {
    const bool was_alive = entry.info.alive;
    if (was_alive) NoteThread(TimelineType::kEnded, entry.info, /*unobserved=*/true);
    threads_.End(entry.info.id, /*unobserved=*/true);
    if (was_alive) Ended(entry, effects);
  });
}

bool Coordinator::LeaveToObserver(const Departure& departure) {
  const auto observed = threads_.OfWorker(departure.thread_id, departure.owner);
  if (!observed || departure.is_cause_known) return false;
  try {
    observed->on_end = std::make_shared<const StopRequest>(departure.request);
  } catch (const std::bad_alloc&) {
    return false;
  }
  observed->on_end_generation = generation_;
  return true;
}

std::vector<ThreadInfo> Coordinator::LiveThreads() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ThreadInfo> infos;
  for (const auto& entry : threads_.Live()) {
    const bool has_run = record_ && entry->info.kind == ThreadKind::kHook && !entry->info.alive;
    if (!has_run) infos.push_back(entry->info);
  }
  return infos;
}

std::vector<LeftBehindThread> Coordinator::LeftBehindThreads() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return threads_.LeftBehind();
}

std::vector<ThreadInfo> Coordinator::EndedThreads() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {threads_.ended().begin(), threads_.ended().end()};
}

Requester Coordinator::ThisThread(Via via) const {
  Requester requester = ThisNativeThread(via);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto entry = threads_.OnOsThread(requester.thread_id)) {
    requester.thread_name = entry->info.name;
  }
  return requester;
}

bool Coordinator::WouldJoinItself(const JoinCaller& caller) const {
  const std::uint64_t os_thread_id = OsThreadId();
  const std::lock_guard<std::mutex> lock(mutex_);
  return IsAmongThreads(caller, os_thread_id);
}

bool Coordinator::IsAmongThreads(const JoinCaller& caller, std::uint64_t os_thread_id) const {
  const auto entries = threads_.Live();
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
    const ThreadInfo& info = entry->info;
    if (!info.alive) return false;
    if (info.is_os_thread) return info.thread_id == os_thread_id;
    const bool is_worker = info.has_thread_id && info.kind != ThreadKind::kProcess;
    if (is_worker && caller.is_worker && info.thread_id == caller.worker_thread_id) return true;
    return std::find(caller.tasks.begin(), caller.tasks.end(), info.id) != caller.tasks.end();
  });
}

std::shared_ptr<Join> Coordinator::BeginJoin(const JoinCaller& caller,
                                             std::weak_ptr<Observer> waiter,
                                             bool waits_for_daemons) {
  const std::uint64_t os_thread_id = OsThreadId();
  auto join = std::make_shared<Join>();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (IsAmongThreads(caller, os_thread_id)) return nullptr;
  join->snapshot_ = threads_.Live();
  if (!waits_for_daemons) {
    auto& snapshot = join->snapshot_;
    snapshot.erase(
        std::remove_if(snapshot.begin(), snapshot.end(),
                       [](const auto& entry) { return entry->info.daemon == Daemon::kYes; }),
        snapshot.end());
  }
  // All allocations come first: if one throws, no entry lists the join.
  for (const auto& entry : join->snapshot_) {
    auto& joins = entry->joins;
    if (joins.size() == joins.capacity()) joins.reserve(2 * joins.size() + 1);
  }
  joins_.insert(join.get());
  for (const auto& entry : join->snapshot_) {  // invariant 4
    entry->joins.push_back(join.get());
    if (entry->info.alive) ++join->alive_;
  }
  join->stop_ = record_;
  join->waiter_ = std::move(waiter);
  return join;
}

double Coordinator::JoinRemainingMs(const Join& join, double grace_period_ms) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return RemainingMs(join, grace_period_ms);
}

double Coordinator::RemainingMs(const Join& join, double grace_period_ms) {
  if (join.stop_ && join.stop_->IsProvisional()) return std::numeric_limits<double>::infinity();
  if (join.alive_ == 0) return 0;
  if (!join.stop_) return std::numeric_limits<double>::infinity();
  const Clock::time_point from = std::max(join.began_, join.stop_->requested_at);
  return Deadline::After(grace_period_ms, from).RemainingMs();
}

bool Coordinator::JoinHasEnded(const Join& join) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return join.alive_ == 0;
}

JoinResult Coordinator::FinishJoin(Join& join, std::optional<double> grace_period_ms) {
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  JoinResult result;
  if (!join.in_progress_) return result;
  // Since the caller last checked, a stop may have come whose record is provisional, or a
  // registered thread may have begun: it would be a straggler that had no grace period.
  const bool is_provisional = join.stop_ && join.stop_->IsProvisional();
  if (is_provisional || (grace_period_ms && RemainingMs(join, *grace_period_ms) > 0)) {
    result.is_over = false;
    return result;
  }
  result.stop = join.stop_;
  for (const auto& entry : join.snapshot_) {
    if (entry->info.alive) result.stragglers.push_back(entry->info);
  }
  Detach(join);
  const Clock::time_point requested_at = join.stop_ ? join.stop_->requested_at : join.began_;
  for (const auto& entry : join.snapshot_) threads_.Forget(*entry, requested_at);
  result.record = record_;
  if (record_) result.error = FirstError(record_.get(), reported_);
  for (const ThreadInfo& straggler : result.stragglers) {
    NoteThread(TimelineType::kStraggler, straggler);
  }
  joined_ = true;
  return result;
}

void Coordinator::AbandonJoin(Join& join) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (join.in_progress_) Detach(join);
}

void Coordinator::Detach(Join& join) {
  join.in_progress_ = false;
  joins_.erase(&join);
  for (const auto& entry : join.snapshot_) threads_.Unlist(*entry, &join);
}

void Coordinator::AwaitJoin(Join& join, double grace_period_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiters_;
  join_changed_.wait(lock, [&] { return join.alive_ == 0 || join.stop_ != nullptr; });
  --waiters_;
  if (!join.stop_) return;
  const Clock::time_point from = std::max(join.began_, join.stop_->requested_at);
  Deadline::After(grace_period_ms, from).Wait(join_changed_, lock, [&] {
    return join.alive_ == 0;
  });
  join_changed_.wait(lock, [&] { return !join.stop_->IsProvisional(); });
}

Status Coordinator::BlockingJoin(double grace_period_ms, bool ignore_live_threads) {
  const std::shared_ptr<Join> join = BeginJoin({});
  if (!join) return Status::kSelfJoin;
  JoinResult result;
  do {
    AwaitJoin(*join, grace_period_ms);
    ALLSTOP_FAULT_POINT(kJoinIsOver);
    try {
      result = FinishJoin(*join, grace_period_ms);
    } catch (...) {
      AbandonJoin(*join);
      throw;
    }
  } while (!result.is_over);
  if (result.error) {
    UnseenErrors::Give(result.error->fields().id);
    return Status::kStoppedByError;
  }
  if (!result.stragglers.empty() && !ignore_live_threads) return Status::kStragglers;
  return Status::kOk;
}

}  // namespace allstop::core
