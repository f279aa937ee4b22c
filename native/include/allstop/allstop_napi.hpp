/// @file allstop_napi.hpp
/// From a JavaScript value to an object of allstop, for addons with node-addon-api (napi.h).
///
/// @code
///   void Work(const Napi::CallbackInfo& info) {
///     const allstop::Coordinator coord = allstop::From(info[0]);
///     if (!coord) return;  // only without C++ exceptions: a JavaScript exception is pending
///     allstop::Thread(coord, "work", DoWork).Detach();
///   }
/// @endcode
#ifndef ALLSTOP_ALLSTOP_NAPI_HPP_
#define ALLSTOP_ALLSTOP_NAPI_HPP_

#include <napi.h>

#include "allstop.hpp"
#include "allstop_node.h"
#include "allstop_stop_flag.hpp"

namespace allstop {

/// The coordinator of a JavaScript `Coordinator` object or of its `signal`; see allstop_from_napi.
/// Call it on the JavaScript thread; runs no JavaScript, does not block.
///
/// @throws Napi::Error for any other value: a TypeError with the code ERR_ALLSTOP_INVALID_HANDLE.
///   In an addon without C++ exceptions, that error is pending, and the result is empty.
inline Coordinator From(const Napi::Value& value) {
  const Napi::Env env = value.Env();
  allstop_coordinator handle = {};
  const allstop_status status = allstop_from_napi(env, value, &handle);
  if (status != ALLSTOP_OK) {
    allstop_throw_status(env, status);
#if defined(NAPI_CPP_EXCEPTIONS)
    throw Napi::Error::New(env);  // takes the pending one
#endif
  }
  return Coordinator(handle);
}

/// The queue of a JavaScript `BoundedQueue` object; see allstop_queue_from_napi. Its codec must be
/// 'bytes': otherwise Enqueue and Dequeue return ALLSTOP_FAILED_PRECONDITION. Otherwise as From.
///
/// @throws Napi::Error as From does
inline BoundedQueue QueueFrom(const Napi::Value& value) {
  const Napi::Env env = value.Env();
  allstop_queue handle = {};
  const allstop_status status = allstop_queue_from_napi(env, value, &handle);
  if (status != ALLSTOP_OK) {
    allstop_queue_throw_status(env, status);
#if defined(NAPI_CPP_EXCEPTIONS)
    throw Napi::Error::New(env);
#endif
  }
  return BoundedQueue(handle);
}

/// The variable of a JavaScript `Variable` object; see allstop_variable_from_napi. Otherwise as
/// From.
///
/// @throws Napi::Error as From does; and with the code ERR_ALLSTOP_UNAVAILABLE for a Variable whose
///   value is in another process
inline Variable VariableFrom(const Napi::Value& value) {
  const Napi::Env env = value.Env();
  allstop_variable handle = {};
  const allstop_status status = allstop_variable_from_napi(env, value, &handle);
  if (status != ALLSTOP_OK) {
    allstop_variable_throw_status(env, status);
#if defined(NAPI_CPP_EXCEPTIONS)
    throw Napi::Error::New(env);
#endif
  }
  return Variable(handle);
}

}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_NAPI_HPP_
