#include "native_attachment.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../core/busy_workers.h"
#include "../core/exit_timer.h"
#include "../core/fault_point.h"
#include "../core/identity.h"
#include "../core/registry.h"
#include "../core/stop_timer.h"
#include "convert.h"
#include "ringer.h"
#include "signals.h"
#include "word_mirror.h"

namespace allstop::binding {
namespace {

// What V8 is told that an attachment takes. One takes 1 KB here and 4 KB of V8's own heap; but its
// Coordinator, then its AbortSignal, then the attachment go in one collection each, and while they
// wait V8 lets the heap grow. The number says how often V8 collects the whole heap, whose cost
// grows with what lives there: of a server that makes 180,000 children in turn a child takes,
// beside 300 MB that live, 80 us with 4 KiB, 84 with 8 and 118 with 16; beside nothing 61, 50 and
// 45, in 280, 139 and 98 MB (Node 20).
constexpr std::int64_t kWeight = 8 * 1024;

}  // namespace

template <Napi::Value (NativeAttachment::*method)(const Napi::CallbackInfo&)>
Napi::Value NativeAttachment::Checked(const Info& info) {
  // The doorbell does not ring for changes that this call makes: its JavaScript takes the dirty
  // tokens right after the call.
  const Doorbell::Quiet quiet(*environment_->doorbell());
  return ExceptionsToJs(info.Env(), [&] { return (this->*method)(info); });
}

Napi::Function NativeAttachment::Class(Napi::Env env, Environment& environment) {
#define ALLSTOP_METHOD(name, method) \
  InstanceMethod<&NativeAttachment::Checked<&NativeAttachment::method>>(name)
  return DefineClass(
      env, "NativeAttachment",
      {
          ALLSTOP_METHOD("requestStop", RequestStop),
          ALLSTOP_METHOD("forbidClear", ForbidClear),
          ALLSTOP_METHOD("isClearable", IsClearable),
          ALLSTOP_METHOD("awaitAnswer", AwaitAnswer),
          ALLSTOP_METHOD("answerStop", AnswerStop),
          ALLSTOP_METHOD("answerNone", AnswerNone),
          ALLSTOP_METHOD("clearStop", ClearStop),
          ALLSTOP_METHOD("waitSlice", WaitSlice),
          ALLSTOP_METHOD("generation", Generation),
          ALLSTOP_METHOD("setInterested", SetInterested),
          ALLSTOP_METHOD("takeUnseen", TakeUnseen),
          ALLSTOP_METHOD("pastStopId", PastStopId),
          ALLSTOP_METHOD("stop", Stop),
          ALLSTOP_METHOD("record", Record),
          ALLSTOP_METHOD("suppressed", Suppressed),
          ALLSTOP_METHOD("suppressedCount", SuppressedCount),
          ALLSTOP_METHOD("reported", Reported),
          ALLSTOP_METHOD("status", Status),
          ALLSTOP_METHOD("firstError", FirstError),
          ALLSTOP_METHOD("joined", Joined),
          ALLSTOP_METHOD("cleanStopTypes", CleanStopTypes),
          ALLSTOP_METHOD("registerThread", RegisterThread),
          ALLSTOP_METHOD("startThread", StartThread),
          ALLSTOP_METHOD("readmitThread", ReadmitThread),
          ALLSTOP_METHOD("endThread", EndThread),
          ALLSTOP_METHOD("takeStopOfHook", TakeStopOfHook),
          ALLSTOP_METHOD("endHook", EndHook),
          ALLSTOP_METHOD("report", Report),
          ALLSTOP_METHOD("threads", Threads),
          ALLSTOP_METHOD("leftBehindThreads", LeftBehindThreads),
          ALLSTOP_METHOD("endedThreads", EndedThreads),
          ALLSTOP_METHOD("noteSeen", NoteSeen),
          ALLSTOP_METHOD("timeline", Timeline),
          ALLSTOP_METHOD("watchEvents", WatchEvents),
          ALLSTOP_METHOD("wouldJoinItself", WouldJoinItself),
          ALLSTOP_METHOD("beginJoin", BeginJoin),
          ALLSTOP_METHOD("joinRemainingMs", JoinRemainingMs),
          ALLSTOP_METHOD("joinHasEnded", JoinHasEnded),
          ALLSTOP_METHOD("finishJoin", FinishJoin),
          ALLSTOP_METHOD("abandonJoin", AbandonJoin),
          ALLSTOP_METHOD("child", Child),
          ALLSTOP_METHOD("hasOtherOwners", HasOtherOwners),
          ALLSTOP_METHOD("isShared", IsShared),
          ALLSTOP_METHOD("publish", Publish),
          ALLSTOP_METHOD("unpublish", Unpublish),
          ALLSTOP_METHOD("addLink", AddLink),
          ALLSTOP_METHOD("removeLink", RemoveLink),
          ALLSTOP_METHOD("links", Links),
          ALLSTOP_METHOD("stopAfter", StopAfter),
          ALLSTOP_METHOD("cancelStopAfter", CancelStopAfter),
          ALLSTOP_METHOD("exitAfterStop", ExitAfterStop),
          ALLSTOP_METHOD("cancelExitAfterStop", CancelExitAfterStop),
          ALLSTOP_METHOD("setBusyWorkers", SetBusyWorkers),
          ALLSTOP_METHOD("mirror", Mirror),
          ALLSTOP_METHOD("endMirror", EndMirror),
          ALLSTOP_METHOD("linkSignals", LinkSignals),
          ALLSTOP_METHOD("unlinkSignals", UnlinkSignals),
          ALLSTOP_METHOD("bindCapsule", BindCapsule),
          ALLSTOP_METHOD("bindSignal", BindSignal),
          InstanceAccessor<&NativeAttachment::Words>("words"),
          InstanceAccessor<&NativeAttachment::WordIndex>("wordIndex"),
          InstanceAccessor<&NativeAttachment::Token>("token"),
          InstanceAccessor<&NativeAttachment::Id>("id"),
          InstanceAccessor<&NativeAttachment::Name>("name"),
          InstanceAccessor<&NativeAttachment::StopGracePeriodMs>("stopGracePeriodMs"),
      },
      &environment);
#undef ALLSTOP_METHOD
}

Napi::Value NativeAttachment::Make(Environment& environment,
                                   std::shared_ptr<core::Coordinator> coordinator) {
  return Environment::Construct(environment.attachment_class, environment.to_attach,
                                std::move(coordinator));
}

NativeAttachment::NativeAttachment(const Info& info)
    : Napi::ObjectWrap<NativeAttachment>(info),
      environment_(Environment::Of(info)),
      coordinator_(std::exchange(environment_->to_attach, nullptr)) {
  if (!coordinator_) {
    throw Napi::TypeError::New(info.Env(), "allstop: illegal constructor of NativeAttachment");
  }
  mirror_word_ = environment_->AcquireMirror(info.Env());
  token_ = environment_->Add(*this);
  try {
    observer_ = std::make_shared<Ringer>(environment_->doorbell(), token_);
    coordinator_->AddObserver(observer_, mirror_word_.mirror);
  } catch (...) {  // undone here: the destructor of this object will not run
    environment_->Remove(token_);
    environment_->ReleaseMirror(mirror_word_);
    throw;
  }
  Napi::MemoryManagement::AdjustExternalMemory(info.Env(), kWeight);
}

Napi::Value NativeAttachment::Words(const Info&) { return environment_->SlabOf(mirror_word_); }

Napi::Value NativeAttachment::WordIndex(const Info& info) {
  return Napi::Number::New(info.Env(), mirror_word_.index);
}

Napi::Value NativeAttachment::Token(const Info& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(token_));
}

Napi::Value NativeAttachment::Id(const Info& info) {
  return Napi::String::New(info.Env(), std::to_string(coordinator_->id()));
}

Napi::Value NativeAttachment::Name(const Info& info) {
  return Napi::String::New(info.Env(), coordinator_->name());
}

Napi::Value NativeAttachment::StopGracePeriodMs(const Info& info) {
  return Napi::Number::New(info.Env(), coordinator_->options().stop_grace_period_ms);
}

NativeAttachment::~NativeAttachment() {
  if (!observer_) return;
  environment_->Remove(token_);
  Detach();
}

void NativeAttachment::Close() {
  if (observer_) Detach();
}

void NativeAttachment::Detach() {
  Napi::MemoryManagement::AdjustExternalMemory(Env(), -kWeight);
  ALLSTOP_FAULT_POINT(kDetach);
  coordinator_->RemoveObserver(*observer_);
  // After RemoveObserver: until then the core writes the mirror.
  environment_->ReleaseMirror(mirror_word_);
  observer_ = nullptr;
  ALLSTOP_FAULT_POINT(kDetached);
  core::BusyWorkers::Get().Remove(this);
  for (const auto& [id, join] : joins_) coordinator_->AbandonJoin(*join);
  for (const std::uint64_t link : links_) coordinator_->RemoveLink(link);
  for (const std::uint64_t link : signals_) binding::UnlinkSignals(link, false);
  for (const auto& [id, mirror] : mirrors_) {
    coordinator_->RemoveObserver(*mirror);
    mirror->End();
  }
}

Napi::Value NativeAttachment::RequestStop(const Info& info) {
  core::StopRequest request;
  request.error = ErrorArgument(info, 0);
  const Napi::Object requester = ObjectArgument(info, 1);
  request.requester.language = core::Language::kJavaScript;
  request.requester.thread_name = environment_->thread_name;
  request.requester.thread_id = environment_->thread_id();
  // Not by `locate`: another process is told of the stop while a slow `locate` still runs.
  request.describe = [&](core::Requester& known) {
    known.pid = core::ProcessId();
    ReadRequester(requester, known);
  };
  request.locate = [&](core::Requester& located) {
    if (!requester.HasOwnProperty("stack")) return;
    const Napi::Value stack = requester.Get("stack");
    if (!stack.IsFunction()) return;
    const Napi::Value text = stack.As<Napi::Function>().Call({});
    if (text.IsString()) located.stack = text.As<Napi::String>().Utf8Value();
  };
  request.echo_ids = StringsArgument(info, 2);
  request.abort_echo_ids = StringsArgument(info, 3);
  request.has_caller = BooleanArgument(info, 4);
  request.is_thrown = BooleanArgument(info, 5);
  if (info[6].IsString()) request.record_id = StringArgument(info, 6);
  const auto outcome = coordinator_->RequestStop(request);
  return Napi::Number::New(info.Env(), static_cast<double>(outcome));
}

Napi::Value NativeAttachment::ForbidClear(const Info& info) {
  coordinator_->ForbidClear();
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::IsClearable(const Info& info) {
  return Napi::Boolean::New(info.Env(), coordinator_->IsClearable());
}

Napi::Value NativeAttachment::AwaitAnswer(const Info& info) {
  coordinator_->AwaitAnswer();
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::AnswerStop(const Info& info) {
  core::StopRequest request;
  request.error = ErrorArgument(info, 0);
  request.requester.language = core::Language::kJavaScript;
  ReadRequester(ObjectArgument(info, 1), request.requester);
  request.record_id = StringArgument(info, 2);
  request.has_caller = false;
  coordinator_->AnswerStop(request);
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::AnswerNone(const Info& info) {
  coordinator_->AnswerNone();
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::ClearStop(const Info& info) {
  return Napi::Boolean::New(info.Env(), coordinator_->ClearStop() == core::Status::kOk);
}

Napi::Value NativeAttachment::WaitSlice(const Info& info) {
  const std::uint64_t generation = IdArgument(info, 0);
  const auto deadline = core::Deadline::After(NumberArgument(info, 1));
  return Napi::Boolean::New(info.Env(), coordinator_->WaitForStop(generation, deadline));
}

Napi::Value NativeAttachment::Generation(const Info& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(coordinator_->generation()));
}

Napi::Value NativeAttachment::SetInterested(const Info& info) {
  const bool interested = BooleanArgument(info, 0);
  if (!observer_) return info.Env().Undefined();
  const std::uint64_t generation = coordinator_->SetInterested(*observer_, interested);
  return Napi::Number::New(info.Env(), static_cast<double>(generation));
}

Napi::Value NativeAttachment::TakeUnseen(const Info& info) {
  if (!observer_) return info.Env().Null();
  const auto record = coordinator_->TakeUnseen(*observer_);
  return record ? ToJsStop(info.Env(), *record) : info.Env().Null();
}

Napi::Value NativeAttachment::PastStopId(const Info& info) {
  return Napi::String::New(info.Env(), coordinator_->PastStopId());
}

Napi::Value NativeAttachment::Stop(const Info& info) {
  const auto record = coordinator_->View().record;
  return record ? ToJsStop(info.Env(), *record) : info.Env().Null();
}

Napi::Value NativeAttachment::Record(const Info& info) {
  const auto record = coordinator_->View().record;
  return record ? ToJs(info.Env(), *record) : info.Env().Null();
}

Napi::Value NativeAttachment::Suppressed(const Info& info) {
  return ToJsArray(info.Env(), coordinator_->View().suppressed);
}

Napi::Value NativeAttachment::SuppressedCount(const Info& info) {
  return Napi::Number::New(info.Env(), coordinator_->View().suppressed_count);
}

Napi::Value NativeAttachment::Reported(const Info& info) {
  const core::SuppressedError reported = coordinator_->View().reported;
  return reported.error ? ToJs(info.Env(), reported) : info.Env().Null();
}

Napi::Value NativeAttachment::Status(const Info& info) {
  const core::StopView view = coordinator_->View();
  return ErrorBytes(info.Env(), core::FirstError(view.record.get(), view.reported));
}

Napi::Value NativeAttachment::FirstError(const Info& info) {
  const core::StopView view = coordinator_->View();
  const auto error = core::FirstError(view.record.get(), view.reported);
  return ErrorBytes(info.Env(), error ? error : view.first_later);
}

Napi::Value NativeAttachment::Joined(const Info& info) {
  return Napi::Boolean::New(info.Env(), coordinator_->joined());
}

Napi::Value NativeAttachment::CleanStopTypes(const Info& info) {
  const auto& types = coordinator_->options().clean_stop_types;
  Napi::Array array = Napi::Array::New(info.Env(), types.size());
  for (std::uint32_t i = 0; i < types.size(); ++i) array.Set(i, types[i]);
  return array;
}

Napi::Value NativeAttachment::RegisterThread(const Info& info) {
  core::NewThread thread;
  const std::uint64_t kind = IdArgument(info, 0);
  if (kind > static_cast<std::uint64_t>(core::ThreadKind::kCustom)) {
    throw Napi::TypeError::New(info.Env(), InternalError("unknown kind of thread"));
  }
  thread.kind = static_cast<core::ThreadKind>(kind);
  thread.name = StringArgument(info, 1);
  if (info[2].IsNumber()) {
    thread.has_thread_id = true;
    thread.thread_id = IdArgument(info, 2);
  }
  thread.started = BooleanArgument(info, 3);
  if (info[4].IsBoolean()) {
    thread.daemon = BooleanArgument(info, 4) ? core::Daemon::kYes : core::Daemon::kNo;
  }
  thread.owner = environment_->id();
  environment_->Watch(coordinator_);
  const std::uint64_t id = coordinator_->RegisterThread(std::move(thread));
  return Napi::Number::New(info.Env(), static_cast<double>(id));
}

Napi::Value NativeAttachment::StartThread(const Info& info) {
  std::optional<std::uint64_t> worker_thread_id;
  if (info[1].IsNumber()) worker_thread_id = IdArgument(info, 1);
  const bool started = coordinator_->StartThread(IdArgument(info, 0), worker_thread_id);
  return Napi::Boolean::New(info.Env(), started);
}

Napi::Value NativeAttachment::ReadmitThread(const Info& info) {
  return Napi::Boolean::New(info.Env(), coordinator_->ReadmitThread(IdArgument(info, 0)));
}

Napi::Value NativeAttachment::EndThread(const Info& info) {
  coordinator_->EndThread(IdArgument(info, 0));
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::TakeStopOfHook(const Info& info) {
  const auto record = coordinator_->TakeStopOfHook(IdArgument(info, 0));
  return record ? ToJs(info.Env(), *record) : info.Env().Null();
}

Napi::Value NativeAttachment::EndHook(const Info& info) {
  return Napi::Boolean::New(info.Env(), coordinator_->EndHook(IdArgument(info, 0)));
}

Napi::Value NativeAttachment::Report(const Info& info) {
  core::StopRequest request;
  request.error = ErrorArgument(info, 0);
  request.requester = environment_->ThisThread(core::Via::kHook);
  ReadRequester(ObjectArgument(info, 1), request.requester);
  request.echo_ids = StringsArgument(info, 2);
  request.abort_echo_ids = StringsArgument(info, 3);
  request.is_thrown = BooleanArgument(info, 4);
  // A hook may throw what it was given, by the join of another coordinator for example.
  if (info[5].IsNumber()) request.given_before = IdArgument(info, 5);
  const auto outcome = coordinator_->Report(request);
  return Napi::Number::New(info.Env(), static_cast<double>(outcome));
}

Napi::Value NativeAttachment::Threads(const Info& info) {
  return ToJsArray(info.Env(), coordinator_->LiveThreads());
}

Napi::Value NativeAttachment::LeftBehindThreads(const Info& info) {
  return ToJsArray(info.Env(), coordinator_->LeftBehindThreads());
}

Napi::Value NativeAttachment::EndedThreads(const Info& info) {
  return ToJsArray(info.Env(), coordinator_->EndedThreads());
}

Napi::Value NativeAttachment::NoteSeen(const Info& info) {
  coordinator_->NoteSeen(environment_->id(), environment_->thread_id(), environment_->is_worker(),
                         environment_->thread_name);
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::Timeline(const Info& info) {
  const std::uint64_t since = info[0].IsNumber() ? IdArgument(info, 0) : 0;
  return ToJs(info.Env(), coordinator_->TimelineSoFar(since));
}

Napi::Value NativeAttachment::WatchEvents(const Info& info) {
  const bool watches = BooleanArgument(info, 0);
  if (!observer_) return Napi::Number::New(info.Env(), 0);
  const std::uint64_t count = coordinator_->WatchEvents(*observer_, watches);
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

core::JoinCaller NativeAttachment::Caller(const Napi::Value& tasks) const {
  core::JoinCaller caller;
  caller.is_worker = environment_->is_worker();
  caller.worker_thread_id = environment_->thread_id();
  const auto ids = tasks.As<Napi::Array>();
  for (std::uint32_t i = 0; i < ids.Length(); ++i) {
    const auto id = ids.Get(i).As<Napi::Number>().Int64Value();
    caller.tasks.push_back(static_cast<std::uint64_t>(id));
  }
  return caller;
}

Napi::Value NativeAttachment::WouldJoinItself(const Info& info) {
  return Napi::Boolean::New(info.Env(), coordinator_->WouldJoinItself(Caller(info[0])));
}

Napi::Value NativeAttachment::BeginJoin(const Info& info) {
  const bool waits_for_daemons = !info[1].IsBoolean() || BooleanArgument(info, 1);
  auto join = coordinator_->BeginJoin(Caller(info[0]), observer_, waits_for_daemons);
  if (!join) return info.Env().Null();
  joins_.emplace(next_join_, std::move(join));
  return Napi::Number::New(info.Env(), next_join_++);
}

Napi::Value NativeAttachment::JoinRemainingMs(const Info& info) {
  const auto found = joins_.find(static_cast<std::uint32_t>(IdArgument(info, 0)));
  if (found == joins_.end()) return Napi::Number::New(info.Env(), 0);
  const double remaining = coordinator_->JoinRemainingMs(*found->second, NumberArgument(info, 1));
  return Napi::Number::New(info.Env(), remaining);
}

Napi::Value NativeAttachment::JoinHasEnded(const Info& info) {
  const auto found = joins_.find(static_cast<std::uint32_t>(IdArgument(info, 0)));
  const bool ended = found == joins_.end() || coordinator_->JoinHasEnded(*found->second);
  return Napi::Boolean::New(info.Env(), ended);
}

Napi::Value NativeAttachment::FinishJoin(const Info& info) {
  const auto found = joins_.find(static_cast<std::uint32_t>(IdArgument(info, 0)));
  if (found == joins_.end()) return info.Env().Null();
  ALLSTOP_FAULT_POINT(kFinishJoin);
  const core::JoinResult result = coordinator_->FinishJoin(*found->second, NumberArgument(info, 1));
  if (!result.is_over) return info.Env().Null();
  joins_.erase(found);
  Napi::Object object = Napi::Object::New(info.Env());
  Define(object, "stop", result.stop ? ToJsStop(info.Env(), *result.stop) : info.Env().Null());
  Define(object, "error", ErrorBytes(info.Env(), result.error));
  Define(object, "stragglers", ToJsArray(info.Env(), result.stragglers));
  return object;
}

Napi::Value NativeAttachment::AbandonJoin(const Info& info) {
  const auto found = joins_.find(static_cast<std::uint32_t>(IdArgument(info, 0)));
  if (found != joins_.end()) {
    coordinator_->AbandonJoin(*found->second);
    joins_.erase(found);
  }
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::Child(const Info& info) {
  core::Coordinator::Options options;
  options.name = StringArgument(info, 0);
  options.clean_stop_types = StringsArgument(info, 1);
  options.stop_grace_period_ms = NumberArgument(info, 2);
  auto child = coordinator_->CreateChild(std::move(options));
  if (!child) return info.Env().Null();
  return Make(*environment_, std::move(child));
}

Napi::Value NativeAttachment::HasOtherOwners(const Info& info) {
  // One reference is this object's, or, for a parent, its child's. Any further reference may
  // belong to code that can stop the coordinator. A reference that cannot is counted, too: true
  // is the safe answer. The capsules of this object's own signals share one reference, which
  // does not count: it would keep each dropped coordinator whose signal has a listener.
  bool others = coordinator_.use_count() > (signal_share_.expired() ? 1 : 2);
  for (const auto* parent = &coordinator_->parent(); *parent && !others;
       parent = &(*parent)->parent()) {
    others = parent->use_count() > 1;
  }
  return Napi::Boolean::New(info.Env(), others);
}

Napi::Value NativeAttachment::IsShared(const Info& info) {
  const bool is_published = environment_->HasPublished(coordinator_->id());
  return Napi::Boolean::New(info.Env(), is_published || coordinator_->IsShared());
}

Napi::Value NativeAttachment::Publish(const Info& info) {
  environment_->Publish(coordinator_);
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::Unpublish(const Info& info) {
  environment_->Unpublish(coordinator_->id());
  core::Registry<core::Coordinator>::Get().Remove(coordinator_->id());
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::AddLink(const Info& info) {
  const std::uint64_t link = coordinator_->AddLink(StringArgument(info, 0));
  links_.insert(link);
  return Napi::Number::New(info.Env(), static_cast<double>(link));
}

Napi::Value NativeAttachment::RemoveLink(const Info& info) {
  const std::uint64_t link = IdArgument(info, 0);
  if (links_.erase(link) != 0) coordinator_->RemoveLink(link);
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::Links(const Info& info) {
  const auto links = coordinator_->Links();
  Napi::Array array = Napi::Array::New(info.Env(), links.size());
  for (std::uint32_t i = 0; i < links.size(); ++i) array.Set(i, links[i]);
  return array;
}

Napi::Value NativeAttachment::StopAfter(const Info& info) {
  core::StopRequest request;
  request.requester = environment_->ThisThread(core::Via::kTimeout);
  const auto deadline = core::Deadline::After(NumberArgument(info, 0));
  request.error = ErrorArgument(info, 1);
  request.requester.stack = StringArgument(info, 2);
  request.has_caller = false;
  // The timer belongs to the coordinator: it stays when this object and its thread are gone.
  const std::uint64_t timer =
      core::ScheduleStop(coordinator_, deadline, std::move(request), StringArgument(info, 3));
  return Napi::Number::New(info.Env(), static_cast<double>(timer));
}

Napi::Value NativeAttachment::CancelStopAfter(const Info& info) {
  core::CancelScheduledStop(IdArgument(info, 0));
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::ExitAfterStop(const Info& info) {
  std::optional<int> exit_code;
  if (info[1].IsNumber()) exit_code = info[1].As<Napi::Number>().Int32Value();
  // As with StopAfter, the countdown stays when this object and its thread are gone.
  const std::uint64_t exit = core::ExitAfterStop(coordinator_, NumberArgument(info, 0), exit_code,
                                                 StringArgument(info, 2));
  return Napi::Number::New(info.Env(), static_cast<double>(exit));
}

Napi::Value NativeAttachment::SetBusyWorkers(const Info& info) {
  std::vector<std::string> texts = StringsArgument(info, 0);
  const auto numbers = info[1].As<Napi::Array>();
  std::vector<core::BusyWorker> workers;
  workers.reserve(texts.size());
  for (std::string& text : texts) {
    const auto at = static_cast<std::uint32_t>(2 * workers.size());
    const Napi::Value age_ms = numbers[at];
    const Napi::Value kernel_id = numbers[at + 1];
    const std::chrono::milliseconds age(age_ms.ToNumber().Int64Value());
    workers.push_back({std::move(text), core::Clock::now() - age,
                       static_cast<std::uint64_t>(kernel_id.ToNumber().Int64Value())});
  }
  core::BusyWorkers::Get().Set(this, std::move(workers));
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::CancelExitAfterStop(const Info& info) {
  core::CancelExitAfterStop(IdArgument(info, 0));
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::Mirror(const Info& info) {
  auto mirror = std::make_shared<WordMirror>(info[0], IdArgument(info, 1),
                                             info[2].As<Napi::Number>().Int32Value());
  coordinator_->AddObserver(mirror, nullptr);
  mirrors_.emplace(next_mirror_, mirror);
  coordinator_->SetInterested(*mirror, true);
  // A stop from before SetInterested has not been told to the mirror.
  if (coordinator_->ShouldStop()) mirror->OnStop();
  return Napi::Number::New(info.Env(), next_mirror_++);
}

Napi::Value NativeAttachment::EndMirror(const Info& info) {
  const auto found = mirrors_.find(static_cast<std::uint32_t>(IdArgument(info, 0)));
  if (found == mirrors_.end()) return info.Env().Undefined();
  coordinator_->RemoveObserver(*found->second);
  found->second->End();
  mirrors_.erase(found);
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::LinkSignals(const Info& info) {
  const auto names = StringsArgument(info, 0);
  const auto numbers = info[1].As<Napi::Array>();
  std::vector<std::pair<int, std::string>> signals;
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    signals.emplace_back(numbers.Get(i).As<Napi::Number>().Int32Value(), names[i]);
  }
  const std::uint64_t link =
      binding::LinkSignals(coordinator_, std::move(signals), StringArgument(info, 2));
  if (link != 0) signals_.insert(link);
  return Napi::Number::New(info.Env(), static_cast<double>(link));
}

Napi::Value NativeAttachment::UnlinkSignals(const Info& info) {
  const std::uint64_t link = IdArgument(info, 0);
  const bool ends_press = BooleanArgument(info, 1);
  if (signals_.erase(link) != 0) binding::UnlinkSignals(link, ends_press);
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::BindCapsule(const Info& info) {
  binding::BindCapsule(ObjectArgument(info, 0), ALLSTOP_CAPSULE_COORDINATOR, coordinator_);
  return info.Env().Undefined();
}

Napi::Value NativeAttachment::BindSignal(const Info& info) {
  auto share = signal_share_.lock();
  if (!share) {
    share = std::make_shared<std::shared_ptr<core::Coordinator>>(coordinator_);
    signal_share_ = share;
  }
  binding::BindCapsule(ObjectArgument(info, 0), ALLSTOP_CAPSULE_COORDINATOR,
                       std::shared_ptr<void>(share, coordinator_.get()));
  return info.Env().Undefined();
}

}  // namespace allstop::binding
