// Converts between JavaScript values and the core's. The functions that read an argument throw a
// TypeError if it is not of the type that lib/native/binding.ts declares.
#ifndef ALLSTOP_BINDING_CONVERT_H_
#define ALLSTOP_BINDING_CONVERT_H_

#include <napi.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "../core/coordinator.h"

namespace allstop::binding {

// The message of an error that a program can only see if the package has a bug.
std::string InternalError(const std::string& what);

std::string StringArgument(const Napi::CallbackInfo& info, std::size_t index);
double NumberArgument(const Napi::CallbackInfo& info, std::size_t index);
std::uint64_t IdArgument(const Napi::CallbackInfo& info, std::size_t index);
bool BooleanArgument(const Napi::CallbackInfo& info, std::size_t index);
Napi::Object ObjectArgument(const Napi::CallbackInfo& info, std::size_t index);
std::vector<std::string> StringsArgument(const Napi::CallbackInfo& info, std::size_t index);

// The argument is a Uint8Array with an encoded error, or null.
std::shared_ptr<const core::EncodedError> ErrorArgument(const Napi::CallbackInfo& info,
                                                        std::size_t index);
std::string BytesArgument(const Napi::CallbackInfo& info, std::size_t index);

// A Buffer with the encoded error, or null.
Napi::Value ErrorBytes(Napi::Env env, const std::shared_ptr<const core::EncodedError>& error);

// Sets the fields of `requester` for which the object `from` has a property.
void ReadRequester(Napi::Object from, core::Requester& requester);

// Defines a plain property. (Object::Set would call a setter of that name on
// Object.prototype, if the program has put one there.)
template <typename T>
void Define(Napi::Object object, const char* name, const T& value) {
  object.DefineProperty(Napi::PropertyDescriptor::Value(
      name, Napi::Value::From(object.Env(), value), napi_default_jsproperty));
}

// A stop without its requester: all that an AbortSignal needs in order to abort. Never waits.
Napi::Value ToJsStop(Napi::Env env, const core::StopRecord& record);
// A stop with its requester, for which it may wait (core::Origin::Get).
Napi::Value ToJs(Napi::Env env, const core::StopRecord& record);
Napi::Value ToJs(Napi::Env env, const core::SuppressedError& suppressed);
Napi::Value ToJs(Napi::Env env, const core::ThreadInfo& thread);
Napi::Value ToJs(Napi::Env env, const core::LeftBehindThread& thread);
// NativeTimeline in lib/native/binding.ts.
Napi::Value ToJs(Napi::Env env, const core::TimelineView& timeline);

template <typename Items>
Napi::Array ToJsArray(Napi::Env env, const Items& items) {
  Napi::Array array = Napi::Array::New(env, items.size());
  std::uint32_t index = 0;
  for (const auto& item : items) array.Set(index++, ToJs(env, item));
  return array;
}

// The JavaScript error of an exception of this addon. An error of the system has `code` and
// `errno`, as Node's have: by its code a pool knows a shortage (slots.ts), and starts again later.
Napi::Error ErrorOf(Napi::Env env, const std::exception& exception);

// Calls `body`. A C++ exception becomes a JavaScript error; a Napi::Error is one already.
template <typename Body>
Napi::Value ExceptionsToJs(Napi::Env env, Body body) {
  try {
    return body();
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw ErrorOf(env, error);
  }
}

// Wraps `object` so that allstop_node.h recognises it in other addons. `kind` is an
// ALLSTOP_CAPSULE_*, `state` the core's object; `object` keeps it alive until it is collected.
void BindCapsule(Napi::Object object, std::uint32_t kind, std::shared_ptr<void> state);

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_CONVERT_H_
