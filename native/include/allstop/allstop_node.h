/**
 * @file allstop_node.h
 * From a JavaScript value to a checked handle: for Node addons in C or C++, on plain Node-API
 * (version 8 or later).
 *
 * The value is the `Coordinator` or `BoundedQueue` object itself, as the JavaScript caller
 * passed it. The addon links nothing of allstop, and the functions here run no JavaScript: no
 * getter, no proxy trap.
 */
#ifndef ALLSTOP_ALLSTOP_NODE_H_
#define ALLSTOP_ALLSTOP_NODE_H_

#include <node_api.h>

#include "allstop.h"

#if defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX /* or windows.h defines macros that break std::min and std::max */
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Every libc of Linux and macOS has dladdr, but its headers hide the declaration from strict C
 * and strict POSIX. */
#if (defined(__linux__) && !defined(__USE_GNU) && !defined(_GNU_SOURCE) && \
     (defined(__GLIBC__) || !defined(_BSD_SOURCE))) ||                     \
    (defined(__APPLE__) && defined(_POSIX_C_SOURCE) && !defined(_DARWIN_C_SOURCE))
typedef struct allstop_dl_info {
  const char *dli_fname;
  void *dli_fbase;
  const char *dli_sname;
  void *dli_saddr;
} allstop_dl_info;
extern int dladdr(const void *address, allstop_dl_info *info);
#elif !defined(_WIN32)
typedef Dl_info allstop_dl_info;
#endif

/**
 * Keeps the module that includes this header in memory until the process ends. Without it,
 * Node unmaps an addon when the last environment that loaded the addon ends, and a native
 * thread that still runs the addon's code crashes. allstop_from_napi calls this function;
 * call it yourself if you start threads before that. Any thread; calling it again is
 * harmless.
 */
static inline void allstop_pin_module(void) {
  static int pinned = 0; /* two threads at once pin the module twice, which is harmless */
#if defined(_WIN32)
  if (!pinned) {
    HMODULE module;
    pinned =
        GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                           (LPCSTR)&pinned, &module) != 0;
  }
#else
  if (!__atomic_load_n(&pinned, __ATOMIC_RELAXED)) {
    allstop_dl_info info;
    if (dladdr((void *)&pinned, &info) != 0 && info.dli_fname != NULL &&
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NODELETE) != NULL) {
      __atomic_store_n(&pinned, 1, __ATOMIC_RELAXED);
    }
  }
#endif
}

/**
 * Gets the capsule of a JavaScript object. Call it on the JavaScript thread of `env`. Use
 * allstop_from_napi and allstop_queue_from_napi instead.
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
 * Turns a JavaScript `Coordinator` object into a handle. Call it on the JavaScript thread of
 * `env`; does not block. No JavaScript exception is pending afterwards: see
 * allstop_throw_status.
 *
 * @param[out] coord a handle that owns one reference, which you give back with
 *   allstop_release on any thread; unchanged unless ALLSTOP_OK
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_HANDLE `value` is not a `Coordinator`: it is a plain object, a
 *   proxy, a primitive, or an object of another addon
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
 * Throws the JavaScript error for a status that allstop_from_napi returned: a TypeError with
 * the code ERR_ALLSTOP_INVALID_HANDLE, or an Error with the code
 * ERR_ALLSTOP_FAILED_PRECONDITION. ALLSTOP_OK throws nothing. Call it on the JavaScript
 * thread of `env`, and return to JavaScript.
 */
static inline void allstop_throw_status(napi_env env, allstop_status status) {
  if (status == ALLSTOP_INVALID_HANDLE) {
    napi_throw_type_error(env, "ERR_ALLSTOP_INVALID_HANDLE",
                          "The argument must be an allstop Coordinator");
  } else if (status != ALLSTOP_OK) {
    napi_throw_error(env, "ERR_ALLSTOP_FAILED_PRECONDITION",
                     "The Coordinator comes from a copy of allstop with an "
                     "incompatible native interface");
  }
}

/** Throws the JavaScript error for a status that allstop_queue_from_napi returned; otherwise
 * as allstop_throw_status. */
static inline void allstop_queue_throw_status(napi_env env, allstop_status status) {
  if (status == ALLSTOP_INVALID_HANDLE) {
    napi_throw_type_error(env, "ERR_ALLSTOP_INVALID_HANDLE",
                          "The argument must be an allstop BoundedQueue");
  } else if (status != ALLSTOP_OK) {
    napi_throw_error(env, "ERR_ALLSTOP_FAILED_PRECONDITION",
                     "The BoundedQueue comes from a copy of allstop with an "
                     "incompatible native interface");
  }
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ALLSTOP_ALLSTOP_NODE_H_ */
