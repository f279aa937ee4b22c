#include "table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/errno_name.h"
#include "../core/identity.h"
#include "../core/interruption.h"
#include "../core/js_threads.h"
#include "../core/looper_thread.h"
#include "../core/made_once.h"
#include "../core/stop_timer.h"
#include "../core/unseen_errors.h"
#include "../include/allstop/allstop_pin_module.h"

// The layout is part of the ABI: within a major version none of these may change.
static_assert(sizeof(allstop_string) == 2 * sizeof(void*));
static_assert(offsetof(allstop_error, name) == 8);
static_assert(offsetof(allstop_error, id) == 8 + 5 * sizeof(allstop_string));
static_assert(offsetof(allstop_error, encoded) == offsetof(allstop_error, id) + 3 * sizeof(void*));
static_assert(sizeof(allstop_error) == offsetof(allstop_error, encoded) + sizeof(allstop_string));
static_assert(offsetof(allstop_options, name) == 8);
static_assert(sizeof(allstop_options) == 8 + 4 * sizeof(void*));
static_assert(offsetof(allstop_record_info, requested_at_ms) == 16);
static_assert(offsetof(allstop_record_info, id) == 32);
static_assert(sizeof(allstop_record_info) == 32 + 7 * sizeof(allstop_string));
static_assert(offsetof(allstop_table, retain) == 16);
static_assert(offsetof(allstop_table, create) == 16 + 15 * sizeof(void*));
static_assert(offsetof(allstop_table, looper_create) == 16 + 20 * sizeof(void*));
static_assert(offsetof(allstop_table, queue_create) == 16 + 23 * sizeof(void*));
static_assert(offsetof(allstop_table, request_stop2) == 16 + 31 * sizeof(void*));
static_assert(offsetof(allstop_table, queue_dequeue_least) == 16 + 32 * sizeof(void*));
static_assert(offsetof(allstop_table, stop_after) == 16 + 35 * sizeof(void*));
static_assert(offsetof(allstop_table, interruptible_enter) == 16 + 37 * sizeof(void*));
static_assert(offsetof(allstop_table, variable_retain) == 16 + 39 * sizeof(void*));
static_assert(offsetof(allstop_table, interruptible_is_effective) == 16 + 45 * sizeof(void*));
static_assert(offsetof(allstop_table, on_js_thread) == 16 + 46 * sizeof(void*));
static_assert(sizeof(allstop_table) == 16 + 47 * sizeof(void*));
static_assert(offsetof(allstop_capsule, table) == 16);
static_assert(ALLSTOP_MAX_CAUSES == allstop::core::EncodedError::kMaxCauses);
static_assert(ALLSTOP_MAX_SUPPRESSED == allstop::core::kMaxSuppressed);

// Other addons load the stop word with their compiler's own atomics.
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

namespace allstop::abi {
namespace {

using core::Coordinator;
using core::Status;

static_assert(ALLSTOP_CANCELLED == static_cast<allstop_status>(Status::kCancelled));
static_assert(ALLSTOP_INVALID_ARGUMENT == static_cast<allstop_status>(Status::kInvalidArgument));
static_assert(ALLSTOP_DEADLINE_EXCEEDED == static_cast<allstop_status>(Status::kDeadlineExceeded));
static_assert(ALLSTOP_RESOURCE_EXHAUSTED ==
              static_cast<allstop_status>(Status::kResourceExhausted));
static_assert(ALLSTOP_FAILED_PRECONDITION ==
              static_cast<allstop_status>(Status::kFailedPrecondition));
static_assert(ALLSTOP_OUT_OF_RANGE == static_cast<allstop_status>(Status::kOutOfRange));
static_assert(ALLSTOP_UNAVAILABLE == static_cast<allstop_status>(Status::kUnavailable));
static_assert(ALLSTOP_INVALID_HANDLE == static_cast<allstop_status>(Status::kInvalidHandle));
static_assert(ALLSTOP_SELF_JOIN == static_cast<allstop_status>(Status::kSelfJoin));
static_assert(ALLSTOP_STRAGGLERS == static_cast<allstop_status>(Status::kStragglers));
static_assert(ALLSTOP_STOPPED_BY_ERROR == static_cast<allstop_status>(Status::kStoppedByError));

static_assert(ALLSTOP_MISSED_TICKS_BURST == static_cast<std::uint32_t>(core::MissedTicks::kBurst));
static_assert(ALLSTOP_MISSED_TICKS_SKIP == static_cast<std::uint32_t>(core::MissedTicks::kSkip));
static_assert(ALLSTOP_MISSED_TICKS_DELAY == static_cast<std::uint32_t>(core::MissedTicks::kDelay));

allstop_status ToC(Status status) { return static_cast<allstop_status>(status); }

allstop_string View(const std::string& text) {
  return text.empty() ? allstop_string{nullptr, 0} : allstop_string{text.data(), text.size()};
}

// Null for an error that is not one of JavaScript, encoded.
std::shared_ptr<const core::EncodedError> DecodeWhole(const allstop_error& error) {
  return error.encoded.size > 0 ? core::EncodedError::Decode(ToString(error.encoded)) : nullptr;
}

core::ErrorFields ToFields(const allstop_error& given,
                           int max_causes = core::EncodedError::kMaxCauses) {
  const allstop_error error = Read(given);
  core::ErrorFields fields;
  fields.id = ToString(error.id);
  fields.name = ToString(error.name);
  fields.message = ToString(error.message);
  fields.code = ToString(error.code);
  fields.stack = ToString(error.stack);
  fields.native_type = ToString(error.native_type);
  // A number that is no int is no errno.
  if (error.error_number <= INT32_MAX) fields.error_number = error.error_number;
  if (fields.code.empty()) fields.code = core::ErrnoName(static_cast<int>(fields.error_number));
  if (error.cause != nullptr && error.cause->size >= kSmallestStruct && max_causes > 0) {
    fields.cause = DecodeWhole(Read(*error.cause));
    if (!fields.cause) {
      fields.cause = core::EncodedError::MakeCause(ToFields(*error.cause, max_causes - 1));
    }
  }
  core::EncodedError::Complete(fields);
  return fields;
}

// The error's own id is an echo id: an addon that reports an error again keeps the id, and that
// report is then an echo of the stop. An error of JavaScript says itself what it may echo.
void SetError(core::StopRequest& request, const allstop_error& given) {
  const allstop_error error = Read(given);
  request.error = DecodeWhole(error);
  if (!request.error) request.error = core::EncodedError::Encode(ToFields(error));
  const core::ErrorFields& fields = request.error->fields();
  request.echo_ids = fields.echo_ids;
  request.echo_ids.push_back(fields.id);
  request.abort_echo_ids = fields.abort_echo_ids;
}

int OnJsThread() { return core::JsThreads::IsCurrent() ? 1 : 0; }

// Describes the calling thread. The core calls the function when waiting threads are awake.
core::Describe Caller(const Coordinator& coordinator, core::Via via) {
  return
      [&coordinator, via](core::Requester& requester) { requester = coordinator.ThisThread(via); };
}

void Retain(allstop_state* state) { FromState(state).Retain(); }

void Release(allstop_state* state) { FromState(state).Release(); }

const std::uint32_t* StopWord(allstop_state* state) {
  return reinterpret_cast<const std::uint32_t*>(&FromState(state).stop_word());
}

allstop_status RequestStop2(allstop_state* state, const allstop_error* error, int* made) {
  *made = 0;
  if (error != nullptr && error->size < kSmallestStruct) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    core::StopRequest request;
    if (error != nullptr) SetError(request, *error);
    const auto via = error != nullptr ? core::Via::kException : core::Via::kCall;
    request.describe = Caller(FromState(state), via);
    const auto outcome = FromState(state).RequestStop(request);
    if (outcome == core::StopOutcome::kStopped) *made = 1;
    return outcome == core::StopOutcome::kRefused ? ALLSTOP_FAILED_PRECONDITION : ALLSTOP_OK;
  });
}

allstop_status RequestStop(allstop_state* state, const allstop_error* error) {
  int made = 0;
  return RequestStop2(state, error, &made);
}

allstop_status WaitForStop(allstop_state* state, double timeout_ms) {
  if (!(timeout_ms >= 0)) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    const auto deadline = core::Deadline::After(timeout_ms);
    return FromState(state).WaitForStop(deadline) ? ALLSTOP_OK : ALLSTOP_DEADLINE_EXCEEDED;
  });
}

allstop_status ClearStop(allstop_state* state) {
  return ExceptionsToStatus([&] { return ToC(FromState(state).ClearStop()); });
}

// An allstop_record. Its requester is read when it is made, since reading it may wait, and
// RecordInfo must not.
struct HeldRecord {
  std::shared_ptr<const core::StopRecord> record;
  core::Requester requester;
};

// A record of an error that did not stop the coordinator, described as if it had.
std::unique_ptr<HeldRecord> HoldError(std::shared_ptr<const core::EncodedError> error,
                                      core::Requester requester) {
  auto record = std::make_shared<core::StopRecord>();
  record->id = error->fields().id;
  record->kind = core::StopKind::kError;
  record->error = std::move(error);
  return std::make_unique<HeldRecord>(HeldRecord{std::move(record), std::move(requester)});
}

allstop_status StopRecord(allstop_state* state, allstop_record** record) {
  *record = nullptr;
  return ExceptionsToStatus([&] {
    const auto current = FromState(state).View().record;
    if (current) {
      auto held = std::make_unique<HeldRecord>(HeldRecord{current, current->requester()});
      *record = reinterpret_cast<allstop_record*>(held.release());
    }
    return ALLSTOP_OK;
  });
}

allstop_status RecordInfo(const allstop_record* opaque, allstop_record_info* info) {
  if (info->size < kSmallestStruct) return ALLSTOP_INVALID_ARGUMENT;
  const auto& [record, requester] = *reinterpret_cast<const HeldRecord*>(opaque);
  allstop_record_info full = {};
  full.size = info->size;
  full.kind = static_cast<std::int32_t>(record->kind);
  full.language =
      requester.language == core::Language::kNative ? ALLSTOP_LANGUAGE_NATIVE : ALLSTOP_LANGUAGE_JS;
  full.requested_at_ms = requester.at_ms;
  full.thread_id = requester.thread_id;
  full.id = View(record->id);
  full.thread_name = View(requester.thread_name);
  if (record->error) {
    const core::ErrorFields& fields = record->error->fields();
    core::UnseenErrors::Give(fields.id);
    full.name = View(fields.name);
    full.message = View(fields.message);
    full.code = View(fields.code);
    full.stack = View(fields.stack);
    full.native_type = View(fields.native_type);
  }
  std::memcpy(info, &full, std::min<std::size_t>(info->size, sizeof(full)));
  return ALLSTOP_OK;
}

void RecordRelease(allstop_record* record) { delete reinterpret_cast<HeldRecord*>(record); }

struct RegisteredThread {
  std::shared_ptr<Coordinator> coordinator;
  std::uint64_t id;
  // How to register the thread again when it enters: a join that ended before has forgotten it.
  // Null once it has entered, and from the beginning if it was registered as started: a join that
  // forgets it then has left it behind, and it stays so.
  std::unique_ptr<core::NewThread> unstarted;
};

RegisteredThread& FromThread(allstop_thread* thread) {
  return *reinterpret_cast<RegisteredThread*>(thread);
}

allstop_status ThreadRegister(allstop_state* state, allstop_string name, std::uint32_t flags,
                              allstop_thread** thread) {
  if ((flags & ~(ALLSTOP_THREAD_UNSTARTED | ALLSTOP_THREAD_LOOPER)) != 0) {
    return ALLSTOP_INVALID_ARGUMENT;
  }
  return ExceptionsToStatus([&] {
    core::NewThread registration;
    registration.name = ToString(name);
    const bool is_looper = (flags & ALLSTOP_THREAD_LOOPER) != 0;
    if (registration.name.empty()) registration.name = is_looper ? "looper" : "native";
    registration.kind = is_looper ? core::ThreadKind::kLooper : core::ThreadKind::kNative;
    registration.started = (flags & ALLSTOP_THREAD_UNSTARTED) == 0;
    auto registered = std::make_unique<RegisteredThread>();
    registered->coordinator = FromState(state).shared_from_this();
    if (!registration.started) {
      registered->unstarted = std::make_unique<core::NewThread>(registration);
      registered->unstarted->started = true;
    }
    registered->id = registered->coordinator->RegisterThread(std::move(registration));
    *thread = reinterpret_cast<allstop_thread*>(registered.release());
    return ALLSTOP_OK;
  });
}

allstop_status ThreadEnter(allstop_thread* thread) {
  return ExceptionsToStatus([&] {
    RegisteredThread& registered = FromThread(thread);
    if (!registered.coordinator->EnterThread(registered.id) && registered.unstarted) {
      registered.id = registered.coordinator->RegisterThread(*registered.unstarted);
      registered.unstarted.reset();  // before EnterThread, which may throw: it is registered
      registered.coordinator->EnterThread(registered.id);
    }
    registered.unstarted.reset();
    return ALLSTOP_OK;
  });
}

// The error of a thread that fails when there is no memory to describe its own error. Table()
// allocates it in advance.
const std::shared_ptr<const core::EncodedError>& OutOfMemory() {
  static core::MadeOnce<const std::shared_ptr<const core::EncodedError>> record;
  return record.Get([] {
    core::ErrorFields fields;
    fields.message = "A thread failed, and there was no memory to describe its error";
    fields.native_type = "std::bad_alloc";
    core::EncodedError::Complete(fields);
    return new const std::shared_ptr<const core::EncodedError>(
        core::EncodedError::Encode(std::move(fields)));
  });
}

// Stops the coordinator with the error of a thread. The thread has no caller to return a failure
// to, so when memory runs out it is OutOfMemory() that stops the coordinator.
allstop_status ReportWithoutCaller(Coordinator& coordinator, const allstop_error& error) {
  core::StopRequest request;
  request.has_caller = false;
  request.is_thrown = true;
  const auto report = [&](auto describe) {
    return ExceptionsToStatus([&] {
      describe();
      coordinator.RequestStop(request);
      return ALLSTOP_OK;
    });
  };
  const allstop_status status = report([&] {
    SetError(request, error);
    request.describe = Caller(coordinator, core::Via::kException);
  });
  if (status == ALLSTOP_OK) return status;
  return report([&] { request.error = OutOfMemory(); });
}

// Replaces an error whose `size` the caller has forgotten to set, so that the stop still has an
// error.
constexpr char kUnknownSize[] =
    "A thread failed, and its allstop_error has no valid size: set its field `size` to "
    "sizeof(allstop_error)";
constexpr allstop_error kErrorOfUnknownSize = {
    sizeof(allstop_error), 0, {}, {kUnknownSize, sizeof(kUnknownSize) - 1}, {}, {}, {}, {}, {}, {}};

void ThreadDone(allstop_thread* thread, const allstop_error* error) {
  const std::unique_ptr<RegisteredThread> registered(&FromThread(thread));
  Coordinator& coordinator = *registered->coordinator;
  if (error != nullptr) {
    const bool is_known = error->size >= kSmallestStruct;
    ReportWithoutCaller(coordinator, is_known ? *error : kErrorOfUnknownSize);
  }
  // After the report, so that a join which waits for this thread finds its error.
  ExceptionsToStatus([&] {
    coordinator.EndThread(registered->id);
    return ALLSTOP_OK;
  });
}

allstop_status Join(allstop_state* state, double grace_period_ms, std::uint32_t flags) {
  if (!(grace_period_ms >= 0) || (flags & ~ALLSTOP_JOIN_IGNORE_LIVE_THREADS) != 0) {
    return ALLSTOP_INVALID_ARGUMENT;
  }
  return ExceptionsToStatus([&] {
    const bool ignore = (flags & ALLSTOP_JOIN_IGNORE_LIVE_THREADS) != 0;
    return ToC(FromState(state).BlockingJoin(grace_period_ms, ignore));
  });
}

struct RegisteredCallback {
  std::shared_ptr<Coordinator> coordinator;
  std::shared_ptr<core::StopCallback> callback;  // null: it ran at once
};

allstop_status OnStop(allstop_state* state, allstop_stop_fn fn, void* context,
                      allstop_callback** callback) {
  if (fn == nullptr) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    auto registered = std::make_unique<RegisteredCallback>();
    registered->coordinator = FromState(state).shared_from_this();
    registered->callback = registered->coordinator->OnStop(fn, context);
    *callback = reinterpret_cast<allstop_callback*>(registered.release());
    return ALLSTOP_OK;
  });
}

void CallbackRelease(allstop_callback* callback) {
  const std::unique_ptr<RegisteredCallback> registered(
      reinterpret_cast<RegisteredCallback*>(callback));
  if (!registered || !registered->callback) return;
  registered->coordinator->RemoveStopCallback(*registered->callback);
}

// `defaults`, with the fields that `given` sets replaced.
Coordinator::Options ToOptions(const allstop_options* given, Coordinator::Options defaults) {
  if (given == nullptr) return defaults;
  const allstop_options options = Read(*given);
  if (options.name.data != nullptr) defaults.name = ToString(options.name);
  if (options.clean_stop_types != nullptr) {
    defaults.clean_stop_types.clear();
    for (std::size_t i = 0; i < options.clean_stop_type_count; ++i) {
      defaults.clean_stop_types.push_back(ToString(options.clean_stop_types[i]));
    }
  }
  return defaults;
}

bool IsKnown(const allstop_options* options) {
  return options == nullptr || options->size >= kSmallestStruct;
}

// A reference that the caller owns and releases by `release`.
allstop_state* Retained(Coordinator& coordinator) {
  coordinator.Retain();
  return ToState(&coordinator);
}

allstop_status Create(const allstop_options* options, allstop_state** state) {
  if (!IsKnown(options)) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    *state = Retained(*Coordinator::Create(ToOptions(options, {"native", {"OutOfRangeError"}})));
    return ALLSTOP_OK;
  });
}

allstop_status Child(allstop_state* state, const allstop_options* options,
                     allstop_state** child_state) {
  if (!IsKnown(options)) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    const auto child = FromState(state).CreateChild(ToOptions(options, FromState(state).options()));
    if (!child) return ALLSTOP_FAILED_PRECONDITION;
    *child_state = Retained(*child);
    return ALLSTOP_OK;
  });
}

allstop_status ReportError(allstop_state* state, const allstop_error* error) {
  if (error == nullptr || error->size < kSmallestStruct) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    core::StopRequest request;
    SetError(request, *error);
    request.describe = Caller(FromState(state), core::Via::kException);
    FromState(state).Report(request);
    return ALLSTOP_OK;
  });
}

allstop_status FirstError(allstop_state* state, allstop_record** record) {
  *record = nullptr;
  return ExceptionsToStatus([&] {
    const core::StopView view = FromState(state).View();
    const auto error = core::FirstError(view.record.get(), view.reported);
    if (!error) return ALLSTOP_OK;
    const bool is_of_stop = view.record && view.record->error == error;
    auto held =
        is_of_stop ? std::make_unique<HeldRecord>(HeldRecord{view.record, view.record->requester()})
                   : HoldError(error, view.reported.origin->Get());
    *record = reinterpret_cast<allstop_record*>(held.release());
    return ALLSTOP_OK;
  });
}

allstop_status SuppressedErrors(allstop_state* state, allstop_record** records,
                                std::size_t capacity, std::size_t* count) {
  *count = 0;
  return ExceptionsToStatus([&] {
    const core::StopView view = FromState(state).View();
    std::vector<std::unique_ptr<HeldRecord>> held;
    for (const auto& [error, origin] : view.suppressed) {
      if (held.size() < capacity) held.push_back(HoldError(error, origin->Get()));
    }
    for (auto& each : held) records[(*count)++] = reinterpret_cast<allstop_record*>(each.release());
    return ALLSTOP_OK;
  });
}

allstop_status RecordCause(const allstop_record* opaque, allstop_record** cause) {
  *cause = nullptr;
  return ExceptionsToStatus([&] {
    const auto& [record, requester] = *reinterpret_cast<const HeldRecord*>(opaque);
    if (record->error && record->error->fields().cause) {
      auto held = HoldError(record->error->fields().cause, requester);
      *cause = reinterpret_cast<allstop_record*>(held.release());
    }
    return ALLSTOP_OK;
  });
}

std::size_t NewId(char* buffer, std::size_t capacity) {
  std::size_t size = 0;
  ExceptionsToStatus([&] {
    const std::string id = core::NextIdentity();
    if (id.size() <= capacity) size = id.copy(buffer, capacity);
    return ALLSTOP_OK;
  });
  return size;
}

// An allstop_deadline.
struct ScheduledStop {
  std::uint64_t id;  // of core::ScheduleStop
};

allstop_status StopAfter(allstop_state* state, double timeout_ms, allstop_deadline** deadline) {
  *deadline = nullptr;
  if (!(timeout_ms >= 0)) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    const auto at = core::Deadline::After(timeout_ms);
    const auto coordinator = FromState(state).shared_from_this();
    std::array<char, 32> ms = {};
    std::snprintf(ms.data(), ms.size(), "%.15g", timeout_ms);
    core::ErrorFields fields;
    fields.name = "DeadlineExceededError";
    fields.message = "The deadline of the coordinator '" + coordinator->name() +
                     "' has passed: StopAfter(" + ms.data() + ")";
    core::EncodedError::Complete(fields);
    core::StopRequest request;
    request.error = core::EncodedError::Encode(std::move(fields));
    request.requester = coordinator->ThisThread(core::Via::kTimeout);
    request.has_caller = false;
    auto made = std::make_unique<ScheduledStop>();
    made->id = core::ScheduleStop(coordinator, at, std::move(request),
                                  std::string("a deadline of ") + ms.data() + " ms (StopAfter)");
    *deadline = reinterpret_cast<allstop_deadline*>(made.release());
    return ALLSTOP_OK;
  });
}

void DeadlineRelease(allstop_deadline* opaque) {
  const std::unique_ptr<ScheduledStop> deadline(reinterpret_cast<ScheduledStop*>(opaque));
  if (!deadline) return;
  ExceptionsToStatus([&] {
    core::CancelScheduledStop(deadline->id);
    return ALLSTOP_OK;
  });
}

allstop_status InterruptibleEnter(allstop_state* state, allstop_interruptible** guard) {
  *guard = nullptr;
  return ExceptionsToStatus([&] {
    auto* const begun = core::Interruption::Begin(FromState(state).shared_from_this());
    *guard = reinterpret_cast<allstop_interruptible*>(begun);
    return ALLSTOP_OK;
  });
}

void InterruptibleLeave(allstop_interruptible* guard) {
  core::Interruption::End(reinterpret_cast<core::Interruption*>(guard));
}

int InterruptibleIsEffective(const allstop_interruptible* guard) {
  return reinterpret_cast<const core::Interruption*>(guard)->IsEffective() ? 1 : 0;
}

core::LooperThread& FromLooper(allstop_looper* looper) {
  return *reinterpret_cast<core::LooperThread*>(looper);
}

allstop_status LooperCreate(allstop_state* state, double interval_ms, std::uint32_t missed_ticks,
                            allstop_looper** looper) {
  if (!(interval_ms >= 0) || missed_ticks > ALLSTOP_MISSED_TICKS_DELAY) {
    return ALLSTOP_INVALID_ARGUMENT;
  }
  return ExceptionsToStatus([&] {
    const core::LooperSchedule schedule(interval_ms, static_cast<core::MissedTicks>(missed_ticks));
    auto made = std::make_unique<core::LooperThread>(FromState(state).shared_from_this(), schedule);
    *looper = reinterpret_cast<allstop_looper*>(made.release());
    return ALLSTOP_OK;
  });
}

allstop_status LooperWait(allstop_looper* looper) {
  return ExceptionsToStatus(
      [&] { return FromLooper(looper).Wait() ? ALLSTOP_OK : ALLSTOP_CANCELLED; });
}

void LooperRelease(allstop_looper* looper) { delete reinterpret_cast<core::LooperThread*>(looper); }

}  // namespace

const allstop_table& Table() {
  OutOfMemory();
  static const allstop_table table = {
      sizeof(allstop_table),
      ALLSTOP_ABI_MAJOR,
      ALLSTOP_ABI_MINOR,
      0,
      Retain,
      Release,
      StopWord,
      RequestStop,
      WaitForStop,
      ClearStop,
      StopRecord,
      RecordInfo,
      RecordRelease,
      ThreadRegister,
      ThreadEnter,
      ThreadDone,
      Join,
      OnStop,
      CallbackRelease,
      Create,
      Child,
      ReportError,
      FirstError,
      NewId,
      LooperCreate,
      LooperWait,
      LooperRelease,
      QueueCreate,
      QueueRetain,
      QueueRelease,
      QueueEnqueue,
      QueueDequeue,
      QueueClose,
      QueueInfo,
      ItemCopy,
      RequestStop2,
      QueueDequeueLeast,
      SuppressedErrors,
      RecordCause,
      StopAfter,
      DeadlineRelease,
      InterruptibleEnter,
      InterruptibleLeave,
      VariableRetain,
      VariableRelease,
      VariableInfo,
      VariableRead,
      VariableAssign,
      VariableAssignAdd,
      InterruptibleIsEffective,
      OnJsThread,
  };
  return table;
}

}  // namespace allstop::abi

extern "C" const allstop_table* allstop_library_table(void) {
  // The flag saves system calls: in a program, which nobody unloads, each attempt to pin fails. It
  // is no static that the first call makes, for the reason that MadeOnce gives.
  static std::atomic<bool> is_pinned{false};
  if (!is_pinned.load(std::memory_order_acquire)) {
    allstop_pin_module();
    is_pinned.store(true, std::memory_order_release);
  }
  return &allstop::abi::Table();
}
