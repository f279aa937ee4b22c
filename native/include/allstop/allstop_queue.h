/**
 * @file allstop_queue.h
 * A bounded queue between threads, for native code. Part of allstop.h, which includes it.
 *
 * The same queue as JavaScript's `BoundedQueue`: C++ or JavaScript creates it, and native
 * threads and JavaScript threads use it at the same time. allstop_node.h turns the JavaScript
 * object into a handle.
 *
 * Promised
 *   - First in, first out for each producer. Each item is delivered once.
 *   - Producers wait while the queue is full, consumers while it is empty, without spinning.
 *   - After a close, the queue takes no new items, but consumers still get the items in it.
 *     Once it is empty, consumers get ALLSTOP_OUT_OF_RANGE.
 *   - If the queue has a coordinator, a stop of that coordinator ends every wait at once, so
 *     a full or empty queue never delays threads that have to end. After the stop, the queue
 *     takes no new items, but consumers still get the items in it; once it is empty,
 *     consumers get ALLSTOP_CANCELLED.
 *   - An `allstop_queue` is a small value that holds a borrowed reference, as an
 *     `allstop_coordinator` does.
 *
 * Not promised: an order among the threads that wait.
 *
 * Items are bytes. Native code cannot use a queue of JavaScript values (codec 'structured'):
 * enqueue and dequeue return ALLSTOP_FAILED_PRECONDITION there.
 *
 * Everything in this file is since version 1.2 of the interface, unless it says otherwise.
 */
#ifndef ALLSTOP_ALLSTOP_QUEUE_H_
#define ALLSTOP_ALLSTOP_QUEUE_H_

#include "allstop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A handle: a borrowed reference to a queue's state, and the table to use it with. */
typedef struct allstop_queue {
  const allstop_table *table;
  allstop_queue_state *state;
} allstop_queue;

/** The longest item, in bytes, that an allstop_item can hold in itself, without `data`. */
#define ALLSTOP_ITEM_IN_PLACE 32

/**
 * One item. It owns its bytes: read them with allstop_item_data, free them with
 * allstop_item_release. An item of all zeros is empty and owns nothing.
 *
 * To enqueue your own bytes without a copy, set `data`, `size` and `release`. allstop or the
 * consumer calls `release` once, on any thread, possibly after your thread has ended. It must
 * not block and must not throw.
 */
typedef struct allstop_item {
  size_t size; /**< in bytes */
  /** Frees `data`. NULL: the bytes are in `in_place`. */
  void (*release)(void *data, size_t size, void *context);
  void *data;
  void *context; /**< passed to `release` */
  unsigned char in_place[ALLSTOP_ITEM_IN_PLACE];
} allstop_item;

/** Options of a new queue. Set `size` to sizeof(allstop_queue_options). */
typedef struct allstop_queue_options {
  uint32_t size;              /**< sizeof(allstop_queue_options), in bytes */
  uint32_t reserved;          /**< 0 */
  allstop_string name;        /**< shown to people; default "native" */
  allstop_state *coordinator; /**< its stop ends all waits; NULL: the queue has none */
  uint64_t capacity;          /**< in items, at least 1 */
} allstop_queue_options;

#define ALLSTOP_CODEC_STRUCTURED 0u /**< JavaScript values, for JavaScript threads only */
#define ALLSTOP_CODEC_BYTES 1u      /**< bytes, for all threads */

/** The state of a queue, as allstop_queue_read fills it in. Set `size` to
 * sizeof(allstop_queue_info) before the call. */
typedef struct allstop_queue_info {
  uint32_t size;       /**< sizeof(allstop_queue_info), in bytes */
  uint32_t codec;      /**< ALLSTOP_CODEC_* */
  uint32_t closed;     /**< 1 or 0 */
  uint32_t reserved;   /**< 0 */
  uint64_t item_count; /**< a guess: other threads go on meanwhile */
  uint64_t capacity;   /**< in items */
  allstop_string name; /**< valid as long as the queue */
} allstop_queue_info;

/** Flag of allstop_queue_close: an enqueue that waits for room returns ALLSTOP_CANCELLED. */
#define ALLSTOP_CLOSE_CANCEL_PENDING 1u

/**
 * Creates a queue of bytes. Any thread; does not block.
 *
 * @param table the table of any handle, for example `coord.table`; if `options` names a
 *   coordinator, the table of that coordinator's handle
 * @param[out] created a handle that owns one reference; unchanged unless ALLSTOP_OK. The queue
 *   holds a reference to its coordinator.
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `options` is NULL, its capacity is 0, or its `size` is too
 *   small
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.2
 * @retval ALLSTOP_RESOURCE_EXHAUSTED
 */
static inline allstop_status allstop_queue_create(const allstop_table *table,
                                                  const allstop_queue_options *options,
                                                  allstop_queue *created) {
  allstop_queue_state *state = NULL;
  allstop_status status;
  if (!ALLSTOP_HAS(table, queue_create)) return ALLSTOP_UNAVAILABLE;
  status = table->queue_create(options, &state);
  if (status != ALLSTOP_OK) return status;
  created->table = table;
  created->state = state;
  return ALLSTOP_OK;
}

/** Adds one owner. Any thread that holds a valid handle; does not block. */
static inline void allstop_queue_retain(const allstop_queue *queue) {
  queue->table->queue_retain(queue->state);
}
/** Removes one owner; the last owner's call frees the queue and the items in it. Any thread;
 * does not block. */
static inline void allstop_queue_release(const allstop_queue *queue) {
  queue->table->queue_release(queue->state);
}

/** The bytes of an item; valid until the item is released, enqueued, or moved in memory. Any
 * thread; does not block. */
static inline const void *allstop_item_data(const allstop_item *item) {
  return item->release == NULL ? item->in_place : item->data;
}

/** Frees the bytes of an item, which is empty afterwards. Any thread; does not block. */
static inline void allstop_item_release(allstop_item *item) {
  if (item->release != NULL) {
    item->release(item->data, item->size, item->context);
  }
  item->release = NULL;
  item->size = 0;
}

/**
 * Makes an item that owns a copy of `size` bytes. Any thread; does not block.
 *
 * @param queue any queue of the package that the item is for
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_RESOURCE_EXHAUSTED
 */
static inline allstop_status allstop_item_copy(const allstop_queue *queue, const void *data,
                                               size_t size, allstop_item *item) {
  return queue->table->item_copy(data, size, item);
}

/**
 * Enqueues items in order, each as soon as there is room. Any thread. Blocks for at most
 * `timeout_ms` milliseconds (INFINITY: no limit; 0: not at all).
 *
 * @param items `count` items. An item that was enqueued is empty afterwards; the others stay
 *   yours.
 * @param[out] enqueued how many were enqueued, the first ones in `items`, whatever is
 *   returned; may be NULL
 * @retval ALLSTOP_OK all were enqueued
 * @retval ALLSTOP_DEADLINE_EXCEEDED the queue was full until the time had passed
 * @retval ALLSTOP_CANCELLED the queue is closed, or its coordinator was stopped
 * @retval ALLSTOP_FAILED_PRECONDITION not a queue of bytes
 * @retval ALLSTOP_INVALID_ARGUMENT `timeout_ms` is NaN or negative, or an item is longer than
 *   ALLSTOP_ITEM_IN_PLACE without a `release`, or than the 4,294,967,295 bytes of a Uint8Array
 * @retval ALLSTOP_RESOURCE_EXHAUSTED
 */
static inline allstop_status allstop_queue_enqueue_many(const allstop_queue *queue,
                                                        allstop_item *items, size_t count,
                                                        double timeout_ms, size_t *enqueued) {
  size_t went_in = 0;
  allstop_status status =
      queue->table->queue_enqueue(queue->state, items, count, timeout_ms, &went_in);
  if (enqueued != NULL) *enqueued = went_in;
  return status;
}

/** Enqueues one item with a copy of `size` bytes. Otherwise as allstop_queue_enqueue_many. */
static inline allstop_status allstop_queue_enqueue(const allstop_queue *queue, const void *data,
                                                   size_t size, double timeout_ms) {
  allstop_item item;
  allstop_status status = ALLSTOP_OK;
  size_t i;
  if (size <= ALLSTOP_ITEM_IN_PLACE) {
    item.size = size;
    item.release = NULL;
    for (i = 0; i < size; ++i) item.in_place[i] = ((const unsigned char *)data)[i];
  } else {
    status = allstop_item_copy(queue, data, size, &item);
    if (status != ALLSTOP_OK) return status;
  }
  status = allstop_queue_enqueue_many(queue, &item, 1, timeout_ms, NULL);
  allstop_item_release(&item);
  return status;
}

/**
 * Dequeues the items that are in the queue, up to `max`, waiting for the first one if the
 * queue is empty. Any thread. Blocks for at most `timeout_ms` milliseconds (INFINITY: no
 * limit; 0: not at all).
 *
 * @param[out] items has room for `max` items. Release each item that you get with
 *   allstop_item_release.
 * @param[out] dequeued how many you got; not NULL
 * @retval ALLSTOP_OK you got at least one
 * @retval ALLSTOP_DEADLINE_EXCEEDED the queue was empty until the time had passed
 * @retval ALLSTOP_CANCELLED the queue is empty, and its coordinator was stopped
 * @retval ALLSTOP_OUT_OF_RANGE the queue is empty and closed: the end
 * @retval ALLSTOP_FAILED_PRECONDITION not a queue of bytes
 * @retval ALLSTOP_INVALID_ARGUMENT `timeout_ms` is NaN or negative, or `max` is 0
 */
static inline allstop_status allstop_queue_dequeue_many(const allstop_queue *queue,
                                                        allstop_item *items, size_t max,
                                                        double timeout_ms, size_t *dequeued) {
  return queue->table->queue_dequeue(queue->state, items, max, timeout_ms, dequeued);
}

/**
 * As allstop_queue_dequeue_many, but waits until the queue has `least` items. Takes fewer, but
 * at least one, when the time has passed, when the queue is closed (and no enqueue waits any
 * more), or when its coordinator was stopped. The wait reserves no items: other consumers may
 * take them meanwhile. Since 1.3.
 *
 * @param least 1 to `max`, and not above the capacity of the queue
 * @retval ALLSTOP_OK you got at least one
 * @retval ALLSTOP_DEADLINE_EXCEEDED the time has passed, and the queue was empty then
 * @retval ALLSTOP_INVALID_ARGUMENT `least` is 0, or above `max` or the capacity; or as for
 *   allstop_queue_dequeue_many
 * @retval ALLSTOP_RESOURCE_EXHAUSTED nothing was dequeued
 * @retval ALLSTOP_UNAVAILABLE the package is older than 1.3; nothing was dequeued
 */
static inline allstop_status allstop_queue_dequeue_least(const allstop_queue *queue,
                                                         allstop_item *items, size_t max,
                                                         size_t least, double timeout_ms,
                                                         size_t *dequeued) {
  *dequeued = 0;
  if (!ALLSTOP_HAS(queue->table, queue_dequeue_least)) return ALLSTOP_UNAVAILABLE;
  return queue->table->queue_dequeue_least(queue->state, items, max, least, timeout_ms, dequeued);
}

/** Dequeues one item. Otherwise as allstop_queue_dequeue_many. */
static inline allstop_status allstop_queue_dequeue(const allstop_queue *queue, allstop_item *item,
                                                   double timeout_ms) {
  size_t dequeued = 0;
  return allstop_queue_dequeue_many(queue, item, 1, timeout_ms, &dequeued);
}

/**
 * Closes the queue: an enqueue that begins after this call returns ALLSTOP_CANCELLED. An
 * enqueue that waits for room already goes on as consumers make room, unless `flags` holds
 * ALLSTOP_CLOSE_CANCEL_PENDING. May be called again. Any thread; does not block.
 *
 * @param flags ALLSTOP_CLOSE_CANCEL_PENDING or 0
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `flags` holds an unknown flag
 */
static inline allstop_status allstop_queue_close(const allstop_queue *queue, uint32_t flags) {
  return queue->table->queue_close(queue->state, flags);
}

/**
 * Copies the state of the queue into `info`, up to `info->size` bytes. Any thread; does not
 * block.
 *
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_INVALID_ARGUMENT `info->size` is too small: probably it was not set
 */
static inline allstop_status allstop_queue_read(const allstop_queue *queue,
                                                allstop_queue_info *info) {
  return queue->table->queue_info(queue->state, info);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ALLSTOP_ALLSTOP_QUEUE_H_ */
