/**
 * @file allstop_abi.h
 * The types of allstop.h, and the table of functions behind a handle. allstop.h includes it: read
 * that first. What is here only grows; docs/abi.md has the rules.
 */
#ifndef ALLSTOP_ALLSTOP_ABI_H_
#define ALLSTOP_ALLSTOP_ABI_H_

#include <stddef.h>
#include <stdint.h>

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

#endif /* ALLSTOP_ALLSTOP_ABI_H_ */
