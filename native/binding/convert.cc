#include "convert.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "../abi/table.h"
#include "../core/errno_name.h"

namespace allstop::binding {
namespace {

[[noreturn]] void Refuse(const Napi::CallbackInfo& info, std::size_t index, const char* expected) {
  throw Napi::TypeError::New(
      info.Env(), InternalError("argument " + std::to_string(index) + " must be " + expected));
}

// The strings of the type Via in lib/native/binding.ts; the order is that of core::Via.
constexpr const char* kVia[] = {"call",   "exception",   "signal",   "abort", "close", "timeout",
                                "parent", "worker-exit", "uncaught", "hook",  "defer"};

Napi::Object ToJsRequester(Napi::Env env, const core::Requester& requester) {
  Napi::Object object = Napi::Object::New(env);
  Define(object, "native", requester.language == core::Language::kNative);
  Define(object, "via", kVia[static_cast<std::size_t>(requester.via)]);
  Define(object, "threadName", requester.thread_name);
  Define(object, "threadId", static_cast<double>(requester.thread_id));
  Define(object, "pid", static_cast<double>(requester.pid));
  Define(object, "stack", requester.stack);
  Define(object, "signal", requester.signal);
  Define(object, "at", static_cast<double>(requester.at_ms));
  return object;
}

// The data of a wrapped object. allstop_node.h reads it as an allstop_capsule.
struct Capsule {
  allstop_capsule abi;          // first, since its address is the capsule's
  std::shared_ptr<void> state;  // keeps the object behind abi.state alive
};

}  // namespace

Napi::Error ErrorOf(Napi::Env env, const std::exception& exception) {
  Napi::Error error = Napi::Error::New(env, std::string("allstop: ") + exception.what());
  int number = 0;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) number = ENOMEM;
  if (const auto* failure = dynamic_cast<const std::system_error*>(&exception)) {
    number = failure->code().default_error_condition().value();
  }
  const std::string code = core::ErrnoName(number);
  if (!code.empty()) {
    const auto object = error.Value().As<Napi::Object>();
    Define(object, "code", code);
    Define(object, "errno", -number);
  }
  return error;
}

std::string InternalError(const std::string& what) {
  return "Internal error of allstop, please report it: " + what;
}

std::string StringArgument(const Napi::CallbackInfo& info, std::size_t index) {
  if (!info[index].IsString()) Refuse(info, index, "a string");
  return info[index].As<Napi::String>().Utf8Value();
}

double NumberArgument(const Napi::CallbackInfo& info, std::size_t index) {
  if (!info[index].IsNumber()) Refuse(info, index, "a number");
  return info[index].As<Napi::Number>().DoubleValue();
}

std::uint64_t IdArgument(const Napi::CallbackInfo& info, std::size_t index) {
  constexpr double kLargest = 9007199254740991.0;
  const double number = NumberArgument(info, index);
  if (!(number >= 0 && number <= kLargest)) Refuse(info, index, "an id");
  return static_cast<std::uint64_t>(number);
}

bool BooleanArgument(const Napi::CallbackInfo& info, std::size_t index) {
  if (!info[index].IsBoolean()) Refuse(info, index, "a boolean");
  return info[index].As<Napi::Boolean>().Value();
}

Napi::Object ObjectArgument(const Napi::CallbackInfo& info, std::size_t index) {
  if (!info[index].IsObject()) Refuse(info, index, "an object");
  return info[index].As<Napi::Object>();
}

std::vector<std::string> StringsArgument(const Napi::CallbackInfo& info, std::size_t index) {
  if (!info[index].IsArray()) Refuse(info, index, "an array of strings");
  const auto array = info[index].As<Napi::Array>();
  std::vector<std::string> strings;
  for (std::uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value item = array.Get(i);
    if (!item.IsString()) Refuse(info, index, "an array of strings");
    strings.push_back(item.As<Napi::String>().Utf8Value());
  }
  return strings;
}

std::string BytesArgument(const Napi::CallbackInfo& info, std::size_t index) {
  if (!info[index].IsTypedArray() ||
      info[index].As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
    Refuse(info, index, "a Uint8Array");
  }
  const auto bytes = info[index].As<Napi::Uint8Array>();
  return std::string(reinterpret_cast<const char*>(bytes.Data()), bytes.ByteLength());
}

std::shared_ptr<const core::EncodedError> ErrorArgument(const Napi::CallbackInfo& info,
                                                        std::size_t index) {
  if (info[index].IsNull()) return nullptr;
  auto error = core::EncodedError::Decode(BytesArgument(info, index));
  if (!error) Refuse(info, index, "an encoded error");
  return error;
}

Napi::Value ErrorBytes(Napi::Env env, const std::shared_ptr<const core::EncodedError>& error) {
  if (!error) return env.Null();
  return Napi::Buffer<char>::Copy(env, error->bytes().data(), error->bytes().size());
}

void ReadRequester(Napi::Object from, core::Requester& requester) {
  // A program may have given Object.prototype a property of the same name.
  const auto own = [&](const char* key) {
    return from.HasOwnProperty(key) ? from.Get(key) : from.Env().Undefined();
  };
  const auto string = [&](const char* key, std::string& field) {
    const Napi::Value value = own(key);
    if (value.IsString()) field = value.As<Napi::String>().Utf8Value();
  };
  std::string via;
  string("via", via);
  const auto* const found = std::find(std::begin(kVia), std::end(kVia), via);
  if (found != std::end(kVia)) requester.via = static_cast<core::Via>(found - std::begin(kVia));
  const Napi::Value thread_id = own("threadId");
  if (thread_id.IsNumber()) {
    requester.thread_id = static_cast<std::uint64_t>(thread_id.As<Napi::Number>().Int64Value());
  }
  const Napi::Value pid = own("pid");
  if (pid.IsNumber()) requester.pid = pid.As<Napi::Number>().Int64Value();
  const Napi::Value at = own("at");
  if (at.IsNumber()) requester.at_ms = at.As<Napi::Number>().Int64Value();
  const Napi::Value native = own("native");
  if (native.IsBoolean() && native.As<Napi::Boolean>().Value()) {
    requester.language = core::Language::kNative;
  }
  string("threadName", requester.thread_name);
  string("signal", requester.signal);
  string("stack", requester.stack);
}

Napi::Value ToJsStop(Napi::Env env, const core::StopRecord& record) {
  Napi::Object object = Napi::Object::New(env);
  Define(object, "id", record.id);
  Define(object, "generation", static_cast<double>(record.generation));
  Define(object, "kind", static_cast<double>(record.kind));
  Define(object, "error", ErrorBytes(env, record.error));
  const std::chrono::duration<double, std::milli> age = core::Clock::now() - record.requested_at;
  Define(object, "ageMs", age.count());
  return object;
}

Napi::Value ToJs(Napi::Env env, const core::StopRecord& record) {
  Napi::Object object = ToJsStop(env, record).As<Napi::Object>();
  Define(object, "requester", ToJsRequester(env, record.requester()));
  return object;
}

Napi::Value ToJs(Napi::Env env, const core::SuppressedError& suppressed) {
  Napi::Object object = Napi::Object::New(env);
  Define(object, "error", ErrorBytes(env, suppressed.error));
  Define(object, "requester", ToJsRequester(env, suppressed.origin->Get()));
  return object;
}

Napi::Value ToJs(Napi::Env env, const core::ThreadInfo& thread) {
  Napi::Object object = Napi::Object::New(env);
  Define(object, "id", static_cast<double>(thread.id));
  Define(object, "name", thread.name);
  Define(object, "kind", static_cast<double>(thread.kind));
  Define(object, "alive", thread.alive);
  Define(object, "hasBegun", thread.has_begun);
  Define(object, "unobserved", thread.unobserved);
  if (thread.daemon != core::Daemon::kUnsaid) {
    Define(object, "daemon", thread.daemon == core::Daemon::kYes);
  }
  Define(object, "isOsThread", thread.is_os_thread);
  if (thread.has_thread_id) Define(object, "threadId", static_cast<double>(thread.thread_id));
  Define(object, "startedAt", static_cast<double>(thread.started_at_ms));
  Define(object, "endedAt", static_cast<double>(thread.ended_at_ms));
  return object;
}

Napi::Value ToJs(Napi::Env env, const core::LeftBehindThread& thread) {
  Napi::Object object = ToJs(env, thread.info).As<Napi::Object>();
  const std::chrono::duration<double, std::milli> age =
      core::Clock::now() - thread.stop_requested_at;
  Define(object, "stopAgeMs", age.count());
  return object;
}

Napi::Value ToJs(Napi::Env env, const core::TimelineView& timeline) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  Napi::Array events = Napi::Array::New(env, timeline.events.size());
  std::uint32_t index = 0;
  for (const core::TimelineEvent& event : timeline.events) {
    Napi::Object object = Napi::Object::New(env);
    Define(object, "at", Milliseconds(event.at - timeline.began).count());
    Define(object, "type", static_cast<double>(event.type));
    Define(object, "kind", static_cast<double>(event.kind));
    Define(object, "unobserved", event.unobserved);
    Define(object, "thread", static_cast<double>(event.thread));
    Define(object, "generation", static_cast<double>(event.generation));
    Define(object, "name", event.name);
    if (event.has_thread_id) Define(object, "threadId", static_cast<double>(event.thread_id));
    Define(object, "threadStartedAt", static_cast<double>(event.started_at_ms));
    events.Set(index++, object);
  }
  Napi::Object object = Napi::Object::New(env);
  Define(object, "ageMs", Milliseconds(core::Clock::now() - timeline.began).count());
  Define(object, "startedAt", static_cast<double>(timeline.began_at_ms));
  Define(object, "dropped", static_cast<double>(timeline.dropped));
  Define(object, "events", events);
  return object;
}

void BindCapsule(Napi::Object object, std::uint32_t kind, std::shared_ptr<void> state) {
  static const napi_type_tag tag = {ALLSTOP_CAPSULE_TAG_LOWER, ALLSTOP_CAPSULE_TAG_UPPER};
  auto capsule = std::make_unique<Capsule>();
  capsule->abi = {sizeof(allstop_capsule), ALLSTOP_ABI_MAJOR,
                  ALLSTOP_ABI_MINOR,       kind,
                  &abi::Table(),           static_cast<allstop_state*>(state.get())};
  capsule->state = std::move(state);
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<Capsule*>(data); };
  if (napi_type_tag_object(object.Env(), object, &tag) != napi_ok ||
      napi_wrap(object.Env(), object, capsule.get(), finalize, nullptr, nullptr) != napi_ok) {
    throw Napi::Error::New(object.Env(), InternalError("the object has native data already"));
  }
  capsule.release();
}

}  // namespace allstop::binding
