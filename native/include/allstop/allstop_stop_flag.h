/**
 * @file allstop_stop_flag.h
 * A stop flag for native threads, from whatever a JavaScript caller passes as `signal`: a
 * `Coordinator` or its `signal`, any other AbortSignal, or nothing. The same in C++:
 * allstop_stop_flag.hpp.
 *
 * For any Node addon in C or C++, on plain Node-API (version 8 or later). The addon links nothing
 * of allstop, and needs no allstop at run time; on POSIX systems it links the threads library
 * (`-pthread`), as Node itself does. allstop_node.h includes this file.
 *
 * @code
 *   allstop_stop_flag flag;                        // work(signal)
 *   if (allstop_stop_flag_from_napi(env, argument, &flag) != ALLSTOP_OK) {
 *     allstop_throw(env, ALLSTOP_INVALID_HANDLE, "The argument must be an AbortSignal");
 *     return NULL;
 *   }
 *   ...
 *   while (!allstop_stop_flag_should_stop(&flag)) work();      // on any thread
 *   allstop_stop_flag_release(&flag);
 * @endcode
 *
 * When a flag is stopped:
 *
 *   - of a `Coordinator`: while the coordinator is stopped. A clearStop() ends that.
 *   - of the `signal` of a coordinator: from the next stop of the coordinator on, for good, also
 *     while the event loop is busy; a clearStop() changes nothing.
 *   - of any other AbortSignal: from the moment when it aborts, for good. That moment comes on its
 *     JavaScript thread: a busy event loop delays it. The end of that thread (a terminated worker)
 *     stops the flag, too, since nothing could abort the signal any more.
 *     An earlier listener of the signal that calls stopImmediatePropagation() hides that moment.
 *   - of an AbortSignal that has aborted already: from the beginning, for good.
 *   - of `undefined` or `null`: never.
 *
 * How it works. The flags of one AbortSignal share a source, which is a listener of the signal and
 * hangs on it under a symbol, so that the next flag finds it. The last flag that is released, on
 * any thread, has the JavaScript thread remove the listener.
 *
 *   1. The JavaScript thread alone makes a source, finds it, and takes it off its signal.
 *   2. A source lives as long as one of its owners: each flag, the listener until it is
 *      collected, and the signal from the listening to the end of the listening (is_listening).
 *   3. `stopped` goes from 0 to 1 at most once.
 *   4. A source whose flags have gone is taken off its signal by the JavaScript thread, if `flags`
 *      still is 0 there: a flag that was made meanwhile uses the source again.
 */
#ifndef ALLSTOP_ALLSTOP_STOP_FLAG_H_
#define ALLSTOP_ALLSTOP_STOP_FLAG_H_

#include <stdlib.h>
#include <string.h>

#include "allstop_node.h"
#include "allstop_threadsafe_function.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct allstop_stop_source allstop_stop_source;

/** A flag. Copy it only with allstop_stop_flag_retain. One that is all zeros never stops. The
 * fields belong to the functions below. */
typedef struct allstop_stop_flag {
  const uint32_t *word;        /* not 0 while the flag is stopped; NULL: it never stops */
  allstop_stop_source *source; /* of an AbortSignal, else NULL */
  allstop_coordinator coord;   /* of a Coordinator, else all zeros */
} allstop_stop_flag;

/**
 * Makes a flag from a JavaScript value. Call it on the JavaScript thread of `env`; does not block.
 * No JavaScript exception is pending afterwards. It reads properties of an AbortSignal, and adds a
 * listener for 'abort' unless the signal has one of allstop's already. An object with a boolean
 * `aborted` and a function `addEventListener` counts as an AbortSignal, since polyfills make such.
 *
 * @param[out] out a flag that you give back with allstop_stop_flag_release on any thread; all zeros
 *   unless ALLSTOP_OK
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_HANDLE `value` is no Coordinator, AbortSignal, `undefined` or `null`
 * @retval ALLSTOP_FAILED_PRECONDITION `value` is a `Coordinator` of a copy of the package whose
 *   interface has another major version than this header
 * @retval ALLSTOP_RESOURCE_EXHAUSTED
 */
static inline allstop_status allstop_stop_flag_from_napi(napi_env env, napi_value value,
                                                         allstop_stop_flag *out);

/**
 * Checks for a stop with one load. Any thread; does not block.
 *
 * @returns 1 if the flag is stopped, else 0. What the thread that stopped or aborted has written
 *   before is visible then.
 */
static inline int allstop_stop_flag_should_stop(const allstop_stop_flag *flag) {
  allstop_coordinator view = {NULL, NULL, NULL};
  view.stop_word = flag->word;
  return flag->word != NULL && allstop_should_stop(&view);
}

/** Makes `copy` a flag of its own, which is released on its own. Any thread; does not block. */
static inline void allstop_stop_flag_retain(const allstop_stop_flag *flag, allstop_stop_flag *copy);

/** Gives a flag back, and sets it to all zeros. Any thread, also after the end of the environment;
 * does not block. A flag of all zeros is allowed. */
static inline void allstop_stop_flag_release(allstop_stop_flag *flag);

/* The rest of this file is not part of the interface. */

/* The layout of the first three fields belongs to the type tag: another addon may have made the
 * source that hangs on a signal. */
struct allstop_stop_source {
  uint32_t stopped;                             /* atomic */
  void (*retain)(allstop_stop_source *source);  /* for one more flag */
  void (*release)(allstop_stop_source *source); /* for one flag less */
  uint32_t flags;                               /* atomic */
  uint32_t owners;                              /* atomic: invariant 2 */
  allstop_threadsafe_function *bell;            /* rung when `flags` gets 0 */
  allstop_coordinator coord;                    /* if the signal is that of a coordinator */
  allstop_callback *callback;                   /* of `coord` */
  /* The JavaScript thread only: */
  napi_env env;
  napi_ref signal;
  napi_ref listener; /* a function, which wraps the source */
  bool is_listening;
  bool is_attached; /* whether the listener hangs on the signal under the symbol */
};

static const napi_type_tag allstop_stop_source_tag = {UINT64_C(0x616c6c73746f7046),
                                                      UINT64_C(0x5b1f6d20c94e8a31)};

static inline uint32_t allstop_stop_source_add(uint32_t *count, int32_t difference) {
#if defined(__GNUC__) || defined(__clang__)
  return __atomic_add_fetch(count, (uint32_t)difference, __ATOMIC_ACQ_REL);
#else
  return (uint32_t)InterlockedExchangeAdd((volatile LONG *)count, difference) +
         (uint32_t)difference;
#endif
}

static inline void allstop_stop_source_stop(void *context) {
  allstop_stop_source *source = (allstop_stop_source *)context;
#if defined(__GNUC__) || defined(__clang__)
  __atomic_store_n(&source->stopped, 1u, __ATOMIC_RELEASE);
#else
  InterlockedExchange((volatile LONG *)&source->stopped, 1);
#endif
}

static inline void allstop_stop_source_drop(allstop_stop_source *source) {
  if (allstop_stop_source_add(&source->owners, -1) != 0) return;
  if (source->callback != NULL) allstop_callback_release(&source->coord, source->callback);
  if (source->coord.state != NULL) allstop_release(&source->coord);
  allstop_threadsafe_function_release(source->bell);
  free(source);
}

static inline void allstop_stop_source_retain(allstop_stop_source *source) {
  allstop_stop_source_add(&source->owners, 1);
  allstop_stop_source_add(&source->flags, 1);
}

static inline void allstop_stop_source_release(allstop_stop_source *source) {
  if (allstop_stop_source_add(&source->flags, -1) == 0) {
    allstop_threadsafe_function_call(source->bell, NULL);
  }
  allstop_stop_source_drop(source);
}

static inline void allstop_stop_source_collected(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  allstop_stop_source_drop((allstop_stop_source *)data);
}

/* With NAPI_EXPERIMENTAL the headers of some versions of Node give finalizers a const environment:
 * the one that napi_wrap takes is chosen by its type. */
#ifdef __cplusplus
extern "C++" inline void allstop_stop_source_collected(const struct napi_env__ *, void *data,
                                                       void *hint) {
  allstop_stop_source_collected(static_cast<napi_env>(nullptr), data, hint);
}
#define ALLSTOP_STOP_SOURCE_COLLECTED allstop_stop_source_collected
#else
static inline void allstop_stop_source_collected_const(const struct napi_env__ *env, void *data,
                                                       void *hint) {
  (void)env;
  allstop_stop_source_collected(NULL, data, hint);
}
#define ALLSTOP_STOP_SOURCE_COLLECTED                                                         \
  _Generic(&napi_wrap, napi_status(*)(napi_env, napi_value, void *,                           \
                                      void (*)(napi_env, void *, void *), void *, napi_ref *) \
           : allstop_stop_source_collected, default                                           \
           : allstop_stop_source_collected_const)
#endif

static inline void allstop_stop_source_clear_exception(napi_env env) {
  bool pending = false;
  napi_value exception;
  if (napi_is_exception_pending(env, &pending) == napi_ok && pending) {
    napi_get_and_clear_last_exception(env, &exception);
  }
}

/* The symbol under which the listener hangs on its signal: Symbol.for('allstop.stopFlag'). */
static inline bool allstop_stop_source_key(napi_env env, napi_value *key) {
  napi_value global, symbol, symbol_for, name;
  return napi_get_global(env, &global) == napi_ok &&
         napi_get_named_property(env, global, "Symbol", &symbol) == napi_ok &&
         napi_get_named_property(env, symbol, "for", &symbol_for) == napi_ok &&
         napi_create_string_utf8(env, "allstop.stopFlag", NAPI_AUTO_LENGTH, &name) == napi_ok &&
         napi_call_function(env, symbol, symbol_for, 1, &name, key) == napi_ok;
}

/* Calls signal.addEventListener or removeEventListener. */
static inline bool allstop_stop_source_call(napi_env env, napi_value signal, const char *method,
                                            napi_value listener) {
  napi_value function, result;
  napi_value arguments[2];
  arguments[1] = listener;
  return napi_get_named_property(env, signal, method, &function) == napi_ok &&
         napi_create_string_utf8(env, "abort", NAPI_AUTO_LENGTH, &arguments[0]) == napi_ok &&
         napi_call_function(env, signal, function, 2, arguments, &result) == napi_ok;
}

/* Takes the source off its signal. The JavaScript thread only. */
static inline void allstop_stop_source_unlisten(allstop_stop_source *source) {
  napi_env env = source->env;
  napi_handle_scope scope = NULL;
  napi_value signal = NULL, listener = NULL, key;
  bool deleted;
  if (!source->is_listening) return;
  source->is_listening = false;
  if (napi_open_handle_scope(env, &scope) != napi_ok) scope = NULL;
  if (napi_get_reference_value(env, source->signal, &signal) == napi_ok && signal != NULL &&
      napi_get_reference_value(env, source->listener, &listener) == napi_ok && listener != NULL) {
    /* A sealed signal keeps the listener, in which no flag may find the source any more. */
    napi_remove_wrap(env, listener, NULL);
    allstop_stop_source_call(env, signal, "removeEventListener", listener);
    allstop_stop_source_clear_exception(env);
    if (source->is_attached && allstop_stop_source_key(env, &key)) {
      napi_delete_property(env, signal, key, &deleted);
    }
    allstop_stop_source_clear_exception(env);
  }
  napi_delete_reference(env, source->signal);
  napi_delete_reference(env, source->listener);
  if (scope != NULL) napi_close_handle_scope(env, scope);
  allstop_threadsafe_function_close(source->bell);
  allstop_stop_source_drop(source);
}

/* The bell: the last flag has gone, on any thread. */
static inline void allstop_stop_source_sweep(napi_env env, napi_value function, void *context,
                                             void *data) {
  allstop_stop_source *source = (allstop_stop_source *)context;
  (void)function;
  (void)data;
  if (env == NULL) return; /* then `source` may have been freed */
  if (allstop_stop_source_add(&source->flags, 0) == 0) allstop_stop_source_unlisten(source);
}

static inline void allstop_stop_source_environment_ended(void *context) {
  allstop_stop_source *source = (allstop_stop_source *)context;
  if (!source->is_listening) return;
  source->is_listening = false;
  /* Other threads may still stop a coordinator. */
  if (source->coord.state == NULL) allstop_stop_source_stop(source);
  napi_delete_reference(source->env, source->signal);
  napi_delete_reference(source->env, source->listener);
  allstop_stop_source_drop(source);
}

/* The listener: the signal has aborted. */
static inline napi_value allstop_stop_source_aborted(napi_env env, napi_callback_info info) {
  void *source = NULL;
  if (napi_get_cb_info(env, info, NULL, NULL, NULL, &source) == napi_ok) {
    allstop_stop_source_stop(source);
    allstop_stop_source_unlisten((allstop_stop_source *)source);
  }
  return NULL;
}

/* The source that hangs on `signal` itself under `key`, or NULL. */
static inline allstop_stop_source *allstop_stop_source_find(napi_env env, napi_value signal,
                                                            napi_value key) {
  napi_value listener;
  napi_valuetype type;
  void *data = NULL;
  bool is_own = false, is_tagged = false;
  /* An object: the listener that the headers of an older allstop have made. */
  if (napi_has_own_property(env, signal, key, &is_own) != napi_ok || !is_own ||
      napi_get_property(env, signal, key, &listener) != napi_ok ||
      napi_typeof(env, listener, &type) != napi_ok ||
      (type != napi_function && type != napi_object) ||
      napi_check_object_type_tag(env, listener, &allstop_stop_source_tag, &is_tagged) != napi_ok ||
      !is_tagged || napi_unwrap(env, listener, &data) != napi_ok) {
    return NULL;
  }
  return (allstop_stop_source *)data;
}

/* Makes a source with one flag, which listens to `signal`. `coord`: a reference that the source
 * takes over, or all zeros. */
static inline allstop_status allstop_stop_source_create(napi_env env, napi_value signal,
                                                        napi_value key,
                                                        const allstop_coordinator *coord,
                                                        allstop_stop_source **created) {
  napi_value listener;
  napi_property_descriptor property = {NULL, key, NULL, NULL, NULL, NULL, napi_configurable, NULL};
  allstop_stop_source *source = (allstop_stop_source *)calloc(1, sizeof(*source));
  if (source == NULL) {
    if (coord->state != NULL) allstop_release(coord);
    return ALLSTOP_RESOURCE_EXHAUSTED;
  }
  source->retain = allstop_stop_source_retain;
  source->release = allstop_stop_source_release;
  source->flags = 1;
  source->owners = 1; /* the flag's */
  source->coord = *coord;
  source->env = env;
  if (coord->state != NULL &&
      allstop_on_stop(coord, allstop_stop_source_stop, source, &source->callback) != ALLSTOP_OK) {
    allstop_stop_source_drop(source);
    return ALLSTOP_RESOURCE_EXHAUSTED;
  }
  /* A function, since polyfills take no object with handleEvent. */
  if (napi_create_function(env, "allstop_stop_flag", NAPI_AUTO_LENGTH, allstop_stop_source_aborted,
                           source, &listener) != napi_ok ||
      napi_type_tag_object(env, listener, &allstop_stop_source_tag) != napi_ok ||
      napi_wrap(env, listener, source, NULL, NULL, NULL) != napi_ok ||
      napi_add_finalizer(env, listener, source, ALLSTOP_STOP_SOURCE_COLLECTED, NULL, NULL) !=
          napi_ok) {
    allstop_stop_source_drop(source);
    return ALLSTOP_RESOURCE_EXHAUSTED;
  }
  allstop_stop_source_add(&source->owners, 1); /* the listener's */
  if (napi_create_reference(env, signal, 1, &source->signal) != napi_ok ||
      napi_create_reference(env, listener, 1, &source->listener) != napi_ok ||
      (source->bell = allstop_threadsafe_function_create(
           env, NULL, "allstop_stop_flag", allstop_stop_source_sweep,
           allstop_stop_source_environment_ended, source, 0)) == NULL) {
    if (source->signal != NULL) napi_delete_reference(env, source->signal);
    if (source->listener != NULL) napi_delete_reference(env, source->listener);
    allstop_stop_source_drop(source);
    return ALLSTOP_RESOURCE_EXHAUSTED;
  }
  source->is_listening = true;
  allstop_stop_source_add(&source->owners, 1); /* the signal's */
  if (!allstop_stop_source_call(env, signal, "addEventListener", listener)) {
    allstop_stop_source_unlisten(source);
    allstop_stop_source_drop(source);
    return ALLSTOP_INVALID_HANDLE;
  }
  /* A signal that is frozen gets a listener for each flag. */
  property.value = listener;
  source->is_attached = key != NULL && napi_define_properties(env, signal, 1, &property) == napi_ok;
  *created = source;
  return ALLSTOP_OK;
}

static inline allstop_status allstop_stop_source_of(napi_env env, napi_value signal,
                                                    const allstop_coordinator *coord,
                                                    allstop_stop_source **source) {
  napi_value key = NULL;
  if (!allstop_stop_source_key(env, &key)) {
    allstop_stop_source_clear_exception(env);
    key = NULL;
  }
  *source = key == NULL ? NULL : allstop_stop_source_find(env, signal, key);
  allstop_stop_source_clear_exception(env);
  if (*source == NULL) return allstop_stop_source_create(env, signal, key, coord, source);
  (*source)->retain(*source);
  if (coord->state != NULL) allstop_release(coord);
  return ALLSTOP_OK;
}

static inline const uint32_t *allstop_stop_flag_stopped_word(void) {
  static const uint32_t stopped = 1;
  return &stopped;
}

static inline allstop_status allstop_stop_flag_of_object(napi_env env, napi_value value,
                                                         allstop_stop_flag *out) {
  allstop_coordinator coord = {NULL, NULL, NULL};
  napi_value property;
  bool aborted = false;
  allstop_status status = allstop_from_napi(env, value, &coord);
  napi_valuetype listens = napi_undefined;
  /* A request of Node has a boolean `aborted`, too: only an EventTarget is a signal. */
  const bool is_signal =
      napi_get_named_property(env, value, "addEventListener", &property) == napi_ok &&
      napi_typeof(env, property, &listens) == napi_ok && listens == napi_function &&
      napi_get_named_property(env, value, "aborted", &property) == napi_ok &&
      napi_get_value_bool(env, property, &aborted) == napi_ok;
  if (!is_signal) {
    if (status != ALLSTOP_OK) return status;
    out->coord = coord;
    out->word = coord.stop_word;
    return ALLSTOP_OK;
  }
  if (aborted) {
    if (coord.state != NULL) allstop_release(&coord);
    out->word = allstop_stop_flag_stopped_word();
    return ALLSTOP_OK;
  }
  status = allstop_stop_source_of(env, value, &coord, &out->source);
  if (status == ALLSTOP_OK) out->word = &out->source->stopped;
  return status;
}

static inline allstop_status allstop_stop_flag_from_napi(napi_env env, napi_value value,
                                                         allstop_stop_flag *out) {
  napi_valuetype type;
  napi_handle_scope scope;
  allstop_status status;
  memset(out, 0, sizeof(*out));
  if (napi_typeof(env, value, &type) != napi_ok) return ALLSTOP_INVALID_HANDLE;
  if (type == napi_undefined || type == napi_null) return ALLSTOP_OK;
  if (type != napi_object) return ALLSTOP_INVALID_HANDLE;
  if (napi_open_handle_scope(env, &scope) != napi_ok) return ALLSTOP_RESOURCE_EXHAUSTED;
  status = allstop_stop_flag_of_object(env, value, out);
  allstop_stop_source_clear_exception(env);
  napi_close_handle_scope(env, scope);
  if (status != ALLSTOP_OK) memset(out, 0, sizeof(*out));
  return status;
}

static inline void allstop_stop_flag_retain(const allstop_stop_flag *flag,
                                            allstop_stop_flag *copy) {
  *copy = *flag;
  if (copy->source != NULL) copy->source->retain(copy->source);
  if (copy->coord.state != NULL) allstop_retain(&copy->coord);
}

static inline void allstop_stop_flag_release(allstop_stop_flag *flag) {
  const allstop_stop_flag released = *flag;
  memset(flag, 0, sizeof(*flag));
  if (released.source != NULL) released.source->release(released.source);
  if (released.coord.state != NULL) allstop_release(&released.coord);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#if (defined(_MSVC_LANG) && _MSVC_LANG >= 201703L) || \
    (defined(__cplusplus) && __cplusplus >= 201703L)
#include "allstop_stop_flag.hpp"
#endif

#endif /* ALLSTOP_ALLSTOP_STOP_FLAG_H_ */
