/**
 * @file allstop_node.h
 * From a JavaScript value to a checked handle: for Node addons in C or C++, on plain Node-API
 * (version 8 or later).
 *
 * The value is the `Coordinator`, `BoundedQueue` or `Variable` object itself, as the JavaScript
 * caller passed it. The addon links nothing of allstop, and the functions here run no JavaScript:
 * no getter, no proxy trap.
 */
#ifndef ALLSTOP_ALLSTOP_NODE_H_
#define ALLSTOP_ALLSTOP_NODE_H_

#include <node_api.h>

#include "allstop.h"
#include "allstop_pin_module.h"

#if !defined(NAPI_VERSION) || NAPI_VERSION < 8
#error "allstop_node.h needs Node-API 8 or later: define NAPI_VERSION=8 for the whole addon"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Gets the capsule of a JavaScript object. Call it on the JavaScript thread of `env`. Use
 * allstop_from_napi, allstop_queue_from_napi and allstop_variable_from_napi instead.
 *
 * @param kind ALLSTOP_CAPSULE_*
 * @param[out] capsule belongs to the object, which must stay alive while you use it; valid
 *   only if ALLSTOP_OK
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_HANDLE `value` carries no capsule of that kind
 * @retval ALLSTOP_FAILED_PRECONDITION the capsule has another major version than this header
 */
static inline allstop_status allstop_capsule_from_napi(napi_env env, napi_value value,
                                                       uint32_t kind,
                                                       const allstop_capsule **capsule) {
  static const napi_type_tag tag = {ALLSTOP_CAPSULE_TAG_LOWER, ALLSTOP_CAPSULE_TAG_UPPER};
  napi_valuetype type;
  bool tagged = false;
  void *data = NULL;
  allstop_pin_module();
  /* The type first: on some runtimes it is an error to ask a primitive for its type tag. */
  if (napi_typeof(env, value, &type) != napi_ok || type != napi_object ||
      napi_check_object_type_tag(env, value, &tag, &tagged) != napi_ok || !tagged ||
      napi_unwrap(env, value, &data) != napi_ok || data == NULL) {
    return ALLSTOP_INVALID_HANDLE;
  }
  *capsule = (const allstop_capsule *)data;
  if ((*capsule)->major != ALLSTOP_ABI_MAJOR) return ALLSTOP_FAILED_PRECONDITION;
  return (*capsule)->kind == kind ? ALLSTOP_OK : ALLSTOP_INVALID_HANDLE;
}

/**
 * Turns a JavaScript `Coordinator` object, or its `signal`, into a handle. Call it on the
 * JavaScript thread of `env`; does not block. No JavaScript exception is pending afterwards: see
 * allstop_throw_status. An aborted signal from before a `clearStop()` gives the coordinator, which
 * need not be stopped.
 *
 * @param[out] coord a handle that owns one reference, which you give back with
 *   allstop_release on any thread; unchanged unless ALLSTOP_OK
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_HANDLE `value` is neither: it is a plain object, another AbortSignal,
 *   a proxy, a primitive, or an object of another addon
 * @retval ALLSTOP_FAILED_PRECONDITION `value` is a `Coordinator` of a copy of the package
 *   whose interface has another major version than this header
 */
static inline allstop_status allstop_from_napi(napi_env env, napi_value value,
                                               allstop_coordinator *coord) {
  const allstop_capsule *capsule = NULL;
  const allstop_status status =
      allstop_capsule_from_napi(env, value, ALLSTOP_CAPSULE_COORDINATOR, &capsule);
  if (status != ALLSTOP_OK) return status;
  coord->table = capsule->table;
  coord->state = capsule->state;
  coord->table->retain(coord->state);
  coord->stop_word = coord->table->stop_word(coord->state);
  return ALLSTOP_OK;
}

/**
 * Turns a JavaScript `BoundedQueue` object into a handle, as allstop_from_napi does for a
 * `Coordinator`. Since 1.2.
 *
 * @param[out] queue a handle that owns one reference, which you give back with
 *   allstop_queue_release on any thread; unchanged unless ALLSTOP_OK
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_HANDLE `value` is not a `BoundedQueue`
 * @retval ALLSTOP_FAILED_PRECONDITION as from allstop_from_napi
 */
static inline allstop_status allstop_queue_from_napi(napi_env env, napi_value value,
                                                     allstop_queue *queue) {
  const allstop_capsule *capsule = NULL;
  const allstop_status status =
      allstop_capsule_from_napi(env, value, ALLSTOP_CAPSULE_QUEUE, &capsule);
  if (status != ALLSTOP_OK) return status;
  queue->table = capsule->table;
  queue->state = (allstop_queue_state *)capsule->state;
  queue->table->queue_retain(queue->state);
  return ALLSTOP_OK;
}

/**
 * Turns a JavaScript `Variable` object into a handle, as allstop_from_napi does for a
 * `Coordinator`. In the program that made the variable, and in its worker threads; the value of a
 * Variable in a worker process, and of one of a NatsStrategy, is in another process. Since 1.6.
 *
 * @param[out] variable a handle that owns one reference, which you give back with
 *   allstop_variable_release on any thread; unchanged unless ALLSTOP_OK
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_HANDLE `value` is not a `Variable`
 * @retval ALLSTOP_UNAVAILABLE the value of the `Variable` is not in this process
 * @retval ALLSTOP_FAILED_PRECONDITION as from allstop_from_napi
 */
static inline allstop_status allstop_variable_from_napi(napi_env env, napi_value value,
                                                        allstop_variable *variable) {
  const allstop_capsule *capsule = NULL;
  const allstop_status status =
      allstop_capsule_from_napi(env, value, ALLSTOP_CAPSULE_VARIABLE, &capsule);
  if (status != ALLSTOP_OK) return status;
  if (capsule->state == NULL) return ALLSTOP_UNAVAILABLE;
  variable->table = capsule->table;
  variable->state = (allstop_variable_state *)capsule->state;
  variable->table->variable_retain(variable->state);
  return ALLSTOP_OK;
}

/**
 * Throws the JavaScript error for a status that any function here returned: a TypeError for
 * ALLSTOP_INVALID_HANDLE and ALLSTOP_INVALID_ARGUMENT, else an Error, with the code
 * ERR_ALLSTOP_<NAME>, as ERR_ALLSTOP_RESOURCE_EXHAUSTED. A number without a name gives
 * ERR_ALLSTOP_STATUS_<NUMBER>. ALLSTOP_OK throws nothing. Call it on the JavaScript thread of
 * `env`, and return to JavaScript.
 *
 * @param message what the error says; NULL: a sentence on the status
 */
static inline void allstop_throw(napi_env env, allstop_status status, const char *message) {
  const char *code = NULL;
  const char *text = NULL;
  char number[32] = "ERR_ALLSTOP_STATUS_";
  if (status == ALLSTOP_OK) return;
  switch (status) {
    case ALLSTOP_CANCELLED:
      code = "ERR_ALLSTOP_CANCELLED";
      text = "The operation was cancelled, since a stop was requested or a queue was closed";
      break;
    case ALLSTOP_INVALID_ARGUMENT:
      code = "ERR_ALLSTOP_INVALID_ARGUMENT";
      text = "An argument of a native function of allstop is invalid";
      break;
    case ALLSTOP_DEADLINE_EXCEEDED:
      code = "ERR_ALLSTOP_DEADLINE_EXCEEDED";
      text = "The time for the operation has passed";
      break;
    case ALLSTOP_RESOURCE_EXHAUSTED:
      code = "ERR_ALLSTOP_RESOURCE_EXHAUSTED";
      text = "Memory, threads or file descriptors have run out";
      break;
    case ALLSTOP_FAILED_PRECONDITION:
      code = "ERR_ALLSTOP_FAILED_PRECONDITION";
      text = "The operation is not possible in the present state";
      break;
    case ALLSTOP_OUT_OF_RANGE:
      code = "ERR_ALLSTOP_OUT_OF_RANGE";
      text = "The queue is closed and empty";
      break;
    case ALLSTOP_UNAVAILABLE:
      code = "ERR_ALLSTOP_UNAVAILABLE";
      text = "The installed package 'allstop' is older than this addon needs: update it";
      break;
    case ALLSTOP_INVALID_HANDLE:
      code = "ERR_ALLSTOP_INVALID_HANDLE";
      text = "The argument is not an object of allstop";
      break;
    case ALLSTOP_SELF_JOIN:
      code = "ERR_ALLSTOP_SELF_JOIN";
      text = "A registered thread cannot join its own coordinator";
      break;
    case ALLSTOP_STRAGGLERS:
      code = "ERR_ALLSTOP_STRAGGLERS";
      text = "A registered thread was still alive after the grace period";
      break;
    case ALLSTOP_STOPPED_BY_ERROR:
      code = "ERR_ALLSTOP_STOPPED_BY_ERROR";
      text = "The coordinator was stopped by an error";
      break;
    default: { /* without snprintf, since C++ without <cstdio> may include this header */
      char digits[12];
      int count = 0;
      int at = 19; /* the length of the prefix */
      uint32_t rest = status < 0 ? 0u - (uint32_t)status : (uint32_t)status;
      do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
      } while (rest != 0);
      if (status < 0) digits[count++] = '-';
      while (count > 0) number[at++] = digits[--count];
      code = number;
      text = "A native function of allstop failed with a status that this addon does not know";
    }
  }
  if (message != NULL) text = message;
  if (status == ALLSTOP_INVALID_HANDLE || status == ALLSTOP_INVALID_ARGUMENT) {
    napi_throw_type_error(env, code, text);
  } else {
    napi_throw_error(env, code, text);
  }
}

/**
 * Throws the JavaScript error for a status that allstop_from_napi returned, as allstop_throw
 * does, with the reason for ALLSTOP_INVALID_HANDLE and for ALLSTOP_FAILED_PRECONDITION. For a
 * status of any other function call allstop_throw: these two mean something else there.
 */
static inline void allstop_throw_status(napi_env env, allstop_status status) {
  const char *message = NULL;
  if (status == ALLSTOP_INVALID_HANDLE) {
    message =
        "The argument must be an allstop Coordinator or its signal; of a handle, pass "
        "Coordinator.attach(handle)";
  } else if (status == ALLSTOP_FAILED_PRECONDITION) {
    message = "The Coordinator comes from a copy of allstop with an incompatible native interface";
  }
  allstop_throw(env, status, message);
}

/** Throws the JavaScript error for a status that allstop_queue_from_napi returned; otherwise
 * as allstop_throw_status. */
static inline void allstop_queue_throw_status(napi_env env, allstop_status status) {
  const char *message = NULL;
  if (status == ALLSTOP_INVALID_HANDLE) {
    message =
        "The argument must be an allstop BoundedQueue; of a handle, pass "
        "BoundedQueue.attach(handle)";
  } else if (status == ALLSTOP_FAILED_PRECONDITION) {
    message = "The BoundedQueue comes from a copy of allstop with an incompatible native interface";
  }
  allstop_throw(env, status, message);
}

/** Throws the JavaScript error for a status that allstop_variable_from_napi returned; otherwise
 * as allstop_throw_status. */
static inline void allstop_variable_throw_status(napi_env env, allstop_status status) {
  const char *message = NULL;
  if (status == ALLSTOP_INVALID_HANDLE) {
    message = "The argument must be an allstop Variable";
  } else if (status == ALLSTOP_FAILED_PRECONDITION) {
    message = "The Variable comes from a copy of allstop with an incompatible native interface";
  } else if (status == ALLSTOP_UNAVAILABLE) {
    message =
        "The value of the Variable is in another process: native code uses Variables in the "
        "program that made them and in worker threads, not in worker processes nor over NATS";
  }
  allstop_throw(env, status, message);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "allstop_stop_flag.h"

#endif /* ALLSTOP_ALLSTOP_NODE_H_ */
