// Between JavaScript values and the core's. Everything throws a TypeError if an
// argument is not of the type that lib/native/native.ts declares.
#ifndef ALLSTOP_BINDING_CONVERT_H_
#define ALLSTOP_BINDING_CONVERT_H_

#include <napi.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "../core/coordinator.h"
#include "../include/allstop/allstop.h"

namespace allstop::binding {

std::string StringArgument(const Napi::CallbackInfo& info, std::size_t index);
double NumberArgument(const Napi::CallbackInfo& info, std::size_t index);
std::uint64_t IdArgument(const Napi::CallbackInfo& info, std::size_t index);
bool BooleanArgument(const Napi::CallbackInfo& info, std::size_t index);
Napi::Object ObjectArgument(const Napi::CallbackInfo& info, std::size_t index);
std::vector<std::string> StringsArgument(const Napi::CallbackInfo& info, std::size_t index);

// A Uint8Array that holds an encoded error, or null.
std::shared_ptr<const core::ErrorRecord> ErrorArgument(const Napi::CallbackInfo& info,
                                                       std::size_t index);
std::string BytesArgument(const Napi::CallbackInfo& info, std::size_t index);

// The encoding of an error, or null.
Napi::Value ErrorBytes(Napi::Env env, const std::shared_ptr<const core::ErrorRecord>& error);

// Overrides what `requester` says with those properties that the object has.
void ReadRequester(Napi::Object from, core::Requester& requester);

Napi::Value ToJs(Napi::Env env, const core::StopRecord& record);
Napi::Value ToJs(Napi::Env env, const core::SuppressedError& suppressed);
Napi::Value ToJs(Napi::Env env, const core::ThreadInfo& thread);

template <typename Items>
Napi::Array ToJsArray(Napi::Env env, const Items& items) {
  Napi::Array array = Napi::Array::New(env, items.size());
  std::uint32_t index = 0;
  for (const auto& item : items) array.Set(index++, ToJs(env, item));
  return array;
}

// Calls `body`: what C++ throws becomes a JavaScript error, node-addon-api passes its own.
template <typename Body>
Napi::Value Guarded(Napi::Env env, Body body) {
  try {
    return body();
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Napi::Error::New(env, std::string("allstop: ") + error.what());
  }
}

// Makes `object` one that allstop_node.h knows; the capsule goes when it does.
template <typename Capsule>
void WrapCapsule(Napi::Object object, std::unique_ptr<Capsule> capsule) {
  static const napi_type_tag tag = {ALLSTOP_CAPSULE_TAG_LOWER, ALLSTOP_CAPSULE_TAG_UPPER};
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<Capsule*>(data); };
  if (napi_type_tag_object(object.Env(), object, &tag) != napi_ok ||
      napi_wrap(object.Env(), object, capsule.get(), finalize, nullptr, nullptr) != napi_ok) {
    throw Napi::Error::New(object.Env(), "allstop: the object is taken already");
  }
  capsule.release();
}

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_CONVERT_H_
