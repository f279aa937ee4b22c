/*
 * allstop_node.h - from a JavaScript value to a checked handle.
 *
 * For Node addons, in C or C++, on plain Node-API (8 or later). The value is the
 * `Coordinator` or `BoundedQueue` object itself, as your JavaScript caller passed it. Nothing is
 * linked and nothing of JavaScript is run: no getter, no proxy trap.
 */
#ifndef ALLSTOP_ALLSTOP_NODE_H_
#define ALLSTOP_ALLSTOP_NODE_H_

#include <node_api.h>

#include "allstop.h"

#if defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX /* min and max as macros break the standard library's */
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

/* Strict C and POSIX hide dladdr, which every libc of Linux and macOS has. */
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

/*
 * Keeps the including module in memory until the process ends. Node unmaps an
 * addon when the last environment that loaded it ends; a native thread that is
 * still running its code would crash. allstop_from_napi calls this; call it
 * yourself if you start threads before that. Any thread; idempotent.
 */
static inline void allstop_pin_module(void) {
  static int pinned = 0; /* racing callers pin twice, which is harmless */
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

/* The capsule that `value` carries, if it is one of ours and of that kind. */
static inline allstop_status allstop_capsule_from_napi(napi_env env, napi_value value,
                                                       uint32_t kind,
                                                       const allstop_capsule **capsule) {
  static const napi_type_tag tag = {ALLSTOP_CAPSULE_TAG_LOWER, ALLSTOP_CAPSULE_TAG_UPPER};
  napi_valuetype type;
  bool tagged = false;
  void *data = NULL;
  allstop_pin_module();
  /* Type first: asking a primitive for its tag is an error on some runtimes. */
  if (napi_typeof(env, value, &type) != napi_ok || type != napi_object ||
      napi_check_object_type_tag(env, value, &tag, &tagged) != napi_ok || !tagged ||
      napi_unwrap(env, value, &data) != napi_ok || data == NULL) {
    return ALLSTOP_INVALID_HANDLE;
  }
  *capsule = (const allstop_capsule *)data;
  if ((*capsule)->major != ALLSTOP_ABI_MAJOR) return ALLSTOP_FAILED_PRECONDITION;
  return (*capsule)->kind == kind ? ALLSTOP_OK : ALLSTOP_INVALID_HANDLE;
}

/*
 * Turns `value` into a handle that owns one reference: give it back with
 * allstop_release, on whatever thread you like. Call it on the JavaScript
 * thread of `env`.
 *
 * ALLSTOP_OK; ALLSTOP_INVALID_HANDLE: not a `Coordinator` (a plain object, a
 * proxy, a primitive, an object of another addon); ALLSTOP_FAILED_PRECONDITION:
 * a `Coordinator` of a copy of the package whose ABI has another major version.
 * No JavaScript exception is pending afterwards, and `*coord` is untouched
 * unless it is ALLSTOP_OK.
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

/*
 * The same of a `BoundedQueue`: the handle owns one reference, to be given back with
 * allstop_queue_release. ALLSTOP_INVALID_HANDLE: not a `BoundedQueue`. Since 1.2.
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

/*
 * Throws the JavaScript error for a status that allstop_from_napi returned: a
 * TypeError with the code ERR_ALLSTOP_INVALID_HANDLE, or an Error with
 * ERR_ALLSTOP_FAILED_PRECONDITION. On the JavaScript thread of `env`.
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

/* The same for one that allstop_queue_from_napi returned. */
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
