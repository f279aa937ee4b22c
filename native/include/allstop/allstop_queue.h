/*
 * allstop_queue.h - a bounded queue between threads, for native code.
 *
 * Part of allstop.h, which includes it. The same queue as JavaScript's
 * `BoundedQueue`: made here or there, used by C++ threads and JavaScript threads at
 * once. (allstop_node.h: from the JavaScript object to a handle.)
 *
 * The promise
 *   - First in, first out for each producer. An item is delivered once.
 *   - A full queue holds producers up, an empty one consumers, without busy waiting.
 *   - Closed: nothing more goes in, and what is there comes out; then consumers are
 *     told ALLSTOP_OUT_OF_RANGE.
 *   - Of a coordinator: its stop ends every wait at once, so nobody is held up by a
 *     full queue when threads are to end. Nothing goes in after it; what is there
 *     comes out; then consumers are told ALLSTOP_CANCELLED.
 *   - An `allstop_queue` is a small value that borrows a reference, as an
 *     `allstop_coordinator` is.
 *
 * What is not promised: turns among waiting threads. Whoever comes at the right moment
 * goes first.
 *
 * Items are bytes: native code has no part in a queue of JavaScript values (codec
 * 'structured'), and is told ALLSTOP_FAILED_PRECONDITION there.
 */
#ifndef ALLSTOP_ALLSTOP_QUEUE_H_
#define ALLSTOP_ALLSTOP_QUEUE_H_

#include "allstop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A handle: a borrowed reference to the queue, and its table. */
typedef struct allstop_queue {
  const allstop_table *table;
  allstop_queue_state *state;
} allstop_queue;

/* As many bytes are kept in an item itself. */
#define ALLSTOP_ITEM_IN_PLACE 32

/*
 * One item. It owns its bytes: read them with allstop_item_data, give them back with
 * allstop_item_release. All zeros is an empty one.
 *
 * To enqueue bytes of your own without a copy, set `data`, `size` and `release`. That
 * is called once, by whoever has the item then: on any thread, also when your own has
 * ended; it must not block and must not throw.
 */
typedef struct allstop_item {
  size_t size;                                             /* bytes */
  void (*release)(void *data, size_t size, void *context); /* NULL: they are in `in_place` */
  void *data;
  void *context; /* for `release` */
  unsigned char in_place[ALLSTOP_ITEM_IN_PLACE];
} allstop_item;

/* What a new queue is like. Set `size` to sizeof(allstop_queue_options). */
typedef struct allstop_queue_options {
  uint32_t size;
  uint32_t reserved;          /* 0 */
  allstop_string name;        /* for people; "native" if none */
  uint64_t capacity;          /* in items, at least 1 */
  allstop_state *coordinator; /* whose stop ends all waits, or NULL */
} allstop_queue_options;

#define ALLSTOP_CODEC_STRUCTURED 0u /* values, between JavaScript threads */
#define ALLSTOP_CODEC_BYTES 1u

/* Set `size` to sizeof(allstop_queue_info) before the call. */
typedef struct allstop_queue_info {
  uint32_t size;
  uint32_t codec;      /* ALLSTOP_CODEC_* */
  uint32_t closed;     /* 1 or 0 */
  uint32_t reserved;   /* 0 */
  uint64_t item_count; /* a guess, as others go on */
  uint64_t capacity;
  allstop_string name; /* lives as long as the queue */
} allstop_queue_info;

/* For allstop_queue_close: who waits to enqueue is told ALLSTOP_CANCELLED. */
#define ALLSTOP_CLOSE_CANCEL_PENDING 1u

/*
 * A queue of bytes in the world of `table` (of a coordinator's handle, say). The new
 * handle owns one reference; the queue holds one to its coordinator. Any thread; does
 * not block. ALLSTOP_INVALID_ARGUMENT: a capacity of 0, or a size that we do not know;
 * ALLSTOP_UNAVAILABLE; ALLSTOP_RESOURCE_EXHAUSTED. Since 1.2, as all that follows.
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

/* One more owner; one less, and the last one frees the queue and what is in it. Any
 * thread; does not block. */
static inline void allstop_queue_retain(const allstop_queue *queue) {
  queue->table->queue_retain(queue->state);
}
static inline void allstop_queue_release(const allstop_queue *queue) {
  queue->table->queue_release(queue->state);
}

/* The bytes of an item; valid until it is released, enqueued, or moved in memory. */
static inline const void *allstop_item_data(const allstop_item *item) {
  return item->release == NULL ? item->in_place : item->data;
}

/* Frees the bytes; the item is empty then. Any thread. */
static inline void allstop_item_release(allstop_item *item) {
  if (item->release != NULL) {
    item->release(item->data, item->size, item->context);
  }
  item->release = NULL;
  item->size = 0;
}

/* An item with a copy of `size` bytes. ALLSTOP_RESOURCE_EXHAUSTED. Any thread. */
static inline allstop_status allstop_item_copy(const allstop_queue *queue, const void *data,
                                               size_t size, allstop_item *item) {
  return queue->table->item_copy(data, size, item);
}

/*
 * Enqueues `count` items in order, as there is room; those that went in are empty
 * afterwards, and `*enqueued` (may be NULL) says how many. The others stay yours.
 * Blocks for `timeout_ms` at most (INFINITY: no limit; 0: not at all). Any thread.
 * ALLSTOP_OK: all; ALLSTOP_DEADLINE_EXCEEDED; ALLSTOP_CANCELLED: closed, or a stop;
 * ALLSTOP_FAILED_PRECONDITION: not a queue of bytes; ALLSTOP_INVALID_ARGUMENT: a bad
 * timeout, or an item that is longer than what it keeps in place and has no
 * `release`; ALLSTOP_RESOURCE_EXHAUSTED.
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

/* Enqueues a copy of `size` bytes. As allstop_queue_enqueue_many otherwise. */
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

/*
 * Takes 1 to `max` items: those that are there, once there is one. Each is to be
 * released. Blocks for `timeout_ms` at most (INFINITY, 0: as above). Any thread.
 * ALLSTOP_OK; ALLSTOP_DEADLINE_EXCEEDED; when it is empty: ALLSTOP_CANCELLED: a stop;
 * ALLSTOP_OUT_OF_RANGE: closed, the end; ALLSTOP_FAILED_PRECONDITION: not a queue of
 * bytes; ALLSTOP_INVALID_ARGUMENT: a bad timeout, or a `max` of 0.
 */
static inline allstop_status allstop_queue_dequeue_many(const allstop_queue *queue,
                                                        allstop_item *items, size_t max,
                                                        double timeout_ms, size_t *dequeued) {
  return queue->table->queue_dequeue(queue->state, items, max, timeout_ms, dequeued);
}

/* Takes one. As allstop_queue_dequeue_many otherwise. */
static inline allstop_status allstop_queue_dequeue(const allstop_queue *queue, allstop_item *item,
                                                   double timeout_ms) {
  size_t dequeued = 0;
  return allstop_queue_dequeue_many(queue, item, 1, timeout_ms, &dequeued);
}

/*
 * From now on nobody begins to enqueue. Who waits to enqueue already is let in as
 * consumers make room, unless ALLSTOP_CLOSE_CANCEL_PENDING is among the `flags`. May be
 * called again. Any thread; does not block. ALLSTOP_INVALID_ARGUMENT: unknown flags.
 */
static inline allstop_status allstop_queue_close(const allstop_queue *queue, uint32_t flags) {
  return queue->table->queue_close(queue->state, flags);
}

/* Fills `info`. ALLSTOP_INVALID_ARGUMENT: `info->size` is not known. Any thread. */
static inline allstop_status allstop_queue_read(const allstop_queue *queue,
                                                allstop_queue_info *info) {
  return queue->table->queue_info(queue->state, info);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ALLSTOP_ALLSTOP_QUEUE_H_ */
