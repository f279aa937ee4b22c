// The addon's functions, except the methods of its classes.
// lib/native/binding.ts declares and documents them (interface NativeBinding).
#include <napi.h>

#include <memory>
#include <string>

#include "../abi/table.h"
#include "../core/exit_report.h"
#include "../core/identity.h"
#include "../core/js_threads.h"
#include "../core/registry.h"
#include "../core/standard_error.h"
#include "../core/unseen_errors.h"
#include "../include/allstop/allstop_node.h"
#include "convert.h"
#include "environment.h"
#include "fork_line.h"
#include "native_attachment.h"
#include "native_queue.h"
#include "native_variables.h"
#include "parent_watch.h"
#include "signals.h"
#include "spawned_workers.h"
#include "sqlite.h"

namespace allstop::binding {
namespace {

using Info = Napi::CallbackInfo;

template <Napi::Value (*function)(const Info&)>
Napi::Value Checked(const Info& info) {
  return ExceptionsToJs(info.Env(), [&] { return function(info); });
}

Napi::Value CreateCoordinator(const Info& info) {
  core::Coordinator::Options options;
  options.name = StringArgument(info, 0);
  options.clean_stop_types = StringsArgument(info, 1);
  options.stop_grace_period_ms = NumberArgument(info, 2);
  return NativeAttachment::Make(*Environment::Of(info),
                                core::Coordinator::Create(std::move(options)));
}

// awaitWritable(descriptor): in slices, as every wait of a JavaScript thread.
Napi::Value AwaitWritable(const Info& info) {
  constexpr int kSliceMs = 50;
  const auto descriptor = static_cast<int>(NumberArgument(info, 0));
  return Napi::Boolean::New(info.Env(), core::AwaitWritable(descriptor, kSliceMs));
}

Napi::Value HasCoordinator(const Info& info) {
  const bool found = core::Registry<core::Coordinator>::Get().Find(IdArgument(info, 0)) != nullptr;
  return Napi::Boolean::New(info.Env(), found);
}

Napi::Value AttachCoordinator(const Info& info) {
  const auto coordinator = core::Registry<core::Coordinator>::Get().Find(IdArgument(info, 0));
  return coordinator ? NativeAttachment::Make(*Environment::Of(info), coordinator)
                     : info.Env().Null();
}

// createQueue(name, capacity, codec, NativeAttachment of its coordinator or null)
Napi::Value CreateQueue(const Info& info) {
  core::BoundedQueue::Options options;
  options.name = StringArgument(info, 0);
  options.capacity = IdArgument(info, 1);
  const std::uint64_t codec = IdArgument(info, 2);
  if (options.capacity == 0 || codec > 1) {
    throw Napi::TypeError::New(info.Env(), InternalError("unknown capacity or codec of a queue"));
  }
  options.codec = static_cast<core::BoundedQueue::Codec>(codec);
  if (info[3].IsObject()) {
    options.coordinator = NativeAttachment::Unwrap(ObjectArgument(info, 3))->coordinator();
  }
  return NativeQueue::Make(*Environment::Of(info), core::BoundedQueue::Create(std::move(options)));
}

Napi::Value AttachQueue(const Info& info) {
  const auto queue = core::Registry<core::BoundedQueue>::Get().Find(IdArgument(info, 0));
  return queue ? NativeQueue::Make(*Environment::Of(info), queue) : info.Env().Null();
}

Napi::Value CreateVariables(const Info& info) {
  return NativeVariables::Make(*Environment::Of(info), core::Variables::Create());
}

Napi::Value AttachVariables(const Info& info) {
  auto variables = core::Registry<core::Variables>::Get().Find(IdArgument(info, 0));
  return variables ? NativeVariables::Make(*Environment::Of(info), std::move(variables))
                   : info.Env().Null();
}

// bindRemoteVariable(Variable whose value is in another process)
Napi::Value BindRemoteVariable(const Info& info) {
  BindCapsule(ObjectArgument(info, 0), ALLSTOP_CAPSULE_VARIABLE, nullptr);
  return info.Env().Undefined();
}

// queuesOf(NativeAttachment of a coordinator)
Napi::Value QueuesOf(const Info& info) {
  using Side = core::BoundedQueue::Side;
  const Napi::Env env = info.Env();
  const auto* const coordinator =
      NativeAttachment::Unwrap(ObjectArgument(info, 0))->coordinator().get();
  Napi::Array array = Napi::Array::New(env);
  std::uint32_t count = 0;
  const auto number = [&](std::uint64_t value) {
    return Napi::Number::New(env, static_cast<double>(value));
  };
  for (const auto& queue : core::Registry<core::BoundedQueue>::Get().All()) {
    const core::BoundedQueue::Options& options = queue->options();
    if (options.coordinator.get() != coordinator) continue;
    Napi::Object object = Napi::Object::New(env);
    Define(object, "id", number(queue->id()));
    Define(object, "name", Napi::String::New(env, options.name));
    Define(object, "size", number(queue->size()));
    Define(object, "capacity", number(options.capacity));
    Define(object, "producers", number(queue->waiting(Side::kProducers)));
    Define(object, "consumers", number(queue->waiting(Side::kConsumers)));
    array.Set(count++, object);
  }
  return array;
}

Napi::Value OsThreadIdOf(const Info& info) {
  const std::uint64_t id =
      core::JsThreads::Get().Find(static_cast<std::uint32_t>(IdArgument(info, 0)));
  return Napi::Number::New(info.Env(), static_cast<double>(id));
}

Napi::Value TakeDirty(const Info& info) {
  const auto tokens = Environment::Of(info)->doorbell()->TakeDirty();
  Napi::Array array = Napi::Array::New(info.Env(), tokens.size());
  std::uint32_t index = 0;
  for (const std::uint64_t token : tokens) array.Set(index++, static_cast<double>(token));
  return array;
}

Napi::Value SetDoorbellReferenced(const Info& info) {
  Environment::Of(info)->doorbell()->SetReferenced(info.Env(), BooleanArgument(info, 0));
  return info.Env().Undefined();
}

// Returns a ticket for EndSpawn.
Napi::Value BeginSpawn(const Info& info) {
  const auto environment = Environment::Of(info);
  const std::uint64_t ticket = SpawnedWorkers::Get().Begin(environment->thread_id());
  environment->spawn_tickets.insert(ticket);
  return Napi::Number::New(info.Env(), static_cast<double>(ticket));
}

Napi::Value SetSpawned(const Info& info) {
  const auto* attachment = NativeAttachment::Unwrap(ObjectArgument(info, 0));
  const auto thread_id = static_cast<std::uint32_t>(IdArgument(info, 1));
  SpawnedWorkers::Get().Add(thread_id, {attachment->coordinator(), StringArgument(info, 2)});
  Environment::Of(info)->spawned.insert(thread_id);
  return info.Env().Undefined();
}

Napi::Value EndSpawn(const Info& info) {
  const std::uint64_t ticket = IdArgument(info, 0);
  SpawnedWorkers::Get().End(ticket);
  Environment::Of(info)->spawn_tickets.erase(ticket);
  return info.Env().Undefined();
}

Napi::Value ForgetSpawned(const Info& info) {
  const auto thread_id = static_cast<std::uint32_t>(IdArgument(info, 0));
  SpawnedWorkers::Get().Remove(thread_id);
  Environment::Of(info)->spawned.erase(thread_id);
  return info.Env().Undefined();
}

Napi::Value CurrentCoordinator(const Info& info) {
  constexpr double kSliceMs = 50;
  const auto environment = Environment::Of(info);
  auto& workers = SpawnedWorkers::Get();
  if (environment->spawned_before == 0) environment->spawned_before = workers.NextTicket();
  auto found = workers.Find(environment->thread_id(), environment->spawned_before, kSliceMs);
  if (!found.is_known) return info.Env().Undefined();
  if (!found.spawned) return info.Env().Null();
  environment->thread_name = found.spawned->name;
  return NativeAttachment::Make(*environment, std::move(found.spawned->coordinator));
}

Napi::Value NoteUncaught(const Info& info) {
  SpawnedWorkers::Get().NoteUncaught(Environment::Of(info)->thread_id(), BytesArgument(info, 0),
                                     BooleanArgument(info, 1));
  return info.Env().Undefined();
}

Napi::Value TakeUncaught(const Info& info) {
  const auto thread_id = static_cast<std::uint32_t>(IdArgument(info, 0));
  const auto error = SpawnedWorkers::Get().TakeUncaught(thread_id);
  if (!error) return info.Env().Null();
  return Napi::Buffer<char>::Copy(info.Env(), error->data(), error->size());
}

// noteUnseen(error, source)
Napi::Value NoteUnseen(const Info& info) {
  core::UnseenErrors::Get().Note({ErrorArgument(info, 0), StringArgument(info, 1), nullptr});
  return info.Env().Undefined();
}

Napi::Value GiveError(const Info& info) {
  return Napi::Boolean::New(info.Env(), core::UnseenErrors::Give(StringArgument(info, 0)));
}

Napi::Value ErrorsGivenSoFar(const Info& info) {
  const std::uint64_t count = core::UnseenErrors::Get().given_so_far();
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

// Whether a thread of this process has asked for an exit code that is not 0.
std::atomic<bool> process_has_failed{false};

Napi::Value FailProcess(const Info& info) {
  process_has_failed = true;
  return info.Env().Undefined();
}

// Whether no thread of this process has called it before.
Napi::Value MayWarnOfLoopers(const Info& info) {
  static std::atomic<bool> has_warned{false};
  return Napi::Boolean::New(info.Env(), !has_warned.exchange(true));
}

Napi::Value TakeUnseen(const Info& info) {
  const Napi::Env env = info.Env();
  if (!Environment::Of(info)->ExitsAsLast()) return env.Null();
  const auto report = core::UnseenErrors::Get().Take();
  Napi::Array errors = Napi::Array::New(env, report.errors.size());
  std::uint32_t index = 0;
  for (const auto& [error, source, origin] : report.errors) {
    Napi::Object object = Napi::Object::New(env);
    Define(object, "error", ErrorBytes(env, error));
    Define(object, "source", source);
    Define(object, "threadName", origin ? origin->Get().thread_name : std::string());
    errors.Set(index++, object);
  }
  Napi::Object result = Napi::Object::New(env);
  Define(result, "errors", errors);
  Define(result, "dropped", static_cast<double>(report.dropped));
  Define(result, "hasFailed", process_has_failed.load());
  return result;
}

Napi::Value WriteToStandardError(const Info& info) {
  core::WriteToStandardError(StringArgument(info, 0), static_cast<int>(NumberArgument(info, 1)));
  return info.Env().Undefined();
}

// awaitChild(pid, milliseconds)
Napi::Value AwaitChild(const Info& info) {
  return Napi::Boolean::New(info.Env(),
                            binding::AwaitChild(IdArgument(info, 0), IdArgument(info, 1)));
}

Napi::Value ExitWithParent(const Info& info) {
  binding::ExitWithParent(IdArgument(info, 0), IdArgument(info, 1));
  return info.Env().Undefined();
}

Napi::Value EndProcess(const Info& info) {
  core::EndProcess(static_cast<int>(IdArgument(info, 0)));
}

Napi::Value ReinstallSignals(const Info& info) {
  binding::ReinstallSignals();
  return info.Env().Undefined();
}

Napi::Value NextIdentity(const Info& info) {
  return Napi::String::New(info.Env(), core::NextIdentity());
}

// setup(options): returns the addon's functions, bound to a new Environment.
Napi::Value Setup(const Info& info) {
  const Napi::Env env = info.Env();
  const auto environment = Environment::Setup(env, ObjectArgument(info, 0));
  Napi::Object functions = Napi::Object::New(env);
  const auto set = [&](const char* name, Napi::Value (*function)(const Info&)) {
    Define(functions, name, Napi::Function::New(env, function, name, environment.get()));
  };
  set("awaitWritable", Checked<AwaitWritable>);
  set("createCoordinator", Checked<CreateCoordinator>);
  set("hasCoordinator", Checked<HasCoordinator>);
  set("attachCoordinator", Checked<AttachCoordinator>);
  set("createQueue", Checked<CreateQueue>);
  set("attachQueue", Checked<AttachQueue>);
  set("queuesOf", Checked<QueuesOf>);
  set("createVariables", Checked<CreateVariables>);
  set("attachVariables", Checked<AttachVariables>);
  set("openPublished", Checked<OpenPublished>);
  set("bindRemoteVariable", Checked<BindRemoteVariable>);
  set("connectSqlite", Checked<ConnectSqlite>);
  set("obeySqlite", Checked<ObeySqlite>);
  set("osThreadIdOf", Checked<OsThreadIdOf>);
  set("takeDirty", Checked<TakeDirty>);
  set("setDoorbellReferenced", Checked<SetDoorbellReferenced>);
  set("beginSpawn", Checked<BeginSpawn>);
  set("setSpawned", Checked<SetSpawned>);
  set("endSpawn", Checked<EndSpawn>);
  set("forgetSpawned", Checked<ForgetSpawned>);
  set("currentCoordinator", Checked<CurrentCoordinator>);
  set("noteUncaught", Checked<NoteUncaught>);
  set("takeUncaught", Checked<TakeUncaught>);
  set("noteUnseen", Checked<NoteUnseen>);
  set("giveError", Checked<GiveError>);
  set("errorsGivenSoFar", Checked<ErrorsGivenSoFar>);
  set("failProcess", Checked<FailProcess>);
  set("mayWarnOfLoopers", Checked<MayWarnOfLoopers>);
  set("takeUnseen", Checked<TakeUnseen>);
  set("writeToStandardError", Checked<WriteToStandardError>);
  set("awaitChild", Checked<AwaitChild>);
  set("exitWithParent", Checked<ExitWithParent>);
  set("endProcess", Checked<EndProcess>);
  set("openForkLine", Checked<OpenForkLine>);
  set("closeForkDescriptor", Checked<CloseForkDescriptor>);
  set("identityOfDescriptor", Checked<IdentityOfDescriptor>);
  set("keepForkLine", Checked<KeepForkLine>);
  set("forkLineHasStopped", Checked<ForkLineHasStopped>);
  set("refuseForkAnswer", Checked<RefuseForkAnswer>);
  set("cancelForkedCall", Checked<CancelForkedCall>);
  set("closeForkLine", Checked<CloseForkLine>);
  set("attachToParent", Checked<AttachToParent>);
  set("listenToParent", Checked<ListenToParent>);
  set("takeCancelledCalls", Checked<TakeCancelledCalls>);
  set("sendToParent", Checked<SendToParent>);
  set("sendExitCode", Checked<SendExitCode>);
  set("readForkFrame", Checked<ReadForkFrame>);
  set("reinstallSignals", Checked<ReinstallSignals>);
  set("nextIdentity", Checked<NextIdentity>);
  Define(functions, "world", core::World());
  Define(functions, "abi",
         std::to_string(abi::Table().major) + "." + std::to_string(abi::Table().minor));
  return functions;
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  // Keeps the addon loaded: native threads may run its code after the last environment has ended.
  allstop_pin_module();
  Define(exports, "setup", Napi::Function::New(env, Checked<Setup>, "setup"));
  return exports;
}

NODE_API_MODULE(allstop, Init)

}  // namespace
}  // namespace allstop::binding
