/**
 * @file allstop.h
 * One stop flag and one stop record for a set of threads: the interface for native code.
 *
 * Plain C (C11) and C++. Your code links nothing of allstop: each function here calls
 * through a table of functions that comes with the handle. allstop_node.h shows how a Node
 * addon gets a handle from a JavaScript `Coordinator`.
 *
 * Promised
 *   - An `allstop_coordinator` is a small value. Copying it copies a borrowed reference;
 *     allstop_retain and allstop_release count the owners. While you own one reference, you
 *     may call every function here, from any thread, for as long as the process runs: also
 *     after the JavaScript environment that gave you the handle has ended, and after its
 *     `Coordinator` object has been garbage-collected.
 *   - No function throws, and no function calls into JavaScript. pthread_cancel does not end a
 *     thread in a function: the thread returns as usual, from a wait no earlier than it would
 *     otherwise, and is cancelled at its next cancellation point after that.
 *   - A function blocks only if its comment says "blocks" or "waits". Never call such a
 *     function on a thread that runs a JavaScript event loop.
 *   - Strings are UTF-8 with a length and need not end in NUL. The library copies the strings
 *     that you pass before the call returns.
 *   - A handle works only with the table that it came with; the functions here take care of
 *     that. Two installed copies of the package in one process share nothing: each has its
 *     own table and its own coordinators.
 *
 * Not promised: that a thread stops which never checks the flag. Stopping is cooperative.
 *
 * Errors: a function that returns a status may return ALLSTOP_RESOURCE_EXHAUSTED whenever
 * memory has run out, also where its comment does not list that status.
 *
 * Versions: `size`, `major` and `minor` come first in the table. Within one major version,
 * functions are only appended to the table, and fields only to the end of a struct. If the
 * installed package is older than this header, a function that the package lacks returns
 * ALLSTOP_UNAVAILABLE. "Since 1.1" names the version of this interface, not of the npm
 * package. docs/abi.md has the rules.
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
#define ALLSTOP_ABI_MINOR 7u

/** True if the installed package is new enough for `table` to have the function `member`. */
#define ALLSTOP_HAS(table, member) \
  ((table)->size >= offsetof(allstop_table, member) + sizeof((table)->member))

/**
 * The result of a call. Numbers up to 16 have the values and meanings of gRPC's and
 * TensorFlow's status codes; numbers from 100 on are ours. In TypeScript, each status is an
 * error class of the same name with the `code` ERR_ALLSTOP_<NAME>.
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

/** `size` bytes of UTF-8. {NULL, 0} means "no string". */
typedef struct allstop_string {
  const char *data;
  size_t size;
} allstop_string;

typedef struct allstop_state allstop_state;                 /**< the state of one coordinator */
typedef struct allstop_thread allstop_thread;               /**< one registered thread */
typedef struct allstop_callback allstop_callback;           /**< one stop callback */
typedef struct allstop_record allstop_record;               /**< one stop record */
typedef struct allstop_looper allstop_looper;               /**< one looper's schedule; since 1.2 */
typedef struct allstop_deadline allstop_deadline;           /**< one deadline; since 1.4 */
typedef struct allstop_interruptible allstop_interruptible; /**< one guard; since 1.5 */
/* The types of queues: allstop_queue.h defines and explains them. */
typedef struct allstop_queue_state allstop_queue_state;
typedef struct allstop_queue_options allstop_queue_options;
typedef struct allstop_queue_info allstop_queue_info;
typedef struct allstop_item allstop_item;
/* The types of variables: allstop_variable.h defines and explains them. */
typedef struct allstop_variable_state allstop_variable_state;
typedef struct allstop_variable_info allstop_variable_info;

/**
 * An error that you report. Set `size` to sizeof(allstop_error); every string is optional.
 *
 * JavaScript receives an error of the class that `name` names, if that is a built-in class
 * of JavaScript or a class of allstop (for example "OutOfRangeError"), and otherwise a
 * `NativeError`; its `message` and `nativeType` are those given here.
 */
typedef struct allstop_error {
  uint32_t size; /**< sizeof(allstop_error), in bytes */
  /** An errno, or 0. If `code` is empty, its name (ENOENT) becomes the code; JavaScript's `errno`
   * is the negative number, as Node's. Since 1.7; must be 0 for an older package. */
  uint32_t error_number;
  allstop_string name;        /**< JavaScript's `name` */
  allstop_string message;     /**< JavaScript's `message`; in C++, what() */
  allstop_string code;        /**< JavaScript's `code` */
  allstop_string stack;       /**< free text, one frame a line */
  allstop_string native_type; /**< the demangled C++ type, as "std::runtime_error" */
  /* Since 1.1 */
  /** An id from allstop_new_id, or of a record: two reports with the same id are the same
   * error. Empty: the library makes a new id. */
  allstop_string id;
  const struct allstop_error *cause; /**< JavaScript's `cause`, or NULL */
  /* Since 1.7 */
  /** The whole of an error of JavaScript, as the function `Symbol.for('allstop.encodeError')` of
   * the global object encodes it; if it is not empty, the fields above are ignored. */
  allstop_string encoded;
} allstop_error;

/** The longest chain of `cause` pointers that is kept; deeper causes are dropped. */
#define ALLSTOP_MAX_CAUSES 32

/** The most suppressed errors that are kept: the first ones. Since 1.3. */
#define ALLSTOP_MAX_SUPPRESSED 16

/**
 * Options of a new coordinator. Set `size` to sizeof(allstop_options). A field that is 0
 * takes its default; for a child, the default is the parent's value.
 */
typedef struct allstop_options {
  uint32_t size;       /**< sizeof(allstop_options), in bytes */
  uint32_t reserved;   /**< 0 */
  allstop_string name; /**< shown to people; default "native" */
  /** The clean-stop types: errors that count as a normal end (TensorFlow's rule). Each
   * string is a class name, or an error's `name` or `code`. NULL: only OutOfRangeError. Not
   * NULL with a count of 0: no error counts as a normal end. */
  const allstop_string *clean_stop_types;
  size_t clean_stop_type_count;
} allstop_options;

#define ALLSTOP_STOP_PLAIN 0 /**< the stop was requested without an error */
#define ALLSTOP_STOP_CLEAN 1 /**< the stop's error is of a clean-stop type */
#define ALLSTOP_STOP_ERROR 2 /**< the stop was requested with any other error */

#define ALLSTOP_LANGUAGE_JS 0
#define ALLSTOP_LANGUAGE_NATIVE 1

/**
 * The contents of a record, as allstop_record_read fills them in. Set `size` to
 * sizeof(allstop_record_info) before the call. The strings belong to the record and are
 * valid until you release the record.
 */
typedef struct allstop_record_info {
  uint32_t size;              /**< sizeof(allstop_record_info), in bytes */
  int32_t kind;               /**< ALLSTOP_STOP_* */
  int32_t language;           /**< of the thread that requested the stop: ALLSTOP_LANGUAGE_* */
  uint32_t reserved;          /**< 0 */
  int64_t requested_at_ms;    /**< wall clock, milliseconds since 1970 */
  uint64_t thread_id;         /**< JavaScript's threadId; of a native thread, the OS thread id */
  allstop_string id;          /**< of this stop */
  allstop_string thread_name; /**< of the thread that requested the stop */
  /* The error, field by field; all empty if the stop was requested without an error. */
  allstop_string name;
  allstop_string message;
  allstop_string code;
  allstop_string stack;
  allstop_string native_type;
} allstop_record_info;

/** Flag of allstop_thread_register: the thread does not count as alive until
 * allstop_thread_enter. A join does not wait for a thread that was never started
 * (TensorFlow's rule), and forgets it; allstop_thread_enter registers it again then. */
#define ALLSTOP_THREAD_UNSTARTED 1u
/** Flag of allstop_thread_register: `explain()` lists the thread as a looper. Since 1.2. An
 * older package answers ALLSTOP_INVALID_ARGUMENT, as to every flag that it does not know. */
#define ALLSTOP_THREAD_LOOPER 2u

/** Flag of allstop_join: threads alive after the grace period are no error. */
#define ALLSTOP_JOIN_IGNORE_LIVE_THREADS 1u

/* Policies of allstop_looper_create, for runs that became due while an earlier run was still
 * going on. */
#define ALLSTOP_MISSED_TICKS_BURST 0u /**< run them at once, back to back (TensorFlow's) */
#define ALLSTOP_MISSED_TICKS_SKIP 1u  /**< drop them; go on at the next multiple of the interval */
#define ALLSTOP_MISSED_TICKS_DELAY 2u /**< count the interval from the end of each run */

/**
 * A stop callback. It runs once: on the thread that requests the stop, or, if the
 * coordinator is stopped already, at once on the thread that registers the callback. No lock
 * of allstop is held meanwhile. It must not throw, must not block, and must not wait for
 * JavaScript.
 */
typedef void (*allstop_stop_fn)(void *context);

/** The functions behind a handle. Call the inline functions below instead: they document the
 * promises, and they never call a function that an older package lacks. */
typedef struct allstop_table {
  uint32_t size; /**< of this table in the installed package, in bytes */
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
  /* Since 1.3 */
  allstop_status (*request_stop2)(allstop_state *state, const allstop_error *error, int *made);
  allstop_status (*queue_dequeue_least)(allstop_queue_state *queue, allstop_item *items, size_t max,
                                        size_t least, double timeout_ms, size_t *dequeued);
  allstop_status (*suppressed_errors)(allstop_state *state, allstop_record **records,
                                      size_t capacity, size_t *count);
  allstop_status (*record_cause)(const allstop_record *record, allstop_record **cause);
  /* Since 1.4 */
  allstop_status (*stop_after)(allstop_state *state, double timeout_ms,
                               allstop_deadline **deadline);
  void (*deadline_release)(allstop_deadline *deadline);
  /* Since 1.5 */
  allstop_status (*interruptible_enter)(allstop_state *state, allstop_interruptible **guard);
  void (*interruptible_leave)(allstop_interruptible *guard);
  /* Since 1.6 */
  void (*variable_retain)(allstop_variable_state *variable);
  void (*variable_release)(allstop_variable_state *variable);
  allstop_status (*variable_info)(allstop_variable_state *variable, allstop_variable_info *info);
  allstop_status (*variable_read)(allstop_variable_state *variable, uint32_t type, void *values,
                                  size_t count);
  allstop_status (*variable_assign)(allstop_variable_state *variable, uint32_t type,
                                    const void *values, size_t count);
  allstop_status (*variable_assign_add)(allstop_variable_state *variable, uint32_t type,
                                        const void *deltas, size_t count);
  /* Since 1.7 */
  int (*interruptible_is_effective)(const allstop_interruptible *guard);
  int (*on_js_thread)(void);
} allstop_table;

/** A handle: a borrowed reference to a coordinator's state, the table to use it with, and a
 * pointer to the stop word, which is not 0 while the coordinator is stopped. */
typedef struct allstop_coordinator {
  const allstop_table *table;
  allstop_state *state;
  const uint32_t *stop_word;
} allstop_coordinator;

/** A view of a NUL-terminated string; of NULL, {NULL, 0}. Copies nothing. Any thread. */
static inline allstop_string allstop_str(const char *text) {
  allstop_string string = {text, 0};
  if (text != NULL) {
    while (text[string.size] != '\0') ++string.size;
  }
  return string;
}

/** Adds one owner. Any thread that holds a valid handle; does not block. */
static inline void allstop_retain(const allstop_coordinator *coord) {
  coord->table->retain(coord->state);
}

/** Removes one owner; the last owner's call frees the state. Any thread; does not block. */
static inline void allstop_release(const allstop_coordinator *coord) {
  coord->table->release(coord->state);
}

/**
 * Checks for a stop with one load of the stop word. Any thread; does not block.
 *
 * Memory order: if a thread X requests the stop, and this function returns 1 on a thread Y
 * because of that stop, then Y sees everything that X wrote before X's request. (The load
 * has acquire order.)
 *
 * @returns 1 while the coordinator is stopped, else 0
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

/**
 * Requests a stop of all threads of the coordinator. The first stop makes the record; the
 * error of a later request is kept beside it, as suppressed. Any thread; does not block, but
 * runs the stop callbacks on the calling thread before it returns.
 *
 * @param error the reason, or NULL for a stop without an error
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_FAILED_PRECONDITION a join has completed, so `error` would reach nobody.
 *   Nothing was changed: handle the error yourself.
 * @retval ALLSTOP_INVALID_ARGUMENT `error->size` is too small: probably it was not set
 * @retval ALLSTOP_RESOURCE_EXHAUSTED no memory for the record; nothing was changed
 */
static inline allstop_status allstop_request_stop(const allstop_coordinator *coord,
                                                  const allstop_error *error) {
  return coord->table->request_stop(coord->state, error);
}

/**
 * Requests a stop as allstop_request_stop does, and says whether this call made the stop. Of
 * several threads that request a stop at the same time, JavaScript threads included, one
 * makes it. Since 1.3.
 *
 * @param[out] made 1 if this call made the stop; 0 if the coordinator was stopped before (also
 *   by a stop of its parent), or if the result is not ALLSTOP_OK
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.3; nothing was changed
 */
static inline allstop_status allstop_request_stop_made(const allstop_coordinator *coord,
                                                       const allstop_error *error, int *made) {
  *made = 0;
  if (!ALLSTOP_HAS(coord->table, request_stop2)) return ALLSTOP_UNAVAILABLE;
  return coord->table->request_stop2(coord->state, error, made);
}

/**
 * Waits for a stop. Any thread. Blocks for at most `timeout_ms` milliseconds of a monotonic
 * clock; 0 only checks, INFINITY sets no limit. A stop during the wait ends the wait even if
 * another thread clears that stop at once.
 *
 * @retval ALLSTOP_OK a stop was requested
 * @retval ALLSTOP_DEADLINE_EXCEEDED the time has passed without a stop
 * @retval ALLSTOP_INVALID_ARGUMENT `timeout_ms` is NaN or negative
 */
static inline allstop_status allstop_wait_for_stop(const allstop_coordinator *coord,
                                                   double timeout_ms) {
  return coord->table->wait_for_stop(coord->state, timeout_ms);
}

/**
 * Clears the stop: the flag, the record, a reported error, and the mark that a join has
 * completed. Registered threads stay registered. Any thread; does not block.
 *
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_FAILED_PRECONDITION the coordinator is the child of a stopped parent
 */
static inline allstop_status allstop_clear_stop(const allstop_coordinator *coord) {
  return coord->table->clear_stop(coord->state);
}

/**
 * Gets the record of the stop. Any thread.
 *
 * Waits, for at most a second, until the record names the thread that requested the stop:
 * that thread first wakes all waiting threads and only then adds its name to the record.
 *
 * @param[out] record a record that you release with allstop_record_release; NULL while no
 *   stop is requested
 */
static inline allstop_status allstop_stop_record(const allstop_coordinator *coord,
                                                 allstop_record **record) {
  return coord->table->stop_record(coord->state, record);
}

/**
 * Copies the contents of a record into `info`, up to `info->size` bytes. The record and its
 * strings never change. Any thread; does not block.
 *
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `info->size` is too small: probably it was not set
 */
static inline allstop_status allstop_record_read(const allstop_coordinator *coord,
                                                 const allstop_record *record,
                                                 allstop_record_info *info) {
  return coord->table->record_info(record, info);
}

/** Frees a record and the strings that allstop_record_read gave you from that record. NULL
 * is allowed. Any thread; does not block. */
static inline void allstop_record_release(const allstop_coordinator *coord,
                                          allstop_record *record) {
  coord->table->record_release(record);
}

/**
 * Registers a thread: a join waits for the thread, and `explain()` names it. Call this
 * before you create the thread, so that a join which begins meanwhile does not miss it. Any
 * thread; does not block.
 *
 * @param flags a sum of ALLSTOP_THREAD_*, or 0
 * @param[out] thread a token for the registered thread. It holds its own reference to the
 *   coordinator's state. Give it back exactly once, with allstop_thread_done.
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `flags` holds a flag that the package does not know
 */
static inline allstop_status allstop_thread_register(const allstop_coordinator *coord,
                                                     allstop_string name, uint32_t flags,
                                                     allstop_thread **thread) {
  return coord->table->thread_register(coord->state, name, flags, thread);
}

/**
 * Tells the coordinator that the calling thread is the registered one: call this first on
 * that thread. The coordinator notes the OS thread id, and names this thread in the record
 * of a stop that it requests. Does not block.
 *
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_RESOURCE_EXHAUSTED the coordinator does not know the thread; call it again, or
 *   go on without, and end the registration as usual
 */
static inline allstop_status allstop_thread_enter(const allstop_coordinator *coord,
                                                  allstop_thread *thread) {
  return coord->table->thread_enter(thread);
}

/**
 * Ends a registration: the thread has ended, or will never run. Frees the token. Any thread,
 * usually the registered thread as its last step; does not block.
 *
 * The token's reference goes with the token: after this call, `coord` is valid only if you
 * hold another reference.
 *
 * @param error NULL, or the error that ended the thread. An error requests a stop. After a
 *   completed join, which no longer reports errors, the error is kept as suppressed.
 */
static inline void allstop_thread_done(const allstop_coordinator *coord, allstop_thread *thread,
                                       const allstop_error *error) {
  coord->table->thread_done(thread, error);
}

/**
 * Waits for the threads that are registered when it is called: until all of them have ended
 * or a stop is requested, and from the stop on for at most `grace_period_ms` milliseconds.
 * Blocks. Any thread except one that is registered with this coordinator.
 *
 * @param flags ALLSTOP_JOIN_IGNORE_LIVE_THREADS or 0
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_STOPPED_BY_ERROR the stop has an error (see allstop_stop_record), or an
 *   error was reported before a stop without one (see allstop_report_error)
 * @retval ALLSTOP_STRAGGLERS a thread was still alive after the grace period
 * @retval ALLSTOP_SELF_JOIN the calling thread is one of the registered threads
 * @retval ALLSTOP_INVALID_ARGUMENT `grace_period_ms` is NaN or negative, or `flags` unknown
 */
static inline allstop_status allstop_join(const allstop_coordinator *coord, double grace_period_ms,
                                          uint32_t flags) {
  return coord->table->join(coord->state, grace_period_ms, flags);
}

/**
 * Registers `fn`, to be called once as `fn(context)` when a stop is requested; see
 * allstop_stop_fn. The guarantees are those of C++20's std::stop_callback. Any thread; does
 * not block, but calls `fn` before it returns if the coordinator is stopped already.
 *
 * After a stop, the callback is used up: register again for the next stop.
 *
 * @param[out] callback the registration. It holds its own reference to the coordinator's
 *   state. Free it with allstop_callback_release.
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `fn` is NULL
 */
static inline allstop_status allstop_on_stop(const allstop_coordinator *coord, allstop_stop_fn fn,
                                             void *context, allstop_callback **callback) {
  return coord->table->on_stop(coord->state, fn, context, callback);
}

/**
 * Removes a stop callback and frees the registration. When this has returned, `fn` is not
 * running and will not run. Any thread. Blocks while `fn` runs on another thread; called by
 * `fn` itself, it returns at once, as the destructor of std::stop_callback does. NULL is
 * allowed.
 */
static inline void allstop_callback_release(const allstop_coordinator *coord,
                                            allstop_callback *callback) {
  coord->table->callback_release(callback);
}

/**
 * Sets a deadline: requests a stop with a DeadlineExceededError when `timeout_ms` milliseconds of
 * a monotonic clock have passed, unless the deadline is called off before. A native thread makes
 * the request, also while all JavaScript threads are busy. Any thread; does not block. Since 1.4.
 *
 * A stop that comes earlier does not call the deadline off: the coordinator is kept alive, and the
 * deadline is listed by `explain()`, until the time has passed or the deadline is called off.
 *
 * The native thread is made by the first deadline of a process, and keeps the library in memory. A
 * process that is forked has a native thread of its own when it sets its first deadline; the
 * deadlines that were set before it was forked are its parent's.
 *
 * @param timeout_ms 0: at once, on that native thread; INFINITY: never
 * @param[out] deadline the deadline. Free it with allstop_deadline_release; NULL unless
 *   ALLSTOP_OK.
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `timeout_ms` is NaN or negative
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.4
 */
static inline allstop_status allstop_stop_after(const allstop_coordinator *coord, double timeout_ms,
                                                allstop_deadline **deadline) {
  *deadline = NULL;
  if (!ALLSTOP_HAS(coord->table, stop_after)) return ALLSTOP_UNAVAILABLE;
  return coord->table->stop_after(coord->state, timeout_ms, deadline);
}

/**
 * Calls a deadline off, if its stop has not been requested yet, and frees it. A stop that the
 * deadline is about to request on another thread may still come for a moment after this. NULL is
 * allowed. Any thread; does not block. Since 1.4.
 */
static inline void allstop_deadline_release(const allstop_coordinator *coord,
                                            allstop_deadline *deadline) {
  if (ALLSTOP_HAS(coord->table, deadline_release)) coord->table->deadline_release(deadline);
}

/**
 * Makes the system calls of the calling thread end at a stop: from the stop on, and until
 * allstop_interruptible_leave, a system call in which this thread is blocked fails with EINTR (on
 * Windows: ERROR_OPERATION_ABORTED). A thread may have several guards, of several coordinators.
 * Does not block. Since 1.5.
 *
 * The thread is interrupted at once, and then again after 1, 2, 4 ... and at last every 100 ms,
 * also after a clearStop(): a signal that comes just before the system call begins does not end it.
 * So check allstop_should_stop before a call is made again, and keep the guard around little more
 * than the call: every other system call in it may fail with EINTR, too.
 *
 * How. On POSIX systems the thread gets a signal whose handler does nothing and is installed
 * without SA_RESTART: on Linux the highest real-time signal below SIGRTMAX that has no handler, on
 * other systems SIGURG or SIGIO. The signal is opened in the mask of this thread alone, and no
 * other thread gets it. Handler and sending thread are made by the first guard of the process, and
 * stay. If another handler is installed for the signal while there is a guard, the guard interrupts
 * nothing any more (allstop_interruptible_is_effective); a guard that is made after that takes
 * another signal, unless this thread has an older guard. On Windows CancelSynchronousIo is called.
 * Not ended are: calls that are made again at EINTR before they return to you (pthread_mutex_lock,
 * pthread_cond_wait, pthread_join, std::this_thread::sleep_for, glibc's stdio), a wait of the
 * kernel that no signal ends, and computing.
 *
 * In a process that the thread forks, the copy of the guard does nothing; it may be left. A new
 * guard interrupts there, too.
 *
 * @param[out] guard the guard. Leave it on this thread, before the thread ends, with
 *   allstop_interruptible_leave. It holds its own reference to the coordinator's state. NULL unless
 *   ALLSTOP_OK.
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.5
 * @retval ALLSTOP_RESOURCE_EXHAUSTED no memory, no thread, or no signal without a handler is left
 */
static inline allstop_status allstop_interruptible_enter(const allstop_coordinator *coord,
                                                         allstop_interruptible **guard) {
  *guard = NULL;
  if (!ALLSTOP_HAS(coord->table, interruptible_leave)) return ALLSTOP_UNAVAILABLE;
  return coord->table->interruptible_enter(coord->state, guard);
}

/**
 * Leaves a guard: when this has returned, no system call of this thread is interrupted because of
 * the guard. The signal is closed again in the thread's mask, if it was closed before. Keeps errno
 * (on Windows: the last error). Call it on the thread that made the guard. Blocks while a stop on
 * another thread tells the guard, which takes a moment. NULL is allowed. Since 1.5.
 */
static inline void allstop_interruptible_leave(const allstop_coordinator *coord,
                                               allstop_interruptible *guard) {
  if (guard != NULL) coord->table->interruptible_leave(guard);
}

/**
 * Tells whether a stop still interrupts this thread because of the guard: not if another handler
 * has been installed for the signal since, nor in a process that was forked. Call it on the thread
 * that made the guard. Does not block. Since 1.7; with an older package, every guard counts as
 * effective.
 *
 * @returns 0 for NULL
 */
static inline int allstop_interruptible_is_effective(const allstop_coordinator *coord,
                                                     const allstop_interruptible *guard) {
  if (guard == NULL) return 0;
  if (!ALLSTOP_HAS(coord->table, interruptible_is_effective)) return 1;
  return coord->table->interruptible_is_effective(guard);
}

/**
 * Creates an independent coordinator. Any thread; does not block. Since 1.1.
 *
 * @param table the table of any handle (`coord.table`): it belongs to one copy of the
 *   package, and so does the new coordinator
 * @param options may be NULL
 * @param[out] created a handle that owns one reference; unchanged unless ALLSTOP_OK
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `options->size` is too small: probably it was not set
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.1
 * @retval ALLSTOP_RESOURCE_EXHAUSTED
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

/**
 * Creates a child: a coordinator that stops when `coord` stops (at once, if `coord` is
 * stopped already). A stop of the child does not stop `coord`. Otherwise as allstop_create.
 * Since 1.1.
 *
 * @param options may be NULL; a field that is 0 takes the value of `coord`
 * @retval ALLSTOP_FAILED_PRECONDITION `coord` is nested 256 levels deep already
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

/**
 * Reports an error without requesting a stop (TensorFlow's ReportStatus). The coordinator
 * keeps the first reported error that is not of a clean-stop type; later ones are kept as
 * suppressed. A join returns ALLSTOP_STOPPED_BY_ERROR for the kept error if, when the join
 * ends, a stop without an error of its own has been requested. Without a stop, a join
 * ignores the reported error. Any thread; does not block. Since 1.1.
 *
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `error` is NULL, or `error->size` is too small
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.1
 * @retval ALLSTOP_RESOURCE_EXHAUSTED
 */
static inline allstop_status allstop_report_error(const allstop_coordinator *coord,
                                                  const allstop_error *error) {
  if (!ALLSTOP_HAS(coord->table, report_error)) return ALLSTOP_UNAVAILABLE;
  return coord->table->report_error(coord->state, error);
}

/**
 * Gets the error that a join would report now if the coordinator were stopped: the error of
 * the stop, else the error that allstop_report_error kept. Any thread; waits as
 * allstop_stop_record does. Since 1.1.
 *
 * @param[out] record a record with the error and the thread that reported it, which you
 *   release with allstop_record_release; NULL if there is no error
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.1
 */
static inline allstop_status allstop_first_error(const allstop_coordinator *coord,
                                                 allstop_record **record) {
  *record = NULL;
  if (!ALLSTOP_HAS(coord->table, first_error)) return ALLSTOP_UNAVAILABLE;
  return coord->table->first_error(coord->state, record);
}

/**
 * Gets the suppressed errors: those that came after the error of the stop, and reported errors
 * that are not the one that allstop_first_error gives. Any thread; waits as allstop_stop_record
 * does. Since 1.3.
 *
 * @param[out] records has room for `capacity` records; ALLSTOP_MAX_SUPPRESSED are enough. Each
 *   record that you get has an error and the thread that reported it; release it with
 *   allstop_record_release.
 * @param[out] count how many you got, the earliest first
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.3
 */
static inline allstop_status allstop_suppressed_errors(const allstop_coordinator *coord,
                                                       allstop_record **records, size_t capacity,
                                                       size_t *count) {
  *count = 0;
  if (!ALLSTOP_HAS(coord->table, suppressed_errors)) return ALLSTOP_UNAVAILABLE;
  return coord->table->suppressed_errors(coord->state, records, capacity, count);
}

/**
 * Gets the cause of a record's error. Any thread; does not block. Since 1.3.
 *
 * @param[out] cause a record of the cause, which you release with allstop_record_release; NULL
 *   if the error has no cause
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.3
 */
static inline allstop_status allstop_record_cause(const allstop_coordinator *coord,
                                                  const allstop_record *record,
                                                  allstop_record **cause) {
  *cause = NULL;
  if (!ALLSTOP_HAS(coord->table, record_cause)) return ALLSTOP_UNAVAILABLE;
  return coord->table->record_cause(record, cause);
}

/**
 * Makes a new id for an error, to be set as `allstop_error.id`: you can recognize the error
 * later by the id of its record. No two calls give the same id, not in forked processes either.
 * Any thread; does not block. Since 1.1.
 *
 * @param[out] buffer receives the id, without a NUL; 64 bytes are enough
 * @returns the length of the id in bytes; 0 if the id is longer than `capacity`, or if the
 *   package is older than 1.1
 */
static inline size_t allstop_new_id(const allstop_coordinator *coord, char *buffer,
                                    size_t capacity) {
  return ALLSTOP_HAS(coord->table, new_id) ? coord->table->new_id(buffer, capacity) : 0;
}

/**
 * Creates a schedule for a thread of yours that does something again and again until a stop.
 * The first run is due at once. The later runs are due at multiples of `interval_ms` after
 * that, by a monotonic clock; with ALLSTOP_MISSED_TICKS_DELAY, each run is due `interval_ms`
 * after the end of the one before. Any thread; does not block. Since 1.2.
 *
 * The schedule does not register the thread: call allstop_thread_register for it, with the flag
 * ALLSTOP_THREAD_LOOPER.
 *
 * @param interval_ms milliseconds; 0: each run follows the last at once; INFINITY: one run
 * @param missed_ticks one of ALLSTOP_MISSED_TICKS_*
 * @param[out] looper the schedule. It holds its own reference to the coordinator's state.
 *   Free it with allstop_looper_release.
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `interval_ms` is NaN or negative, or `missed_ticks` unknown
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.2
 * @retval ALLSTOP_RESOURCE_EXHAUSTED
 */
static inline allstop_status allstop_looper_create(const allstop_coordinator *coord,
                                                   double interval_ms, uint32_t missed_ticks,
                                                   allstop_looper **looper) {
  if (!ALLSTOP_HAS(coord->table, looper_create)) return ALLSTOP_UNAVAILABLE;
  return coord->table->looper_create(coord->state, interval_ms, missed_ticks, looper);
}

/**
 * Waits until the next run is due: call it before each run, the first one included. Blocks.
 * Any thread, but only one thread at a time for one looper. Since 1.2.
 *
 * @retval ALLSTOP_OK run now
 * @retval ALLSTOP_CANCELLED the coordinator is stopped, or has been stopped since the looper
 *   was created, even if that stop is cleared by now
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.2
 */
static inline allstop_status allstop_looper_wait(const allstop_coordinator *coord,
                                                 allstop_looper *looper) {
  if (!ALLSTOP_HAS(coord->table, looper_wait)) return ALLSTOP_UNAVAILABLE;
  return coord->table->looper_wait(looper);
}

/** Frees the schedule. NULL is allowed. Any thread; does not block. Since 1.2. */
static inline void allstop_looper_release(const allstop_coordinator *coord,
                                          allstop_looper *looper) {
  if (ALLSTOP_HAS(coord->table, looper_release)) coord->table->looper_release(looper);
}

#if defined(ALLSTOP_LINKED)
/** The table of the library itself, for a program that links the library
 * (find_package(allstop)) and gets no handle from JavaScript. Any thread. */
const allstop_table *allstop_library_table(void);
#endif

/**
 * The data that a JavaScript `Coordinator`, `BoundedQueue` or `Variable` object carries for
 * addons; allstop_node.h reads it. `size`, `major` and `minor` come first in every version, so that
 * an addon can detect a major version that it was not compiled for.
 */
typedef struct allstop_capsule {
  uint32_t size;
  uint32_t major;
  uint32_t minor;
  uint32_t kind; /**< ALLSTOP_CAPSULE_* */
  const allstop_table *table;
  /** Of a queue's capsule: an allstop_queue_state. Of a variable's: an allstop_variable_state, or
   * NULL if the variable's value is not in this process. */
  allstop_state *state;
} allstop_capsule;

#define ALLSTOP_CAPSULE_COORDINATOR 1u
#define ALLSTOP_CAPSULE_QUEUE 2u
#define ALLSTOP_CAPSULE_VARIABLE 3u /* since 1.6 */

/* The Node-API type tag of the JavaScript objects that carry a capsule. */
#define ALLSTOP_CAPSULE_TAG_LOWER UINT64_C(0x616c6c73746f7031)
#define ALLSTOP_CAPSULE_TAG_UPPER UINT64_C(0x9d0c5b0a7e4f42c6)

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "allstop_queue.h"
#include "allstop_variable.h"

#endif /* ALLSTOP_ALLSTOP_H_ */
