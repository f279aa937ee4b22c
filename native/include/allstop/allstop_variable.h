/**
 * @file allstop_variable.h
 * A variable of a cluster, for native code. Part of allstop.h, which includes it.
 *
 * The same value as JavaScript's `Variable` (cluster.variable): a number, or an array of numbers,
 * in memory of this process. Native threads and JavaScript threads use it at the same time, without
 * a message. allstop_node.h turns the JavaScript object into a handle.
 *
 * Promised
 *   - Each operation is atomic: a read gives the value between two other operations, and no update
 *     is lost.
 *   - An `allstop_variable` is a small value that holds a borrowed reference, as an
 *     `allstop_coordinator` does. While you own one reference, you may use the variable, also after
 *     its cluster was closed and its JavaScript object is gone.
 *   - No operation allocates memory.
 *
 * Not promised: that an update counts once. A function of a cluster may be run again after its
 * worker has died, and then adds natively again. What has to count exactly once is added by
 * `await variable.assignAdd(delta)` in the function.
 *
 * Everything in this file is since version 1.6 of the interface.
 */
#ifndef ALLSTOP_ALLSTOP_VARIABLE_H_
#define ALLSTOP_ALLSTOP_VARIABLE_H_

#include "allstop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A handle: a borrowed reference to a variable, and the table to use it with. */
typedef struct allstop_variable {
  const allstop_table *table;
  allstop_variable_state *state;
} allstop_variable;

#define ALLSTOP_VARIABLE_NUMBER 0u  /**< one double, a number in JavaScript */
#define ALLSTOP_VARIABLE_FLOAT64 1u /**< doubles, a Float64Array in JavaScript */
#define ALLSTOP_VARIABLE_FLOAT32 2u /**< floats, a Float32Array in JavaScript */
#define ALLSTOP_VARIABLE_INT32 3u   /**< int32_t, an Int32Array in JavaScript */

/** What a variable is, as allstop_variable_describe fills it in. Set `size` to
 * sizeof(allstop_variable_info) before the call. */
typedef struct allstop_variable_info {
  uint32_t size;       /**< sizeof(allstop_variable_info), in bytes */
  uint32_t type;       /**< ALLSTOP_VARIABLE_* */
  uint64_t length;     /**< how many elements; 1 for a number */
  allstop_string name; /**< valid as long as the variable */
} allstop_variable_info;

/** Adds one owner. Any thread that holds a valid handle; does not block. */
static inline void allstop_variable_retain(const allstop_variable *variable) {
  variable->table->variable_retain(variable->state);
}

/** Removes one owner; the last owner's call may free the value. Any thread; does not block. */
static inline void allstop_variable_release(const allstop_variable *variable) {
  variable->table->variable_release(variable->state);
}

/**
 * Copies the variable's type, length and name into `info`, up to `info->size` bytes. They never
 * change. Any thread; does not block.
 *
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `info->size` is too small: probably it was not set
 */
static inline allstop_status allstop_variable_describe(const allstop_variable *variable,
                                                       allstop_variable_info *info) {
  return variable->table->variable_info(variable->state, info);
}

/**
 * Copies the whole value. Any thread; waits while other threads copy or add the value.
 *
 * @param type the type of `values`: that of the variable. (For a number, also
 *   ALLSTOP_VARIABLE_FLOAT64.)
 * @param[out] values has room for `count` elements; unchanged unless ALLSTOP_OK
 * @param count the variable's length: 1 for a number
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT another type or length than the variable's
 * @retval ALLSTOP_FAILED_PRECONDITION this process was forked from the variable's, which alone
 *   reads and writes it; also of the other operations
 */
static inline allstop_status allstop_variable_read(const allstop_variable *variable, uint32_t type,
                                                   void *values, size_t count) {
  return variable->table->variable_read(variable->state, type, values, count);
}

/** Sets the whole value to a copy of `values`. Nothing was changed unless ALLSTOP_OK. Otherwise as
 * allstop_variable_read. */
static inline allstop_status allstop_variable_assign(const allstop_variable *variable,
                                                     uint32_t type, const void *values,
                                                     size_t count) {
  return variable->table->variable_assign(variable->state, type, values, count);
}

/** Adds `deltas`, element by element; an int32_t wraps around. Every call counts. Nothing was
 * changed unless ALLSTOP_OK. Otherwise as allstop_variable_read. */
static inline allstop_status allstop_variable_assign_add(const allstop_variable *variable,
                                                         uint32_t type, const void *deltas,
                                                         size_t count) {
  return variable->table->variable_assign_add(variable->state, type, deltas, count);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ALLSTOP_ALLSTOP_VARIABLE_H_ */
