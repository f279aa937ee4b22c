// Invariants, cited below by number. "Stopped" means record_ != nullptr.
//
//  1. stop_word_, every registered mirror, and "stopped" agree whenever mutex_ is free, and
//     so do generation_ and the mirrors' copies of it. They change only under mutex_, all
//     together, in Latch and ClearStop. This matters because native threads poll stop_word_
//     and JavaScript polls a mirror, both without a lock, and then read the record.
//  2. generation_ grows by one with every stop and never falls. This matters because a wait
//     compares generations: it sees a stop that was cleared before the waiting thread ran.
//  3. If the parent is stopped, so is the child, whenever the parent's mutex is free: Latch
//     descends to the children before it releases the parent's mutex, CreateChild lists a
//     child under the parent's mutex, and ClearStop holds the parent's mutex while it checks.
//     This matters because a thread that polls the child alone must learn of the parent's stop.
//  4. A Join in joins_ counts in alive_ the entries of its snapshot that are alive, and each
//     of those entries lists the join; no other entry lists it. This matters because the end
//     of a thread then finds its joins at once, and the join is over when alive_ is 0.
//  5. A stop callback is in callbacks_ exactly while it is kWaiting and no stop has taken it.
//     Its function is called only by the thread that moved it to kRunning, with no lock held.
//     This matters because the function must run at most once, and must not run any more
//     after RemoveStopCallback has returned: its context may be freed then.
//  6. While a record is provisional (awaits_answer), no join that has seen it ends. A record stops
//     being provisional once, under the mutex of the coordinator that has it, and is replaced only
//     at that moment. A descendant that inherited a provisional record has a provisional one, of
//     its own: Settle makes both final, one coordinator after the other. A coordinator whose record
//     may be provisional cannot be cleared, so no join is left with a provisional record that the
//     coordinator no longer has. This matters because an error that a join has thrown cannot be
//     taken back, and because a join must end.
//  7. observers_ holds the observers that AddObserver has added and RemoveObserver has not
//     yet removed; only their mirrors are written. This matters because the memory of a
//     mirror may be freed as soon as RemoveObserver has returned.
//  8. mirrors_ lists the observers that have a mirror; each observer knows its own place in
//     observers_ and in mirrors_. A stop writes all mirrors in one loop over mirrors_ that does
//     nothing else. This matters because a thread that has seen its mirror may tell another
//     thread of the stop, whose mirror is not written yet for as long as that loop takes.
//  9. A thread that a join has found alive is left behind, and no longer registered, until it
//     ends, its watching environment ends, or it is readmitted. FinishJoin moves its entry and
//     allocates nothing for that. This matters because a thread that hangs must be visible after
//     the join that gave it up.
//
// 10. A hook that is registered when a stop is latched is alive from that moment, in the same
//     critical section, until EndHook, and so is one that is registered while stopped, from its
//     registration; stop_to_run_for is then set until TakeStopOfHook. Between stops a hook that
//     does not run is not alive, and no join counts it. Latch adds it to alive_ of the joins that
//     list it (4). This matters because no join may see the stop without the hooks that it has to
//     wait for.
//
// 11. events_watched_ is true while any observer watches events. An event is noted under mutex_,
//     and the thread that noted it calls TellEvents after that (in Effects): it reads true if an
//     observer watched before the event, since that observer set it under mutex_. TellEvents
//     takes observers whose events_told_ is not the number of events, one by one, until there is
//     none: an event is told to each watching observer by that thread, or by another one that
//     has taken the observer after the event. This allocates nothing, so the end of a thread can
//     do it. This matters because without an observer that watches, an event costs one more read.
//
// No wake-up is lost. Every wait holds mutex_ while it tests its predicate, and condition
// variables release mutex_ and go to sleep in one atomic step. Every change that can make a
// predicate true (Latch, Ended, the end of a callback) is made under mutex_ and notifies after
// it, so a waiting thread either saw the new state, or sleeps already and is notified. A stop
// that is cleared before the waiting thread runs is still seen, since the wait tests the
// generation (2). Observers are called after mutex_ is released, but the fields that they then
// read (generation_, unseen_, alive_) were written under mutex_. An observer declares its
// interest under mutex_ as well: if that comes too late for OnStop, SetInterested returns the
// new generation.
//
// The record is there together with the stop, but its requester comes later (see Origin): the
// name of the thread when all waiting threads have been woken, the stack of the call when the
// stop callbacks have run, since both take longer to find out than the stop itself. A reader of
// the requester waits for it. That wait ends, because the thread that completes the origin
// holds no lock and waits for no other thread. Where that thread calls the program's own code
// (a formatter of stacks), the reader waits for a limited time.
//
// Nothing deadlocks. Locks are taken in the order: the registry's, the parent's, the child's,
// and last the locks that observers use. What goes down to the children (Latch, Settle) holds the
// mutexes of one line from the coordinator to a descendant, each locked once on that way and
// released before the next child is visited; a child has one parent, and nothing goes up but
// ClearStop and the destructor, which take the parent's mutex before, or without, their own. No
// foreign code is called while a lock is held (Effects run when all locks are released).
// RemoveStopCallback waits for a callback that runs on another thread; callbacks must not block, so
// that wait ends.
//
// Memory. Every step that allocates comes before the first step that changes something. So a
// call that throws has changed nothing, with one exception: a stop that descends may already
// have stopped some children, and the effects on those still run. The end of a thread
// allocates nothing.
//
// Lifetime. Effects hold references to all objects that they touch. A parent lists a child by
// bare pointer. The child's destructor takes the parent's mutex to leave the list, so the
// members of a listed child still exist, and weak_from_this() is empty if the child is dying.
#include "coordinator.h"

#include <algorithm>
#include <utility>

#include "coordinator_effects.h"
#include "fault_point.h"
#include "identity.h"
#include "registry.h"
#include "unseen_errors.h"

namespace allstop::core {

Coordinator::Coordinator(Options options, std::shared_ptr<Coordinator> parent, int depth)
    : id_(Registry<Coordinator>::NextId()),
      options_(std::move(options)),
      parent_(std::move(parent)),
      depth_(depth) {}

std::shared_ptr<Coordinator> Coordinator::Create(Options options) {
  std::shared_ptr<Coordinator> made(new Coordinator(std::move(options), nullptr, 0));
  Registry<Coordinator>::Get().Add(made->id_, made);
  return made;
}

std::shared_ptr<Coordinator> Coordinator::CreateChild(Options options) {
  if (depth_ == kMaxDepth) return nullptr;
  std::shared_ptr<Coordinator> child(
      new Coordinator(std::move(options), shared_from_this(), depth_ + 1));
  {
    Effects effects(*child);  // does nothing: a new child has no observers or waiters
    const std::lock_guard<std::mutex> lock(mutex_);
    children_.insert(child.get());
    if (record_) {  // a stopped parent has only stopped children (invariant 3)
      const std::lock_guard<std::mutex> child_lock(child->mutex_);
      child->LatchFromParent(record_, effects);
    }
  }
  Registry<Coordinator>::Get().Add(child->id_, child);
  return child;
}

Coordinator::~Coordinator() {
  Registry<Coordinator>::Get().Remove(id_);
  if (parent_) {
    const std::lock_guard<std::mutex> lock(parent_->mutex_);
    parent_->children_.erase(this);
  }
}

StopOutcome Coordinator::RequestStop(const StopRequest& request) {
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  return Decide(request, effects);
}

StopOutcome Coordinator::Report(const StopRequest& request) {
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (IsEcho(request) || IsReported(request)) return StopOutcome::kEcho;
  const Via via = request.requester.via;
  const bool is_deferred = via == Via::kDefer;
  if (!is_deferred && IsClean(*request.error)) return StopOutcome::kAlreadyStopped;
  const bool is_first = !FirstError(record_.get(), reported_);
  const bool is_later = (via == Via::kHook && (first_later_ || joined_)) ||
                        (is_deferred && (first_later_ || IsClean(*request.error)));
  if (!is_first || is_later) return Suppress(request, effects);
  const auto origin = std::make_shared<Origin>();
  effects.WillKeep(origin, request);
  NoteIfThrown(request, origin);
  reported_ = {request.error, origin};
  return StopOutcome::kStopped;
}

StopOutcome Coordinator::Decide(const StopRequest& request, Effects& effects) {
  const bool clean = request.error && IsClean(*request.error);
  const bool failed = request.error && !clean;
  // After a join the program does not read the record again, so an error kept there would be
  // lost. The caller of RequestStop throws the error instead.
  if (joined_ && failed && request.has_caller) return StopOutcome::kRefused;
  if (IsEcho(request) || (record_ && IsReported(request))) return StopOutcome::kEcho;
  if (record_ && !request.error) return StopOutcome::kAlreadyStopped;
  const bool is_relayed = !request.record_id.empty();
  if (record_ || (joined_ && failed && !is_relayed)) return Suppress(request, effects);

  const auto record = RecordOf(request);
  record->awaits_answer = awaits_answer_;
  record->generation = generation_ + 1;
  record->requested_at = Clock::now();
  effects.WillComplete({record, &record->own_origin}, request);
  if (failed) NoteIfThrown(request, {record, &record->own_origin});
  Latch(record, effects.own, effects);
  return StopOutcome::kStopped;
}

std::shared_ptr<StopRecord> Coordinator::RecordOf(const StopRequest& request) {
  auto record = spare_ ? std::move(spare_) : NewRecord();
  if (request.error) {
    record->id = request.error->fields().id;
    record->kind = IsClean(*request.error) ? StopKind::kClean : StopKind::kError;
    record->error = request.error;
  } else if (!request.record_id.empty()) {
    record->id = request.record_id;
  }
  return record;
}

void Coordinator::ForbidClear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  clearable_ = false;
}

bool Coordinator::IsClearable() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return clearable_;
}

void Coordinator::AwaitAnswer() {
  const std::lock_guard<std::mutex> lock(mutex_);
  awaits_answer_ = true;
  clearable_ = false;
}

void Coordinator::AnswerStop(const StopRequest& winner) {
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!record_) {
    awaits_answer_ = false;  // before Decide: the new record is final
    Decide(winner, effects);
    return;
  }
  if (!awaits_answer_) return;
  std::shared_ptr<StopRecord> record;
  if (record_->id != (winner.error ? winner.error->fields().id : winner.record_id)) {
    record = RecordOf(winner);
    record->requested_at = record_->requested_at;
    effects.WillComplete({record, &record->own_origin}, winner);
  }
  Settle(std::move(record), effects);
  awaits_answer_ = false;
}

void Coordinator::AnswerNone() {
  Effects effects(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (record_) Settle(nullptr, effects);
  awaits_answer_ = false;
}

void Coordinator::Settle(std::shared_ptr<StopRecord> record, Effects& effects) {
  const std::shared_ptr<const StopRecord> old = record_;
  const std::shared_ptr<const StopRecord> root = old->inherited_from ? old->inherited_from : old;
  if (record) {
    record->generation = old->generation;
    suppressed_.reserve(suppressed_.size() + 2);
    replaced_id_.reserve(old->id.size());
  }
  for (Join* join : joins_) {
    effects.on_join_progress.emplace_back();
    effects.on_join_progress.back() = join->waiter_.lock();
  }
  Stopped& told = effects.descendants.emplace_back();
  told.coordinator = weak_from_this().lock();
  told.waiters = 1;  // joins are not counted: any number above 0 makes Wake notify them
  ALLSTOP_FAULT_POINT(kJoinsListed);
  for (Coordinator* child : children_) {
    const std::lock_guard<std::mutex> lock(child->mutex_);
    if (!child->record_ || child->record_->inherited_from != root) continue;
    child->Settle(record ? child->Inherited(record) : nullptr, effects);
  }
  if (record) Replace(std::move(record), old);
  record_->awaits_answer = false;
}

void Coordinator::Replace(std::shared_ptr<const StopRecord> record,
                          const std::shared_ptr<const StopRecord>& old) {
  replaced_id_ = old->id;
  for (const auto& observer : observers_) {
    if (observer->unseen_ == old) observer->unseen_ = record;
  }
  for (Join* join : joins_) {
    if (join->stop_ == old) join->stop_ = record;
  }
  record_ = std::move(record);
  if (old->error) {
    const auto& origin = old->inherited_from ? old->inherited_from : old;
    Keep({old->error, {origin, &origin->own_origin}});
    if (!IsClean(*old->error)) first_later_ = old->error;  // it came before all the others
  }
  // As in Latch: a join now throws the record's error, and the reported one is suppressed.
  if (record_->kind == StopKind::kError && reported_.error) Keep(std::exchange(reported_, {}));
}

std::shared_ptr<StopRecord> Coordinator::NewRecord() {
  auto record = std::make_shared<StopRecord>();
  record->id = NextIdentity();
  return record;
}

void Coordinator::PrepareRecord() noexcept {
  try {
    if (!record_ && !spare_) spare_ = NewRecord();
  } catch (...) {  // no memory: the next stop request allocates the record, or throws
  }
}

void Coordinator::Latch(std::shared_ptr<const StopRecord> record, Stopped& stopped,
                        Effects& effects) {
  // All allocations come before the first change of this coordinator. If memory runs out,
  // some observers are called without a stop, and some children stay stopped, which is a
  // valid state for a child.
  const bool displaces_reported = record->kind == StopKind::kError && reported_.error;
  if (displaces_reported) suppressed_.reserve(suppressed_.size() + 1);
  stopped.coordinator = weak_from_this().lock();  // null if this coordinator is dying
  stopped.waiters = waiters_;
  for (const auto& observer : observers_) {
    if (observer->interested_) effects.on_stop.push_back(observer);
  }
  for (Join* join : joins_) {
    if (join->stop_) continue;
    effects.on_join_progress.emplace_back();
    effects.on_join_progress.back() = join->waiter_.lock();
  }
  for (const auto& [id, hook] : threads_.hooks()) {
    ReserveEnd(*hook);
    ThreadRegistry::PrepareRun(*hook);
  }
  for (Coordinator* child : children_) {
    const std::lock_guard<std::mutex> lock(child->mutex_);
    if (!child->record_) child->LatchFromParent(record, effects);
  }

  ALLSTOP_FAULT_POINT(kChildrenLatched);
  record_ = std::move(record);
  // A join now throws the record's error, so the reported error becomes a suppressed one.
  if (displaces_reported) Keep(std::exchange(reported_, {}));
  for (const auto& [id, hook] : threads_.hooks()) BeginRun(*hook, record_);  // invariant 10
  ++generation_;
  NoteStop(TimelineType::kStopRequested, record_->requested_at);
  stop_word_.store(1, std::memory_order_release);
  ALLSTOP_FAULT_POINT(kStopWordWritten);
  UpdateMirrors();
  for (const auto& observer : observers_) {
    if (observer->interested_ && !observer->unseen_) observer->unseen_ = record_;
  }
  for (Join* join : joins_) {
    if (!join->stop_) join->stop_ = record_;
  }
  if (!stopped.coordinator) return;
  for (const auto& callback : callbacks_) callback->is_listed_ = false;
  stopped.callbacks.swap(callbacks_);
}

void Coordinator::LatchFromParent(const std::shared_ptr<const StopRecord>& record,
                                  Effects& effects) {
  auto inherited = Inherited(record);
  inherited->generation = generation_ + 1;
  Latch(std::move(inherited), effects.descendants.emplace_back(), effects);
}

std::shared_ptr<StopRecord> Coordinator::Inherited(
    const std::shared_ptr<const StopRecord>& record) const {
  auto inherited = std::make_shared<StopRecord>();
  inherited->id = record->id;  // the ancestor's: an error that echoes its stop is an echo here, too
  inherited->error = record->error;
  if (record->error) {
    inherited->kind = IsClean(*record->error) ? StopKind::kClean : StopKind::kError;
  }
  inherited->inherited_from = record->inherited_from ? record->inherited_from : record;
  inherited->requested_at = record->requested_at;
  inherited->awaits_answer = record->awaits_answer.load();
  return inherited;
}

StopOutcome Coordinator::Suppress(const StopRequest& request, Effects& effects) {
  const auto origin = std::make_shared<Origin>();
  effects.WillKeep(origin, request);
  if (!IsClean(*request.error)) NoteIfThrown(request, origin);
  return Keep({request.error, origin}) ? StopOutcome::kSuppressed : StopOutcome::kCounted;
}

void Coordinator::NoteIfThrown(const StopRequest& request,
                               std::shared_ptr<const Origin> origin) const {
  if (!request.is_thrown) return;
  UnseenErrors::Get().Note({request.error, "the coordinator '" + name() + "'", std::move(origin)},
                           request.given_before);
}

bool Coordinator::Keep(SuppressedError error) {
  const std::shared_ptr<const EncodedError> kept_error = error.error;
  const bool kept = suppressed_.size() < kMaxSuppressed;
  if (kept) suppressed_.push_back(std::move(error));
  if (record_ && !first_later_ && !IsClean(*kept_error)) first_later_ = kept_error;
  ++suppressed_count_;
  return kept;
}

bool Coordinator::IsClean(const EncodedError& error) const {
  const auto& types = options_.clean_stop_types;
  return std::any_of(types.begin(), types.end(),
                     [&error](const std::string& type) { return error.IsOfType(type); });
}

bool Coordinator::IsEcho(const StopRequest& request) const {
  const auto contains = [](const auto& ids, const std::string& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  if (record_ && contains(request.echo_ids, record_->id)) return true;
  if (!replaced_id_.empty() && contains(request.echo_ids, replaced_id_)) return true;
  if (!seldom_) return false;
  return std::any_of(request.abort_echo_ids.begin(), request.abort_echo_ids.end(),
                     [&](const std::string& id) { return contains(seldom_->past_ids, id); });
}

std::string Coordinator::PastStopId() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return seldom_ && !seldom_->past_ids.empty() ? seldom_->past_ids.back() : std::string();
}

bool Coordinator::IsReported(const StopRequest& request) const {
  const auto& ids = request.echo_ids;
  return reported_.error &&
         std::find(ids.begin(), ids.end(), reported_.error->fields().id) != ids.end();
}

std::uint64_t Coordinator::generation() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return generation_;
}

bool Coordinator::WaitForStop(std::uint64_t generation, const Deadline& deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  PrepareRecord();
  ++waiters_;
  const bool stopped = deadline.Wait(
      stop_changed_, lock, [&] { return record_ != nullptr || generation_ != generation; });
  --waiters_;
  if (stopped) NoteSeenByThisThread();
  return stopped;
}

Status Coordinator::ClearStop() {
  constexpr std::size_t kMaxPastIds = 64;
  Effects effects(*this);
  std::unique_lock<std::mutex> parent_lock;
  if (parent_) {
    parent_lock = std::unique_lock<std::mutex>(parent_->mutex_);
    // A stopped parent has only stopped children (invariant 3).
    if (parent_->record_) return Status::kFailedPrecondition;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!clearable_) return Status::kFailedPrecondition;
  for (const auto& observer : observers_) {
    if (observer->interested_) effects.on_clear.push_back(observer);
  }
  if (record_) {
    NoteStop(TimelineType::kStopCleared, Clock::now());
    std::list<std::string>& past_ids = MakeSeldom().past_ids;
    past_ids.push_back(record_->id);
    if (!replaced_id_.empty()) past_ids.push_back(replaced_id_);
    while (past_ids.size() > kMaxPastIds) past_ids.pop_front();
  }
  joined_ = false;
  record_ = nullptr;
  replaced_id_.clear();
  reported_ = {};
  suppressed_.clear();
  suppressed_count_ = 0;
  first_later_ = nullptr;
  ALLSTOP_FAULT_POINT(kRecordCleared);
  stop_word_.store(0, std::memory_order_release);
  UpdateMirrors();
  return Status::kOk;
}

bool Coordinator::joined() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return joined_;
}

StopView Coordinator::View() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {record_, reported_, suppressed_, suppressed_count_, first_later_};
}

std::shared_ptr<StopCallback> Coordinator::OnStop(StopCallback::Function function, void* context) {
  auto callback = std::make_shared<StopCallback>(function, context);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!record_) {
      callback->place_ = callbacks_.insert(callbacks_.end(), callback);
      callback->is_listed_ = true;
      return callback;
    }
  }
  callback->Run();
  return nullptr;
}

void Coordinator::RemoveStopCallback(StopCallback& callback) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (callback.phase_ == StopCallback::Phase::kWaiting) {
    // A stop that has taken the callback already does not run it when it is kDone.
    callback.phase_ = StopCallback::Phase::kDone;
    if (std::exchange(callback.is_listed_, false)) callbacks_.erase(callback.place_);
    return;
  }
  // A callback that removes itself would wait for its own end.
  if (callback.runner_ == std::this_thread::get_id()) return;
  callback_done_.wait(lock, [&] { return callback.phase_ == StopCallback::Phase::kDone; });
}

void Coordinator::AddObserver(std::shared_ptr<Observer> observer, Mirror* mirror) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Observer& added = *observer;
  if (mirror) mirrors_.push_back(&added);
  try {
    observers_.push_back(std::move(observer));
  } catch (...) {
    if (mirror) mirrors_.pop_back();
    throw;
  }
  added.place_ = observers_.size() - 1;
  added.mirror_ = mirror;
  if (!mirror) return;
  added.mirror_place_ = mirrors_.size() - 1;
  Update(*mirror);
}

bool Coordinator::IsShared() const {
  if (IsRetained()) return true;
  const std::lock_guard<std::mutex> lock(mutex_);
  return mirrors_.size() > 1;  // each attachment has one
}

void Coordinator::UpdateMirrors() const {
  for (const Observer* observer : mirrors_) {
    Update(*observer->mirror_);
    ALLSTOP_FAULT_POINT(kMirrorWritten);
  }
}

void Coordinator::Update(Mirror& mirror) const {
  mirror.generation.store(static_cast<std::int32_t>(generation_), std::memory_order_relaxed);
  mirror.stopped.store(record_ ? 1 : 0, std::memory_order_release);
}

void Coordinator::RemoveObserver(Observer& observer) {
  std::shared_ptr<Observer> removed;  // destroyed after the lock is released
  const std::lock_guard<std::mutex> lock(mutex_);
  if (observer.place_ == Observer::kNowhere) return;
  // The last observer moves to the place of the removed one, so that a removal takes constant
  // time.
  const std::size_t place = std::exchange(observer.place_, Observer::kNowhere);
  removed = std::move(observers_[place]);
  if (place + 1 != observers_.size()) {
    observers_[place] = std::move(observers_.back());
    observers_[place]->place_ = place;
  }
  observers_.pop_back();
  if (observer.mirror_) {
    const std::size_t mirror_place = std::exchange(observer.mirror_place_, Observer::kNowhere);
    mirrors_[mirror_place] = mirrors_.back();
    mirrors_[mirror_place]->mirror_place_ = mirror_place;
    mirrors_.pop_back();
    observer.mirror_place_ = Observer::kNowhere;
  }
  observer.mirror_ = nullptr;
  observer.interested_ = false;
  if (std::exchange(observer.watches_events_, false)) UpdateEventsWatched();
}

std::uint64_t Coordinator::SetInterested(Observer& observer, bool interested) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // A child is nearly always stopped with a record that is made of its parent's.
  if (interested && !parent_) PrepareRecord();
  if (interested != observer.interested_) observer.unseen_ = nullptr;
  observer.interested_ = interested;
  return generation_;
}

std::shared_ptr<const StopRecord> Coordinator::TakeUnseen(Observer& observer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(observer.unseen_, nullptr);
}

Coordinator::Seldom& Coordinator::MakeSeldom() {
  if (!seldom_) seldom_ = std::make_unique<Seldom>();
  return *seldom_;
}

std::uint64_t Coordinator::AddLink(std::string description) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Seldom& seldom = MakeSeldom();
  seldom.links.emplace(seldom.next_link, std::move(description));
  return seldom.next_link++;
}

void Coordinator::RemoveLink(std::uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (seldom_) seldom_->links.erase(id);
}

std::vector<std::string> Coordinator::Links() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> descriptions;
  if (!seldom_) return descriptions;
  for (const auto& [id, description] : seldom_->links) descriptions.push_back(description);
  return descriptions;
}

}  // namespace allstop::core
