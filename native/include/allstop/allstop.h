/*
 * allstop.h - one stop flag and one exception record, for native code.
 *
 * Plain C (C11) and C++. Nothing is linked: everything goes through a table of
 * functions that comes with the handle (see allstop_node.h for how a Node addon
 * gets one from a JavaScript `Coordinator`).
 *
 * The promise
 *   - An `allstop_coordinator` is a small value. Copying it copies a borrowed
 *     reference; `allstop_retain` and `allstop_release` count owners. While you
 *     own one reference every function here may be called, from any thread, for
 *     as long as the process runs: also after the JavaScript environment that
 *     gave you the handle has ended, and after its `Coordinator` object has
 *     been collected.
 *   - No function throws, and none calls into JavaScript.
 *   - Only functions that say "blocks" or "waits" block. Never call those on a thread that
 *     runs a JavaScript event loop.
 *   - Strings are UTF-8 with a length and need not end in NUL. Those that you
 *     pass are copied before the call returns.
 *   - A handle is used with the table that it came with. Two copies of the
 *     package in one process are two worlds, each with a table of its own.
 *
 * What is not promised: that a thread which never asks is stopped. Stopping is
 * cooperative.
 *
 * Versions: `size`, `major` and `minor` come first in the table. Within one
 * major version functions are only appended to it, and fields to the structs.
 * Where the package that is installed is older than this header, the functions
 * that it lacks return ALLSTOP_UNAVAILABLE. docs/abi.md has the rules.
 */
#ifndef ALLSTOP_ALLSTOP_H_
#define ALLSTOP_ALLSTOP_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ALLSTOP_ABI_MAJOR 1u
#define ALLSTOP_ABI_MINOR 2u

/* Whether `table` is new enough to have `member`. */
#define ALLSTOP_HAS(table, member) \
  ((table)->size >= offsetof(allstop_table, member) + sizeof((table)->member))

/*
 * What a call came to. The numbers up to 16 are those of gRPC and TensorFlow;
 * from 100 on they are ours. TypeScript: the class of the same name, with the
 * code ERR_ALLSTOP_<NAME>.
 */
typedef int32_t allstop_status;
#define ALLSTOP_OK ((allstop_status)0)
#define ALLSTOP_CANCELLED ((allstop_status)1)
#define ALLSTOP_INVALID_ARGUMENT ((allstop_status)3)
#define ALLSTOP_DEADLINE_EXCEEDED ((allstop_status)4)
#define ALLSTOP_RESOURCE_EXHAUSTED ((allstop_status)8) /* out of memory */
#define ALLSTOP_FAILED_PRECONDITION ((allstop_status)9)
#define ALLSTOP_OUT_OF_RANGE ((allstop_status)11)
#define ALLSTOP_UNAVAILABLE ((allstop_status)14)
#define ALLSTOP_INVALID_HANDLE ((allstop_status)100)
#define ALLSTOP_SELF_JOIN ((allstop_status)101)
#define ALLSTOP_STRAGGLERS ((allstop_status)102)
#define ALLSTOP_STOPPED_BY_ERROR ((allstop_status)103)

/* UTF-8, `size` bytes. {NULL, 0} means "none". */
typedef struct allstop_string {
  const char *data;
  size_t size;
} allstop_string;

typedef struct allstop_state allstop_state;       /* the shared state */
typedef struct allstop_thread allstop_thread;     /* one registered thread */
typedef struct allstop_callback allstop_callback; /* one stop callback */
typedef struct allstop_record allstop_record;     /* one stop record */
typedef struct allstop_looper allstop_looper;     /* one schedule (1.2) */
/* Of queues: see allstop_queue.h. */
typedef struct allstop_queue_state allstop_queue_state;
typedef struct allstop_queue_options allstop_queue_options;
typedef struct allstop_queue_info allstop_queue_info;
typedef struct allstop_item allstop_item;

/*
 * An error to report. Set `size` to sizeof(allstop_error); every string is
 * optional. In JavaScript it is rebuilt as the class that `name` names, if that
 * is one of JavaScript's or of ours (for example "OutOfRangeError"), else as a
 * `NativeError` whose `message` and `nativeType` are those given here.
 */
typedef struct allstop_error {
  uint32_t size;
  uint32_t reserved;          /* 0 */
  allstop_string name;        /* JavaScript's `name` */
  allstop_string message;     /* what() */
  allstop_string code;        /* JavaScript's `code` */
  allstop_string stack;       /* free text, one frame a line */
  allstop_string native_type; /* demangled C++ type, "std::runtime_error" */
  /* Since 1.1 */
  allstop_string id;                 /* from allstop_new_id, or none: a fresh one */
  const struct allstop_error *cause; /* JavaScript's `cause`, or NULL */
} allstop_error;

/* Causes below one another; what is deeper is left out. */
#define ALLSTOP_MAX_CAUSES 32

/*
 * What a new coordinator is like. Set `size` to sizeof(allstop_options); what is
 * left 0 is the default (of a child: its parent's).
 */
typedef struct allstop_options {
  uint32_t size;
  uint32_t reserved;   /* 0 */
  allstop_string name; /* for people */
  /* Errors that count as a normal end, each a class name, `name` or `code`; NULL:
   * OutOfRangeError. Not NULL with a count of 0: none. (TensorFlow's.) */
  const allstop_string *clean_stop_types;
  size_t clean_stop_type_count;
} allstop_options;

#define ALLSTOP_STOP_PLAIN 0 /* nobody reported an error */
#define ALLSTOP_STOP_CLEAN 1 /* an error of a clean-stop type was reported */
#define ALLSTOP_STOP_ERROR 2 /* an error was reported */

#define ALLSTOP_LANGUAGE_JS 0
#define ALLSTOP_LANGUAGE_NATIVE 1

/*
 * What a record says. Set `size` to sizeof(allstop_record_info) before the
 * call. The strings belong to the record and live until it is released.
 */
typedef struct allstop_record_info {
  uint32_t size;
  int32_t kind;            /* ALLSTOP_STOP_* */
  int32_t language;        /* of the thread that asked: ALLSTOP_LANGUAGE_* */
  uint32_t reserved;       /* 0 */
  int64_t requested_at_ms; /* since 1970, wall clock */
  uint64_t thread_id;      /* JS threadId, or the OS thread id if native */
  allstop_string id;
  allstop_string thread_name;
  allstop_string name; /* of the error, as are the next four; none if plain */
  allstop_string message;
  allstop_string code;
  allstop_string stack;
  allstop_string native_type;
} allstop_record_info;

/* For `thread_register`: registered, but not alive until `thread_enter`. A
 * thread that was never started does not hold up a join (TensorFlow's rule). */
#define ALLSTOP_THREAD_UNSTARTED 1u
/* Listed as a looper. Since 1.2: older packages refuse flags that they do not know,
 * with ALLSTOP_INVALID_ARGUMENT. */
#define ALLSTOP_THREAD_LOOPER 2u

/* For `join`: stragglers are no error. */
#define ALLSTOP_JOIN_IGNORE_LIVE_THREADS 1u

/* For `looper_create`: what becomes of the runs that were due while another one took
 * too long. */
#define ALLSTOP_MISSED_TICKS_BURST 0u /* made up for, back to back (TensorFlow's) */
#define ALLSTOP_MISSED_TICKS_SKIP 1u  /* dropped: the next multiple of the interval */
#define ALLSTOP_MISSED_TICKS_DELAY 2u /* none: it counts from the end of a run */

/* Runs once, when a stop is requested, on the thread that requests it (or at
 * once on the thread that registers, if the stop was there already). No lock is
 * held. It must not throw, must not block, and must not wait for JavaScript. */
typedef void (*allstop_stop_fn)(void *context);

/* The functions behind a handle. Use the inline functions below instead. */
typedef struct allstop_table {
  uint32_t size; /* of this table, in bytes, in the library that made it */
  uint32_t major;
  uint32_t minor;
  uint32_t reserved;
  void (*retain)(allstop_state *state);
  void (*release)(allstop_state *state);
  const uint32_t *(*stop_word)(allstop_state *state);
  allstop_status (*request_stop)(allstop_state *state, const allstop_error *error);
  allstop_status (*wait_for_stop)(allstop_state *state, double timeout_ms);
  allstop_status (*clear_stop)(allstop_state *state);
  allstop_status (*stop_record)(allstop_state *state, allstop_record **record);
  allstop_status (*record_info)(const allstop_record *record, allstop_record_info *info);
  void (*record_release)(allstop_record *record);
  allstop_status (*thread_register)(allstop_state *state, allstop_string name, uint32_t flags,
                                    allstop_thread **thread);
  allstop_status (*thread_enter)(allstop_thread *thread);
  void (*thread_done)(allstop_thread *thread, const allstop_error *error);
  allstop_status (*join)(allstop_state *state, double grace_period_ms, uint32_t flags);
  allstop_status (*on_stop)(allstop_state *state, allstop_stop_fn fn, void *context,
                            allstop_callback **callback);
  void (*callback_release)(allstop_callback *callback);
  /* Since 1.1 */
  allstop_status (*create)(const allstop_options *options, allstop_state **state);
  allstop_status (*child)(allstop_state *state, const allstop_options *options,
                          allstop_state **child);
  allstop_status (*report_error)(allstop_state *state, const allstop_error *error);
  allstop_status (*first_error)(allstop_state *state, allstop_record **record);
  size_t (*new_id)(char *buffer, size_t capacity);
  /* Since 1.2 */
  allstop_status (*looper_create)(allstop_state *state, double interval_ms, uint32_t missed_ticks,
                                  allstop_looper **looper);
  allstop_status (*looper_wait)(allstop_looper *looper);
  void (*looper_release)(allstop_looper *looper);
  allstop_status (*queue_create)(const allstop_queue_options *options, allstop_queue_state **queue);
  void (*queue_retain)(allstop_queue_state *queue);
  void (*queue_release)(allstop_queue_state *queue);
  allstop_status (*queue_enqueue)(allstop_queue_state *queue, allstop_item *items, size_t count,
                                  double timeout_ms, size_t *enqueued);
  allstop_status (*queue_dequeue)(allstop_queue_state *queue, allstop_item *items, size_t max,
                                  double timeout_ms, size_t *dequeued);
  allstop_status (*queue_close)(allstop_queue_state *queue, uint32_t flags);
  allstop_status (*queue_info)(allstop_queue_state *queue, allstop_queue_info *info);
  allstop_status (*item_copy)(const void *data, size_t size, allstop_item *item);
} allstop_table;

/* A handle: a borrowed reference to the state, its table, and the word that is
 * not 0 while a stop is requested. */
typedef struct allstop_coordinator {
  const allstop_table *table;
  allstop_state *state;
  const uint32_t *stop_word;
} allstop_coordinator;

/* Makes a string of a NUL-terminated one; NULL is none. Any thread. */
static inline allstop_string allstop_str(const char *text) {
  allstop_string string = {text, 0};
  if (text != NULL) {
    while (text[string.size] != '\0') ++string.size;
  }
  return string;
}

/* One more owner. Any thread that holds a valid handle; does not block. */
static inline void allstop_retain(const allstop_coordinator *coord) {
  coord->table->retain(coord->state);
}

/* One owner less; the last one frees the state. Any thread; does not block. */
static inline void allstop_release(const allstop_coordinator *coord) {
  coord->table->release(coord->state);
}

/*
 * Whether a stop is requested: one load with acquire order, so that what the
 * requester wrote before it asked is visible after a true answer. Any thread.
 */
static inline int allstop_should_stop(const allstop_coordinator *coord) {
#if defined(__GNUC__) || defined(__clang__)
  return __atomic_load_n(coord->stop_word, __ATOMIC_ACQUIRE) != 0;
#elif defined(_MSC_VER)
  uint32_t word = (uint32_t)__iso_volatile_load32((const volatile __int32 *)coord->stop_word);
  _ReadWriteBarrier();
#if defined(_M_ARM64)
  __dmb(_ARM64_BARRIER_ISHLD);
#endif
  return word != 0;
#else
#error "allstop.h: no atomic builtins known for this compiler"
#endif
}

/*
 * Requests a stop of all threads, with an error or (NULL) without one. The
 * first stop wins; a later error is kept as suppressed. Stop callbacks run
 * before it returns, on this thread. Any thread; does not block.
 *
 * ALLSTOP_OK; ALLSTOP_FAILED_PRECONDITION: a join has completed already, so
 * nobody would ever see the error: nothing was changed, handle it yourself;
 * ALLSTOP_INVALID_ARGUMENT: `error->size` is not one that we know;
 * ALLSTOP_RESOURCE_EXHAUSTED: no memory for the record, nothing was changed.
 */
static inline allstop_status allstop_request_stop(const allstop_coordinator *coord,
                                                  const allstop_error *error) {
  return coord->table->request_stop(coord->state, error);
}

/*
 * Waits for a stop. Blocks for `timeout_ms` at most (INFINITY: no limit; 0
 * polls; a monotonic clock). A stop that is cleared at once still ends it.
 * ALLSTOP_OK: stopped; ALLSTOP_DEADLINE_EXCEEDED: timed out;
 * ALLSTOP_INVALID_ARGUMENT: NaN or negative.
 */
static inline allstop_status allstop_wait_for_stop(const allstop_coordinator *coord,
                                                   double timeout_ms) {
  return coord->table->wait_for_stop(coord->state, timeout_ms);
}

/* Clears the flag, the record and "joined". Any thread; does not block.
 * ALLSTOP_FAILED_PRECONDITION: a child whose parent is stopped. */
static inline allstop_status allstop_clear_stop(const allstop_coordinator *coord) {
  return coord->table->clear_stop(coord->state);
}

/* The record of the stop, to be released with allstop_record_release, or NULL
 * when no stop is requested. Any thread. Waits until the requester has said who it
 * is, which it does when it has woken everybody; a second at most. */
static inline allstop_status allstop_stop_record(const allstop_coordinator *coord,
                                                 allstop_record **record) {
  return coord->table->stop_record(coord->state, record);
}

/* Fills `info`. ALLSTOP_INVALID_ARGUMENT: `info->size` is not known. */
static inline allstop_status allstop_record_read(const allstop_coordinator *coord,
                                                 const allstop_record *record,
                                                 allstop_record_info *info) {
  return coord->table->record_info(record, info);
}

/* Frees the record and the strings that it lent. NULL is allowed. */
static inline void allstop_record_release(const allstop_coordinator *coord,
                                          allstop_record *record) {
  coord->table->record_release(record);
}

/*
 * Registers a thread, so that `join` waits for it and `explain()` names it.
 * Call it before the thread is created, on any thread; does not block. The
 * token holds a reference of its own to the state. It must be given back
 * exactly once, by allstop_thread_done.
 */
static inline allstop_status allstop_thread_register(const allstop_coordinator *coord,
                                                     allstop_string name, uint32_t flags,
                                                     allstop_thread **thread) {
  return coord->table->thread_register(coord->state, name, flags, thread);
}

/* To be called first on the registered thread itself: notes its OS thread id,
 * and that requests from here on this thread are its own. Does not block. */
static inline allstop_status allstop_thread_enter(const allstop_coordinator *coord,
                                                  allstop_thread *thread) {
  return coord->table->thread_enter(thread);
}

/*
 * The thread has ended, with an error or (NULL) without one; frees the token.
 * An error requests a stop. It has no caller, so after a completed join it is
 * kept as suppressed. Any thread, mostly the thread itself as its last step;
 * does not block. The handle may be invalid once this has returned, unless a
 * reference is held elsewhere.
 */
static inline void allstop_thread_done(const allstop_coordinator *coord, allstop_thread *thread,
                                       const allstop_error *error) {
  coord->table->thread_done(thread, error);
}

/*
 * Waits until every thread registered now has ended, or a stop is requested;
 * then for up to `grace_period_ms` more. Blocks.
 * ALLSTOP_OK; ALLSTOP_STOPPED_BY_ERROR: the record holds an error;
 * ALLSTOP_STRAGGLERS: threads are still alive after the grace period;
 * ALLSTOP_SELF_JOIN: this thread is one of them; ALLSTOP_INVALID_ARGUMENT.
 */
static inline allstop_status allstop_join(const allstop_coordinator *coord, double grace_period_ms,
                                          uint32_t flags) {
  return coord->table->join(coord->state, grace_period_ms, flags);
}

/*
 * Calls `fn(context)` once, when a stop is requested; see allstop_stop_fn. The
 * guarantees are those of std::stop_callback. Any thread; does not block other
 * than by `fn` itself, if the stop is there already.
 */
static inline allstop_status allstop_on_stop(const allstop_coordinator *coord, allstop_stop_fn fn,
                                             void *context, allstop_callback **callback) {
  return coord->table->on_stop(coord->state, fn, context, callback);
}

/*
 * Unregisters: after it has returned, `fn` is not running and never will.
 * Blocks while `fn` runs on another thread; called from within `fn`, it returns
 * at once (as the destructor of std::stop_callback). NULL is allowed.
 */
static inline void allstop_callback_release(const allstop_coordinator *coord,
                                            allstop_callback *callback) {
  coord->table->callback_release(callback);
}

/*
 * A coordinator of its own, in the same world as `coord`; `options` may be NULL.
 * The new handle owns one reference. Any thread; does not block.
 * ALLSTOP_INVALID_ARGUMENT: a size that we do not know; ALLSTOP_UNAVAILABLE;
 * ALLSTOP_RESOURCE_EXHAUSTED. Since 1.1.
 */
static inline allstop_status allstop_create(const allstop_table *table,
                                            const allstop_options *options,
                                            allstop_coordinator *created) {
  allstop_state *state = NULL;
  allstop_status status;
  if (!ALLSTOP_HAS(table, create)) return ALLSTOP_UNAVAILABLE;
  status = table->create(options, &state);
  if (status != ALLSTOP_OK) return status;
  created->table = table;
  created->state = state;
  created->stop_word = table->stop_word(state);
  return ALLSTOP_OK;
}

/*
 * A coordinator that stops when `coord` does, now if it is stopped; its own stop
 * stays its own. As allstop_create otherwise, and ALLSTOP_FAILED_PRECONDITION:
 * they nest 256 levels deep at most. Since 1.1.
 */
static inline allstop_status allstop_child(const allstop_coordinator *coord,
                                           const allstop_options *options,
                                           allstop_coordinator *child) {
  allstop_state *state = NULL;
  allstop_status status;
  if (!ALLSTOP_HAS(coord->table, child)) return ALLSTOP_UNAVAILABLE;
  status = coord->table->child(coord->state, options, &state);
  if (status != ALLSTOP_OK) return status;
  child->table = coord->table;
  child->state = state;
  child->stop_word = coord->table->stop_word(state);
  return ALLSTOP_OK;
}

/*
 * Keeps the first error that is of no clean-stop type, and requests no stop: a
 * join that ends stopped, and without an error of the stop's own, comes to it
 * (TensorFlow's ReportStatus). Later errors are kept as suppressed. Any thread;
 * does not block. ALLSTOP_OK; ALLSTOP_INVALID_ARGUMENT: no error, or of a size
 * that we do not know; ALLSTOP_UNAVAILABLE; ALLSTOP_RESOURCE_EXHAUSTED. Since 1.1.
 */
static inline allstop_status allstop_report_error(const allstop_coordinator *coord,
                                                  const allstop_error *error) {
  if (!ALLSTOP_HAS(coord->table, report_error)) return ALLSTOP_UNAVAILABLE;
  return coord->table->report_error(coord->state, error);
}

/* The error that a join of a stopped coordinator would come to now, as a record to
 * be released: the stop's, else the reported one, whose requester is who reported it;
 * NULL if there is neither. Any thread, as allstop_stop_record. Since 1.1. */
static inline allstop_status allstop_first_error(const allstop_coordinator *coord,
                                                 allstop_record **record) {
  *record = NULL;
  if (!ALLSTOP_HAS(coord->table, first_error)) return ALLSTOP_UNAVAILABLE;
  return coord->table->first_error(coord->state, record);
}

/* An id for an error, never given twice, so that whoever reports it can tell it
 * again: writes up to `capacity` bytes (64 are enough), no NUL, and returns how
 * many; 0: it did not fit, or is unavailable. Any thread. Since 1.1. */
static inline size_t allstop_new_id(const allstop_coordinator *coord, char *buffer,
                                    size_t capacity) {
  return ALLSTOP_HAS(coord->table, new_id) ? coord->table->new_id(buffer, capacity) : 0;
}

/*
 * A schedule for a thread that does something every `interval_ms` until a stop: at
 * once, then at fixed distances from that first time, by a monotonic clock. 0: back to
 * back; INFINITY: once. It holds a reference of its own to the state, and is given back
 * by allstop_looper_release. Any thread; does not block. Register the thread as well,
 * with ALLSTOP_THREAD_LOOPER.
 * ALLSTOP_INVALID_ARGUMENT: NaN, negative, or not one of ALLSTOP_MISSED_TICKS_*;
 * ALLSTOP_UNAVAILABLE; ALLSTOP_RESOURCE_EXHAUSTED. Since 1.2.
 */
static inline allstop_status allstop_looper_create(const allstop_coordinator *coord,
                                                   double interval_ms, uint32_t missed_ticks,
                                                   allstop_looper **looper) {
  if (!ALLSTOP_HAS(coord->table, looper_create)) return ALLSTOP_UNAVAILABLE;
  return coord->table->looper_create(coord->state, interval_ms, missed_ticks, looper);
}

/*
 * Waits until the next run is due: call it before each run. Blocks; one thread at a
 * time. ALLSTOP_OK: run now; ALLSTOP_CANCELLED: a stop is requested, or was since
 * the looper was created, even if it is cleared again; ALLSTOP_UNAVAILABLE. Since 1.2.
 */
static inline allstop_status allstop_looper_wait(const allstop_coordinator *coord,
                                                 allstop_looper *looper) {
  if (!ALLSTOP_HAS(coord->table, looper_wait)) return ALLSTOP_UNAVAILABLE;
  return coord->table->looper_wait(looper);
}

/* Frees the schedule. NULL is allowed. Any thread; does not block. Since 1.2. */
static inline void allstop_looper_release(const allstop_coordinator *coord,
                                          allstop_looper *looper) {
  if (ALLSTOP_HAS(coord->table, looper_release)) coord->table->looper_release(looper);
}

#if defined(ALLSTOP_LINKED)
/* The table of the library, in a program that links it (find_package(allstop))
 * instead of getting a handle from JavaScript. */
const allstop_table *allstop_library_table(void);
#endif

/*
 * What a JavaScript `Coordinator` or `BoundedQueue` object carries for allstop_node.h. `size`,
 * `major` and `minor` come first, so that a mismatch can be told.
 */
typedef struct allstop_capsule {
  uint32_t size;
  uint32_t major;
  uint32_t minor;
  uint32_t kind; /* ALLSTOP_CAPSULE_* */
  const allstop_table *table;
  allstop_state *state; /* or an allstop_queue_state, by its kind */
} allstop_capsule;

#define ALLSTOP_CAPSULE_COORDINATOR 1u
#define ALLSTOP_CAPSULE_QUEUE 2u

/* The Node-API type tag that marks an object which carries a capsule. */
#define ALLSTOP_CAPSULE_TAG_LOWER UINT64_C(0x616c6c73746f7031)
#define ALLSTOP_CAPSULE_TAG_UPPER UINT64_C(0x9d0c5b0a7e4f42c6)

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "allstop_queue.h"

#endif /* ALLSTOP_ALLSTOP_H_ */
