/**
 * @file allstop.h
 * One stop flag and one stop record for a set of threads: the interface for native code.
 *
 * Plain C (C11) and C++. Your code links nothing of allstop: each function here calls
 * through a table of functions that comes with the handle. allstop_node.h shows how a Node
 * addon gets a handle from a JavaScript `Coordinator`.
 *
 * The first eight functions are what everybody needs: ask for a stop, request one, wait for one;
 * register a thread, so that a join waits for it; count the owners of a handle. Records, stop
 * callbacks, deadlines, children and loopers follow. The types are in allstop_abi.h.
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

#include "allstop_abi.h"

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

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
 * @retval ALLSTOP_RESOURCE_EXHAUSTED no memory for the record; nothing was changed, but
 *   some of the children may be stopped
 */
static inline allstop_status allstop_request_stop(const allstop_coordinator *coord,
                                                  const allstop_error *error) {
  return coord->table->request_stop(coord->state, error);
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

/** Adds one owner. Any thread that holds a valid handle; does not block. */
static inline void allstop_retain(const allstop_coordinator *coord) {
  coord->table->retain(coord->state);
}

/** Removes one owner; the last owner's call frees the state. Any thread; does not block. */
static inline void allstop_release(const allstop_coordinator *coord) {
  coord->table->release(coord->state);
}

/* ------------------------------------------------- what some programs need */

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
 * Clears the stop: the flag, the record, a reported error, and the mark that a join has
 * completed. Registered threads stay registered. Any thread; does not block.
 *
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_FAILED_PRECONDITION the coordinator is the child of a stopped parent, or that of
 *   a cluster or of a forked process, which cannot be cleared
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
 * (find_package(allstop)) and gets no handle from JavaScript. A plugin that links the library
 * stays in memory from the first call on, also after dlclose(): its threads, and those of the
 * library, may still run. Any thread. */
const allstop_table *allstop_library_table(void);
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "allstop_queue.h"
#include "allstop_variable.h"

#endif /* ALLSTOP_ALLSTOP_H_ */
