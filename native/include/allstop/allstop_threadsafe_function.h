/**
 * @file allstop_threadsafe_function.h
 * A napi_threadsafe_function that native threads may call at any time, also after the end of
 * its environment. The same in C++: allstop_threadsafe_function.hpp.
 *
 * For any Node addon in C or C++, on plain Node-API (version 8 or later), also for an addon that
 * uses nothing else of allstop. The addon links nothing of allstop and needs no allstop at run
 * time; on POSIX systems it links the threads library (`-pthread`), as Node itself does.
 *
 * @code
 *   static void OnProgress(napi_env env, napi_value function, void *context, void *data) {
 *     if (env != NULL) CallWithNumber(env, function, *(int *)data);
 *     free(data);
 *   }
 *   ...
 *   job->progress = allstop_threadsafe_function_create(env, js_function, "progress", OnProgress,
 *                                                      OnEnvironmentEnd, job, 0);
 *   ...
 *   // on a native thread, which has a reference of its own
 *   if (!allstop_threadsafe_function_call(progress, number)) free(number);
 *   allstop_threadsafe_function_release(progress);
 * @endcode
 *
 * Why it is needed. An environment is a thread of JavaScript, the main thread or a worker.
 * Node 20 and 22 abort the process when a native thread calls a thread-safe function whose
 * worker has ended. And every version of Node unmaps an addon when the last environment that
 * loaded the addon ends, even if the addon's threads are running.
 *
 * How it works. Every use of the napi_threadsafe_function happens under a mutex. A cleanup
 * hook of the environment takes the function away under the same mutex; Node runs hooks in
 * reverse order, and this hook is registered after the function was created, so it runs
 * before Node frees the function. The module that includes this header stays in memory until
 * the process ends.
 */
#ifndef ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_H_
#define ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_H_

#include <node_api.h>
#include <stdlib.h>

#include "allstop_pin_module.h"

#if !defined(_WIN32)
#include <pthread.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A thread-safe function. Each thread that uses it owns a reference; any thread may give back
 * the last one, before or after the end of the environment.
 */
typedef struct allstop_threadsafe_function allstop_threadsafe_function;

/**
 * Runs on the JavaScript thread, once for each allstop_threadsafe_function_call that returned
 * ALLSTOP_POSTED, with the `function` and the `context` given to create. It must leave no
 * JavaScript exception pending: napi_get_and_clear_last_exception, then napi_fatal_exception, make
 * an uncaught exception of it. A null `env` means that the function was closed or the environment
 * has ended: then free `data` and touch nothing else. In particular, `context` may be freed
 * already.
 */
typedef void (*allstop_call_js)(napi_env env, napi_value function, void *context, void *data);

/** What became of a call: only ALLSTOP_CLOSED is false. */
typedef enum allstop_posted {
  ALLSTOP_CLOSED = 0, /**< closed, or the environment has ended: nothing was queued */
  ALLSTOP_POSTED = 1, /**< queued */
  ALLSTOP_FULL = 2    /**< `limit` calls are queued already: nothing was queued */
} allstop_posted;

/** The fields belong to the functions below. */
struct allstop_threadsafe_function {
#if defined(_WIN32)
  SRWLOCK lock;
#else
  pthread_mutex_t lock;
#endif
  napi_threadsafe_function function; /* held by `lock` during every use; NULL once closed */
  size_t references;                 /* held by `lock` */
  napi_env env;                      /* this and the fields below: the JavaScript thread only */
  void (*on_environment_end)(void *owner);
  void (*on_finalized)(void *owner);
  void *owner;
  bool hook_has_run, hook_is_running, is_finalized;
};

/* The functions between here and allstop_threadsafe_function_create are not part of the
 * interface. */

static inline void allstop_threadsafe_function_lock(allstop_threadsafe_function *self) {
#if defined(_WIN32)
  AcquireSRWLockExclusive(&self->lock);
#else
  pthread_mutex_lock(&self->lock);
#endif
}

static inline void allstop_threadsafe_function_unlock(allstop_threadsafe_function *self) {
#if defined(_WIN32)
  ReleaseSRWLockExclusive(&self->lock);
#else
  pthread_mutex_unlock(&self->lock);
#endif
}

static inline void allstop_threadsafe_function_free(allstop_threadsafe_function *self) {
#if !defined(_WIN32)
  pthread_mutex_destroy(&self->lock);
#endif
  free(self);
}

static inline bool allstop_threadsafe_function_take_away(allstop_threadsafe_function *self) {
  napi_threadsafe_function function;
  allstop_threadsafe_function_lock(self); /* afterwards no thread is in a call of `function` */
  function = self->function;
  self->function = NULL;
  allstop_threadsafe_function_unlock(self);
  /* Without the lock: a runtime may run the finalizer, which takes it, inside of this. */
  if (function != NULL) napi_release_threadsafe_function(function, napi_tsfn_abort);
  return function != NULL;
}

/**
 * Adds a reference: one for each thread that uses the function. Any thread that has one.
 *
 * @returns `self`
 */
static inline allstop_threadsafe_function *allstop_threadsafe_function_retain(
    allstop_threadsafe_function *self) {
  allstop_threadsafe_function_lock(self);
  ++self->references;
  allstop_threadsafe_function_unlock(self);
  return self;
}

/**
 * Gives a reference back. Any thread, also after the end of the environment. This closes
 * nothing: the function itself lives until allstop_threadsafe_function_close or the end of the
 * environment. NULL is ignored.
 */
static inline void allstop_threadsafe_function_release(allstop_threadsafe_function *self) {
  bool is_last;
  if (self == NULL) return;
  allstop_threadsafe_function_lock(self);
  is_last = --self->references == 0;
  allstop_threadsafe_function_unlock(self);
  if (is_last) allstop_threadsafe_function_free(self);
}

/* Tells the owner that Node has let go, and gives back the reference that Node had. */
static inline void allstop_threadsafe_function_let_go(allstop_threadsafe_function *self) {
  if (self->on_finalized != NULL) self->on_finalized(self->owner);
  allstop_threadsafe_function_release(self);
}

static inline void allstop_threadsafe_function_hook(void *data) {
  allstop_threadsafe_function *self = (allstop_threadsafe_function *)data;
  self->hook_has_run = true;
  self->hook_is_running = true; /* a runtime may run the finalizer inside of take_away */
  if (allstop_threadsafe_function_take_away(self) && self->on_environment_end != NULL) {
    self->on_environment_end(self->owner);
  }
  self->hook_is_running = false;
  if (self->is_finalized) allstop_threadsafe_function_let_go(self);
}

static inline void allstop_threadsafe_function_finalize(napi_env env, void *data, void *hint) {
  allstop_threadsafe_function *self = (allstop_threadsafe_function *)data;
  (void)env;
  (void)hint;
  /* Closed by close, not by the hook: remove the hook, or it would use the freed `self`. */
  if (!self->hook_has_run) {
    napi_remove_env_cleanup_hook(self->env, allstop_threadsafe_function_hook, self);
  }
  self->is_finalized = true;
  if (!self->hook_is_running) allstop_threadsafe_function_let_go(self);
}

/* As allstop_threadsafe_function_create, with a context for `call_js` and an `owner` for the other
 * two. `on_finalized` is called once, on the JavaScript thread, when neither `on_environment_end`
 * nor `call_js` with an `env` will run any more; not if NULL is returned. */
static inline allstop_threadsafe_function *allstop_threadsafe_function_make(
    napi_env env, napi_value function, const char *name, allstop_call_js call_js, void *context,
    void (*on_environment_end)(void *owner), void (*on_finalized)(void *owner), void *owner,
    size_t limit) {
  allstop_threadsafe_function *self;
  napi_value resource;
  allstop_pin_module();
  if (napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &resource) != napi_ok) return NULL;
  self = (allstop_threadsafe_function *)calloc(1, sizeof *self);
  if (self == NULL) return NULL;
#if defined(_WIN32)
  InitializeSRWLock(&self->lock);
#else
  if (pthread_mutex_init(&self->lock, NULL) != 0) {
    free(self);
    return NULL;
  }
#endif
  self->references = 2; /* the caller's, and the one that the finalizer gives back */
  self->env = env;
  self->on_environment_end = on_environment_end;
  self->on_finalized = on_finalized;
  self->owner = owner;
  if (napi_create_threadsafe_function(env, function, NULL, resource, limit, 1, self,
                                      allstop_threadsafe_function_finalize, context, call_js,
                                      &self->function) != napi_ok) {
    allstop_threadsafe_function_free(self);
    return NULL;
  }
  napi_unref_threadsafe_function(env, self->function);
  napi_add_env_cleanup_hook(env, allstop_threadsafe_function_hook, self);
  return self;
}

/**
 * Creates a thread-safe function. It does not keep the event loop alive; see
 * allstop_threadsafe_function_set_referenced. Call it on the JavaScript thread of `env`.
 *
 * @param function passed to `call_js`; may be NULL
 * @param name shown by Node's diagnostics, in UTF-8
 * @param call_js see allstop_call_js; not NULL
 * @param on_environment_end runs on the JavaScript thread when the environment ends, once, with
 *   no lock held: after that calls are refused, and `call_js` runs no more with an `env`. It may
 *   delete references (napi_delete_reference), free `context` and take native locks, but must
 *   not call JavaScript, and must not wait for the event loop. It is not called after
 *   allstop_threadsafe_function_close. May be NULL
 * @param context for `call_js` and `on_environment_end`; must live until
 *   `on_environment_end` has been called or allstop_threadsafe_function_close has returned
 * @param limit the most calls that wait for the JavaScript thread; 0: as many as memory holds. A
 *   native thread that is faster than JavaScript fills the memory without a limit
 * @returns an object with one reference, which is yours; NULL if Node-API reports an error or
 *   memory has run out
 */
static inline allstop_threadsafe_function *allstop_threadsafe_function_create(
    napi_env env, napi_value function, const char *name, allstop_call_js call_js,
    void (*on_environment_end)(void *context), void *context, size_t limit) {
  return allstop_threadsafe_function_make(env, function, name, call_js, context, on_environment_end,
                                          NULL, context, limit);
}

/**
 * Has `call_js(env, function, context, data)` called on the JavaScript thread. Any thread that
 * has a reference; does not block.
 *
 * @returns ALLSTOP_POSTED; else `call_js` will not be called, and `data` is still the caller's:
 *   ALLSTOP_CLOSED (0), or ALLSTOP_FULL, if create was given a limit
 */
static inline allstop_posted allstop_threadsafe_function_call(allstop_threadsafe_function *self,
                                                              void *data) {
  napi_status status = napi_closing;
  allstop_threadsafe_function_lock(self);
  if (self->function != NULL) {
    status = napi_call_threadsafe_function(self->function, data, napi_tsfn_nonblocking);
  }
  allstop_threadsafe_function_unlock(self);
  if (status == napi_queue_full) return ALLSTOP_FULL;
  return status == napi_ok ? ALLSTOP_POSTED : ALLSTOP_CLOSED;
}

/**
 * Sets whether the function keeps the event loop, and so the process, alive. After create it
 * does not. Call it on the JavaScript thread of `env`.
 */
static inline void allstop_threadsafe_function_set_referenced(allstop_threadsafe_function *self,
                                                              napi_env env, bool referenced) {
  allstop_threadsafe_function_lock(self);
  if (self->function != NULL) {
    if (referenced) {
      napi_ref_threadsafe_function(env, self->function);
    } else {
      napi_unref_threadsafe_function(env, self->function);
    }
  }
  allstop_threadsafe_function_unlock(self);
}

/**
 * Closes the function before the end of the environment: later calls are refused, and
 * `on_environment_end` will not be called. Call it on the JavaScript thread of the environment;
 * closing again does nothing. It gives no reference back.
 */
static inline void allstop_threadsafe_function_close(allstop_threadsafe_function *self) {
  allstop_threadsafe_function_take_away(self);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "allstop_node.h" /* last: it includes allstop_stop_flag.h, which uses the functions above */

#endif /* ALLSTOP_ALLSTOP_THREADSAFE_FUNCTION_H_ */
