/// @file allstop_napi.hpp
/// From a JavaScript value to an object of allstop, for addons with node-addon-api (napi.h).
///
/// @code
///   void Work(const Napi::CallbackInfo& info) {
///     const allstop::Coordinator coord = allstop::From(info[0]);
///     if (!coord) return;  // only without C++ exceptions: a JavaScript exception is pending
///     allstop::Start(coord, "work", DoWork);
///   }
/// @endcode
#ifndef ALLSTOP_ALLSTOP_NAPI_HPP_
#define ALLSTOP_ALLSTOP_NAPI_HPP_

#include <napi.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "allstop.hpp"
#include "allstop_bounded_queue.hpp"
#include "allstop_node.h"
#include "allstop_stop_flag.hpp"
#include "allstop_variable.hpp"

namespace allstop {
namespace internal {

/// The environments of this module on this thread, as far as From has met them.
#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
inline thread_local std::vector<napi_env>
    environments_here;
inline napi_env Met(napi_env env) {
  for (const napi_env each : environments_here) {
    if (each == env) return env;
  }
  environments_here.push_back(env);
  return env;
}

/// What `value` is, in the words of Node's own errors: "type number", "an instance of Object".
inline std::string Described(napi_env env, napi_value value) {
  napi_valuetype type = napi_undefined;
  napi_typeof(env, value, &type);
  switch (type) {
    case napi_undefined: return "undefined";
    case napi_null: return "null";
    case napi_boolean: return "type boolean";
    case napi_number: return "type number";
    case napi_string: return "type string";
    case napi_symbol: return "type symbol";
    case napi_bigint: return "type bigint";
    case napi_function: return "a function";
    default: break;
  }
  napi_value constructor = nullptr;
  napi_value name = nullptr;
  char text[64] = "";
  std::size_t length = 0;
  if (napi_get_named_property(env, value, "constructor", &constructor) == napi_ok &&
      napi_get_named_property(env, constructor, "name", &name) == napi_ok &&
      napi_get_value_string_utf8(env, name, text, sizeof text, &length) == napi_ok && length > 0) {
    return "an instance of " + std::string(text, length);
  }
  bool is_pending = false;  // what a getter has thrown
  napi_is_exception_pending(env, &is_pending);
  if (is_pending) napi_get_and_clear_last_exception(env, &name);
  return "an object";
}

/// Whether the class in `received` ("an instance of Variable") is the one that `expected` asks for
/// ("... an allstop Variable"), by its whole name.
inline bool IsNamed(const std::string& expected, const std::string& received) {
  const std::string instance = "an instance of ";
  if (received.compare(0, instance.size(), instance) != 0) return false;
  const std::string named = " allstop " + received.substr(instance.size());
  const std::size_t at = expected.find(named);
  if (at == std::string::npos) return false;
  const std::size_t end = at + named.size();
  return end == expected.size() || expected[end] == ' ' || expected[end] == ';';
}

/// Throws the error of `throw_status` for `value`, which for a wrong argument also says what
/// `value` is. Without C++ exceptions, an exception that is pending already stays.
inline void ThrowRefusal(const Napi::Value& value, allstop_status status,
                         void (*throw_status)(napi_env, allstop_status)) {
  const Napi::Env env = value.Env();
  if (!env.IsExceptionPending()) {
    throw_status(env, status);
    if (status == ALLSTOP_INVALID_HANDLE) {
      const std::string expected = env.GetAndClearPendingException().Message();
      std::string received = Described(env, value);
      if (IsNamed(expected, received)) {
        received +=
            ", but not one of allstop's itself: a Proxy, an object that inherits from one, or "
            "another class of that name";
      }
      const std::string message = expected + ". Received " + received;
      allstop_throw(env, status, message.c_str());
    }
  }
#if defined(NODE_ADDON_API_CPP_EXCEPTIONS) || defined(NAPI_CPP_EXCEPTIONS)
  throw Napi::Error::New(env);  // takes the pending one
#endif
}

#if defined(NODE_ADDON_API_CPP_EXCEPTIONS) || defined(NAPI_CPP_EXCEPTIONS)
/// The bytes of an error of JavaScript, as the package encodes it in the thread of `error`; empty
/// if the package cannot be reached there. Runs JavaScript of the package and getters of the error.
inline std::string Encoded(const Napi::Error& error) {
  try {
    const Napi::Env env = error.Env();
    const Napi::HandleScope scope(env);
    const Napi::Object global = env.Global();
    const Napi::Object symbol = global.Get("Symbol").As<Napi::Object>();
    const Napi::Value key = symbol.Get("for").As<Napi::Function>().Call(
        symbol, {Napi::String::New(env, "allstop.encodeError")});
    const Napi::Value encode = global.Get(key);
    if (!encode.IsFunction()) return {};
    const Napi::Value bytes = encode.As<Napi::Function>().Call({error.Value()});
    if (!bytes.IsTypedArray()) return {};
    const auto array = bytes.As<Napi::Uint8Array>();
    return std::string(reinterpret_cast<const char*>(array.Data()), array.ByteLength());
  } catch (...) {
    return {};  // the environment ends, or memory has run out
  }
}

/// Whether `env` is an environment of the calling thread. Of a thread on which From was never
/// called only whether it has JavaScript is known.
inline bool IsHere(napi_env env, const Coordinator& coord) {
  if (!environments_here.empty()) {
    return std::find(environments_here.begin(), environments_here.end(), env) !=
           environments_here.end();
  }
  const allstop_table* const table = coord.handle()->table;
  return ALLSTOP_HAS(table, on_js_thread) && table->on_js_thread() != 0;
}

/// See DescribeForeign.
inline bool DescribeNapiError(const Coordinator& coord, allstop_error& described,
                              std::string& encoded) {
  try {
    throw;
  } catch (const Napi::Error& error) {
    described.native_type = allstop_str("Napi::Error");
    if (!coord) return true;  // nobody reads the description
    if (IsHere(error.Env(), coord)) {
      encoded = Encoded(error);
      described.encoded = view::Of(encoded);
      described.message = allstop_str(error.what());
      // A call into an environment that ends throws an error without a value.
      if (encoded.empty() && described.message.size == 0) {
        described.message = allstop_str("the JavaScript thread was ended during this call");
      }
      return true;
    }
    // Neither read nor destroyed here: what() reads the message by Node-API, and the destructor
    // deletes a reference, which another thread than the error's must not do. So the text is fixed,
    // and the exception stays in memory for ever.
    alignas(std::exception_ptr) unsigned char kept[sizeof(std::exception_ptr)];
    new (kept) std::exception_ptr(std::current_exception());  // never destroyed; needs no memory
    described.message = allstop_str("an error of JavaScript, thrown on another thread");
    return true;
  } catch (...) {
    return false;
  }
}

#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
inline const bool describes_napi_errors = [] {
  describe_foreign = &DescribeNapiError;
  return true;
}();
#endif

}  // namespace internal

/// The coordinator of a JavaScript `Coordinator` object or of its `signal`; see allstop_from_napi.
/// Call it on the JavaScript thread; does not block. Runs no JavaScript, unless the value is
/// refused and has getters or is a proxy.
///
/// @throws Napi::Error for any other value: a TypeError with the code ERR_ALLSTOP_INVALID_HANDLE.
///   In an addon without C++ exceptions, that error is pending, and the result is empty.
inline Coordinator From(const Napi::Value& value) {
  const napi_env env = internal::Met(value.Env());
  allstop_coordinator handle = {};
  const allstop_status status = allstop_from_napi(env, value, &handle);
  if (status != ALLSTOP_OK) internal::ThrowRefusal(value, status, allstop_throw_status);
  return Coordinator(handle);
}

/// The queue of a JavaScript `BoundedQueue` object with the codec 'bytes'; see
/// allstop_queue_from_napi, which also takes one whose items native code cannot use. Otherwise as
/// From.
///
/// @throws Napi::Error as From does; for another codec with the code ERR_ALLSTOP_INVALID_ARGUMENT
inline BoundedQueue QueueFrom(const Napi::Value& value) {
  const napi_env env = internal::Met(value.Env());
  allstop_queue handle = {};
  const allstop_status status = allstop_queue_from_napi(env, value, &handle);
  if (status != ALLSTOP_OK) internal::ThrowRefusal(value, status, allstop_queue_throw_status);
  BoundedQueue queue(handle);
  allstop_queue_info info = {};
  info.size = sizeof(info);
  if (!queue || allstop_queue_read(&handle, &info) != ALLSTOP_OK ||
      info.codec == ALLSTOP_CODEC_BYTES) {
    return queue;
  }
  internal::ThrowRefusal(
      value, ALLSTOP_INVALID_ARGUMENT, [](napi_env here, allstop_status refused) {
        allstop_throw(here, refused, "Native code takes a BoundedQueue with the codec 'bytes'");
      });
  return BoundedQueue();
}

/// The variable of a JavaScript `Variable` object; see allstop_variable_from_napi. Otherwise as
/// From.
///
/// @throws Napi::Error as From does; and with the code ERR_ALLSTOP_UNAVAILABLE for a Variable whose
///   value is in another process
inline Variable VariableFrom(const Napi::Value& value) {
  const napi_env env = internal::Met(value.Env());
  allstop_variable handle = {};
  const allstop_status status = allstop_variable_from_napi(env, value, &handle);
  if (status != ALLSTOP_OK) internal::ThrowRefusal(value, status, allstop_variable_throw_status);
  return Variable(handle);
}

}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_NAPI_HPP_
