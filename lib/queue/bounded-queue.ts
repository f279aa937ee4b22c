/** A queue between threads, JavaScript threads and native ones. */

import { isUint8Array } from 'node:util/types';
import { throwIfAborted } from '../base/abort.ts';
import {
  checkBoolean,
  checkDuration,
  checkOptions,
  checkSignal,
  checkString,
  invalidType,
  oneOf,
  outOfRange,
  unchecked,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import { now, rejectInATurn, turn } from '../base/timer.ts';
import { WeakById } from '../base/weak-by-id.ts';
import { Attachment, attachmentOf, checkCoordinator } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { idOfHandle, type QueueHandle } from '../coordinator/handle.ts';
import { counted } from '../coordinator/words.ts';
import {
  CancelledError,
  DeadlineExceededError,
  InvalidHandleError,
  OutOfRangeError,
} from '../errors/errors.ts';
import { log } from '../events/spine.ts';
import { CODECS, type NativeQueue, SLICE_MS, STATUS } from '../native/binding.ts';
import { binding, listen, unlisten } from '../native/native.ts';
import { readBytes, readValue, readValues, type Written, writeValue } from './queue-codec.ts';
import { maySettleAtOnce, QueueWaits, WOULD_WAIT } from './queue-waits.ts';

/** The options of a BoundedQueue. */
export type BoundedQueueOptions = {
  /** How many items the queue holds, at least 1. */
  capacity: number;
  /** For messages; by default "queue-N". */
  name?: string | undefined;
  /** A stop of this coordinator ends every wait at the queue; by default no stop does. */
  coordinator?: Coordinator | undefined;
  /**
   * 'structured' (default): the items are JavaScript values, copied as a structured clone copies
   * them, without shared or transferred objects; native code cannot read them. 'bytes': the items
   * are `Uint8Array`s, which are copied; native code can enqueue and dequeue them, too.
   */
  codec?: 'structured' | 'bytes' | undefined;
};

/** The options of the waits at a queue: `enqueue` and `dequeue`. */
export type QueueWaitOptions = {
  /** The longest wait, in milliseconds. 0: do not wait. Default: no limit. */
  timeoutMs?: number | undefined;
  /** When it aborts, the wait ends and rejects with the signal's reason. Default: no signal. */
  signal?: AbortSignal | undefined;
};

/** The options of `dequeueMany`. */
export type DequeueManyOptions = QueueWaitOptions & {
  /**
   * How many items to wait for: an integer from 1 (default) to `max`, and not above the capacity.
   */
  min?: number | undefined;
};

const done = Promise.resolve();

/** The promise of an `enqueue` whose item is in the queue: a stack overflow must not reject it. */
function enqueued(): Promise<void> {
  try {
    return maySettleAtOnce() ? done : turn();
  } catch {
    return done;
  }
}

const byId = new WeakById<BoundedQueue>();

/** Set while `attach` makes a BoundedQueue for a native queue that exists already. */
let adopted: NativeQueue | undefined;

let unnamed = 0;

function create(options: unknown): NativeQueue {
  const given = checkOptions('options', options as BoundedQueueOptions, QUEUE_OPTIONS);
  const { capacity, name, coordinator, codec = 'structured' } = given;
  if (capacity === Number.POSITIVE_INFINITY) {
    const expected =
      'an integer >= 1, as many items as may wait in memory: the bound is what the queue is for';
    throw outOfRange('options.capacity', expected, capacity);
  }
  checkCount('options.capacity', capacity);
  const shared = coordinator === undefined ? null : attachmentOf(coordinator).native;
  return binding().createQueue(
    name ?? `queue-${++unnamed}`,
    capacity,
    CODECS.indexOf(codec),
    shared,
  );
}

function checkCount(name: string, value: unknown): asserts value is number {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  if (!Number.isSafeInteger(value) || value < 1) throw outOfRange(name, 'an integer >= 1', value);
}

const QUEUE_OPTIONS = {
  capacity: unchecked,
  name: checkString,
  coordinator: checkCoordinator,
  codec: oneOf(...CODECS),
};
const WAIT_OPTIONS = { timeoutMs: checkDuration, signal: checkSignal };
const MANY_OPTIONS = { ...WAIT_OPTIONS, min: unchecked };

/**
 * A queue that makes producers wait when it is full. One native queue, shared by all
 * JavaScript threads that attach to it and by native threads; TensorFlow's FIFOQueue.
 *
 * - First in, first out for each producer (for each JavaScript thread). The order among
 *   waiting threads is unspecified.
 * - A wait reserves nothing: an item is taken when its consumer runs. A wait that is
 *   aborted, times out, or dies with its worker loses no item.
 * - With a `coordinator`, a stop ends every wait at once. From then on `enqueue` fails
 *   with a CancelledError whose cause is the abort reason of `coord.signal`; `dequeue`
 *   takes the items that are left without waiting, and then fails the same way. Such an
 *   error is an echo of the stop.
 * - While a promise of the queue is pending, the event loop stays alive. However fast items
 *   come, the loop turns every few milliseconds between them, so a loop that awaits one item
 *   after another does not starve timers and signals.
 *
 * @example
 * ```js
 * import { BoundedQueue, Coordinator } from 'allstop';
 *
 * await Coordinator.run(async (coord) => {
 *   const queue = new BoundedQueue({ capacity: 2, coordinator: coord });
 *   coord.start(async () => {
 *     for (const item of [1, 2, 3]) await queue.enqueue(item); // waits while the queue is full
 *     queue.close();
 *   });
 *   for await (const item of queue) console.log(item); // ends when it is closed and empty
 * });
 * ```
 */
export class BoundedQueue<T = unknown> implements AsyncIterable<T> {
  readonly #native: NativeQueue;
  readonly #isOfBytes: boolean;
  readonly #enqueues: QueueWaits;
  readonly #dequeues: QueueWaits;
  #found: Attachment | undefined;
  readonly #listener = {
    check: (): void => {
      this.#enqueues.check();
      this.#dequeues.check();
    },
  };

  static {
    showAs(BoundedQueue.prototype, (queue) => {
      const native = queue.#native;
      const facts = [`${native.size()} of ${counted(native.capacity, 'item')}`];
      if (native.closed()) facts.push('closed');
      if (queue.#isOfBytes) facts.push('bytes');
      return { name: native.name, facts };
    });
  }

  /** @throws TypeError (`ERR_INVALID_ARG_TYPE`), RangeError (`ERR_OUT_OF_RANGE`) */
  constructor(options: BoundedQueueOptions) {
    const native = adopted ?? create(options);
    this.#native = native;
    this.#isOfBytes = CODECS[native.codec] === 'bytes';
    const onIdle = (): void => {
      if (this.#enqueues.size + this.#dequeues.size === 0) unlisten(native.token);
    };
    this.#enqueues = new QueueWaits(native, true, onIdle);
    this.#dequeues = new QueueWaits(native, false, onIdle);
    native.bindCapsule(this);
    byId.set(native.id, this);
  }

  /**
   * The queue behind a handle that was read in another JavaScript thread of this process. Within
   * one thread it returns the same object each time, as long as that object lives.
   *
   * @throws InvalidHandleError (`ERR_ALLSTOP_INVALID_HANDLE`): the handle is stale, of
   *   another process, or of another copy of the package
   */
  static attach<T = unknown>(handle: QueueHandle<T>): BoundedQueue<T> {
    const id = idOfHandle('BoundedQueue', handle);
    const known = byId.get(id);
    if (known !== undefined) return known as BoundedQueue<T>;
    const native = binding().attachQueue(Number(id));
    if (native === null) {
      throw new InvalidHandleError(
        'The handle is stale: its BoundedQueue is gone. Keep the queue alive in the thread that ' +
          'read `handle` until attach() has been called',
      );
    }
    adopted = native;
    try {
      return new BoundedQueue<T>({ capacity: native.capacity });
    } finally {
      adopted = undefined;
    }
  }

  /** The option `name`. */
  get name(): string {
    return this.#native.name;
  }

  /** The option `capacity`: how many items the queue holds. */
  get capacity(): number {
    return this.#native.capacity;
  }

  /** How many items the queue has now. Other threads may change it at any moment. */
  get size(): number {
    return this.#native.size();
  }

  /** Whether any thread has called `close`. The queue may still have items. */
  get closed(): boolean {
    return this.#native.closed();
  }

  /**
   * A handle for `attach` in another JavaScript thread of this process. Once it has been read, the
   * queue stays alive until this thread ends, or until the queue is closed and empty and this
   * object has been garbage-collected.
   */
  get handle(): QueueHandle<T> {
    this.#native.publish();
    return { type: 'allstop.BoundedQueue', world: binding().world, id: this.#native.id };
  }

  /**
   * Resolves when the item is in the queue.
   *
   * @throws (rejects) CancelledError: the queue is closed or stopped; DeadlineExceededError:
   *   after `timeoutMs`; the reason of `options.signal`; TypeError: the item cannot be cloned, or
   *   is not a Uint8Array (codec 'bytes'). In all these cases nothing was enqueued.
   */
  enqueue(item: T, options?: QueueWaitOptions): Promise<void> {
    try {
      const given = checkOptions('options', options, WAIT_OPTIONS);
      const { timeoutMs = Number.POSITIVE_INFINITY, signal } = given;
      const written = this.#write(item);
      throwIfAborted(signal);
      if (this.#tryEnqueueInTurn(written)) return enqueued();
      const timedOut = (): Error => this.#timedOut('enqueue', timeoutMs);
      if (timeoutMs === 0) return rejectInATurn(timedOut());
      // A copy: the caller may change its own bytes while this waits.
      const kept = typeof written === 'string' ? written : new Uint8Array(written);
      const attempt = (since: number, ms?: number): undefined | typeof WOULD_WAIT =>
        this.#tryEnqueue(kept, since, ms) ? undefined : WOULD_WAIT;
      const ended = (): void => this.#native.endEnqueue();
      const generation = this.#beginEnqueue();
      const { size } = this.#enqueues;
      try {
        listen(this.#native.token, this.#listener);
        return this.#enqueues.add(generation, attempt, { timeoutMs, signal, timedOut, ended });
      } finally {
        // No wait was added: the stack is full, and `ended` was not called.
        if (this.#enqueues.size === size) this.#native.endEnqueue();
      }
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As `enqueue`, but blocks this thread. In a worker, `terminate()` and `process.exit()` end the
   * wait within 50 ms. Pending calls of `enqueue` from this thread go first.
   *
   * @param timeoutMs - the longest wait, in milliseconds; default: no limit
   * @throws CancelledError, DeadlineExceededError, TypeError: as `enqueue`; RangeError: `timeoutMs`
   */
  enqueueSync(item: T, timeoutMs: number = Number.POSITIVE_INFINITY): void {
    checkDuration('timeoutMs', timeoutMs);
    const written = this.#write(item);
    if (this.#tryEnqueueInTurn(written)) return;
    const deadline = now() + timeoutMs;
    const slice = (): number => {
      const left = deadline - now();
      if (left <= 0) throw this.#timedOut('enqueueSync', timeoutMs);
      return Math.min(left, SLICE_MS);
    };
    const generation = this.#beginEnqueue();
    try {
      while (this.#enqueues.size > 0) this.#enqueues.attemptFirst(slice());
      if (this.#tryEnqueue(written, generation, 0)) return;
      while (!this.#tryEnqueue(written, generation, slice()));
    } finally {
      this.#native.endEnqueue();
    }
  }

  /**
   * Enqueues the item if there is room and no earlier `enqueue` of this thread is still waiting.
   *
   * @returns whether the item was enqueued
   * @throws CancelledError: the queue is closed or stopped; TypeError: as `enqueue`
   */
  tryEnqueue(item: T): boolean {
    const written = this.#write(item);
    return this.#tryEnqueueInTurn(written);
  }

  /**
   * Resolves to the next item.
   *
   * @throws (rejects) OutOfRangeError: the queue is closed and empty; CancelledError: the queue is
   *   stopped and empty; DeadlineExceededError: after `timeoutMs`; the reason of `options.signal`
   */
  dequeue(options?: QueueWaitOptions): Promise<T> {
    try {
      const given = checkOptions('options', options, WAIT_OPTIONS);
      return this.#dequeue('dequeue', given, (since, ms) => this.#tryDequeue(since, ms), 1);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As `dequeue`, but takes several items: waits until the queue has `options.min` of them, then
   * takes those that it has, at most `max`, and at most 65,536 (or `min`, if that is more).
   *
   * When `timeoutMs` is over it takes the items that the queue has by then, although they are
   * fewer than `min`; if the queue has none, it rejects with a DeadlineExceededError. It also
   * takes fewer when the queue is closed or stopped. The wait reserves no items: other consumers
   * may take them meanwhile.
   *
   * @example
   * ```js
   * import { BoundedQueue } from 'allstop';
   *
   * const queue = new BoundedQueue({ capacity: 10 });
   * for (const item of [1, 2, 3]) await queue.enqueue(item);
   * console.log(await queue.dequeueMany(2)); // [ 1, 2 ]
   * console.log(await queue.dequeueMany(2, { min: 2, timeoutMs: 20 })); // [ 3 ], after 20 ms
   * ```
   * @throws (rejects) as `dequeue`; RangeError (`ERR_OUT_OF_RANGE`): `min` is above `max` or above
   *   the capacity
   */
  dequeueMany(max: number, options?: DequeueManyOptions): Promise<T[]> {
    try {
      checkCount('max', max);
      const given = checkOptions('options', options, MANY_OPTIONS);
      const { min = 1 } = given;
      checkCount('options.min', min);
      if (min > max) throw outOfRange('options.min', `<= max (${max})`, min);
      const { capacity } = this.#native;
      if (min > capacity) {
        throw outOfRange('options.min', `<= the capacity of the queue (${capacity})`, min);
      }
      const attempt = (since?: number, _ms?: number, least = 1): T[] | typeof WOULD_WAIT =>
        this.#tryDequeueMany(max, least, since);
      return this.#dequeue('dequeueMany', given, attempt, min);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As `dequeue`, but blocks this thread. If this thread is a worker, the wait ends within 50 ms
   * when another thread calls `terminate()` on it, or the main thread calls `process.exit()`. Items
   * of `enqueue` calls of this thread that wait for room enter the queue meanwhile; their promises
   * resolve afterwards.
   *
   * @param timeoutMs - the longest wait, in milliseconds; default: no limit
   * @throws OutOfRangeError, CancelledError, DeadlineExceededError: as `dequeue`; TypeError,
   *   RangeError: `timeoutMs`
   */
  dequeueSync(timeoutMs: number = Number.POSITIVE_INFINITY): T {
    checkDuration('timeoutMs', timeoutMs);
    let item = this.#tryDequeue();
    if (item !== WOULD_WAIT) return this.#arrived(item);
    const generation = this.#native.beginWait();
    const deadline = now() + timeoutMs;
    for (let left = timeoutMs; left > 0; left = deadline - now()) {
      // Enqueues of this thread that wait for room go on here. The event loop, which continues
      // them otherwise, is blocked: the queue could stay empty although their items wait.
      while (this.#enqueues.size > 0 && this.#enqueues.attemptFirst());
      item = this.#tryDequeue(generation, Math.min(left, SLICE_MS));
      if (item !== WOULD_WAIT) return this.#arrived(item);
    }
    throw this.#timedOut('dequeueSync', timeoutMs);
  }

  /**
   * Takes the next item without waiting.
   *
   * @returns undefined if the queue has no item now
   * @throws OutOfRangeError: the queue is closed and empty; CancelledError: the queue is stopped
   *   and empty
   */
  tryDequeue(): T | undefined {
    const item = this.#tryDequeue();
    return item === WOULD_WAIT ? undefined : this.#arrived(item);
  }

  /** Takes items one by one until the queue is closed or stopped, and empty. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    const ended = new AbortController();
    const end = (): IteratorResult<T> => {
      ended.abort();
      return { done: true, value: undefined };
    };
    // Not a generator: the `return` of a generator waits until a pending `next` has an item.
    const iterator: AsyncIterableIterator<T> = {
      next: async () => {
        if (ended.signal.aborted) return end();
        try {
          return { done: false, value: await this.dequeue({ signal: ended.signal }) };
        } catch (error) {
          const isEnd = error instanceof OutOfRangeError || error instanceof CancelledError;
          if (isEnd || ended.signal.aborted) return end();
          throw error;
        }
      },
      return: () => Promise.resolve(end()),
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  /**
   * Closes the queue: from now on every new `enqueue` fails, and the items that are left can be
   * dequeued. Calls of `enqueue` that are already waiting complete as there is room, unless
   * `cancelPendingEnqueues` is set (default false): then they fail with a CancelledError. May be
   * called again.
   *
   * @throws TypeError
   */
  close(options?: {
    /** Whether calls of `enqueue` that wait for room fail. Default: false. */
    cancelPendingEnqueues?: boolean | undefined;
  }): void {
    const known = { cancelPendingEnqueues: checkBoolean };
    const { cancelPendingEnqueues = false } = checkOptions('options', options, known);
    const isNews = log.enabled && !this.closed;
    this.#native.close(cancelPendingEnqueues);
    if (isNews) log("queue '%s': closed, with %d of %d items", this.name, this.size, this.capacity);
  }

  #write(item: T): Written {
    if (!this.#isOfBytes) return writeValue(item);
    if (!isUint8Array(item)) {
      throw invalidType('item', 'an instance of Uint8Array', item);
    }
    return item;
  }

  /** Registers a wait to enqueue, which may still complete after `close`. @throws CancelledError */
  #beginEnqueue(): number {
    const generation = this.#native.beginWait();
    if (!this.#native.beginEnqueue(generation)) throw this.#cancelled();
    return generation;
  }

  /** @returns false if the queue is full */
  #tryEnqueue(written: Written, generation?: number, ms?: number): boolean {
    const status = this.#native.enqueue(written, !this.#isOfBytes, generation, ms);
    if (status === STATUS.cancelled) throw this.#cancelled();
    return status === STATUS.ok;
  }

  /** As `#tryEnqueue`, but lets the pending enqueues of this thread go first. */
  #tryEnqueueInTurn(written: Written): boolean {
    while (this.#enqueues.size > 0 && this.#enqueues.attemptFirst());
    if (this.#enqueues.size === 0) return this.#tryEnqueue(written);
    this.#beginEnqueue(); // throws if the queue is closed or stopped
    this.#native.endEnqueue();
    return false;
  }

  /** `least`: how many items the wait is for. */
  #dequeue<R>(
    method: string,
    options: QueueWaitOptions,
    attempt: (generation?: number, ms?: number, least?: number) => R | typeof WOULD_WAIT,
    least: number,
  ): Promise<R> {
    const { timeoutMs = Number.POSITIVE_INFINITY, signal } = options;
    throwIfAborted(signal);
    const isLook = timeoutMs === 0;
    if ((isLook || this.#dequeues.size === 0) && maySettleAtOnce()) {
      const result = attempt(undefined, undefined, isLook ? 1 : least);
      if (result !== WOULD_WAIT) {
        // Before #arrived(): if a stack overflow throws here, the items go back to the queue.
        const promise = Promise.resolve(result);
        this.#arrived(undefined);
        return promise;
      }
      if (isLook) return rejectInATurn(this.#timedOut(method, timeoutMs));
    } else if (isLook) {
      return turn().then(() => this.#dequeue(method, options, attempt, least));
    }
    const timedOut = (): Error => this.#timedOut(method, timeoutMs);
    listen(this.#native.token, this.#listener);
    const generation = this.#native.beginWait();
    const arrived = (): void => this.#arrived(undefined);
    const wait = { timeoutMs, signal, least, timedOut, arrived };
    return this.#dequeues.add(generation, attempt, wait);
  }

  #tryDequeue(generation?: number, ms?: number): T | typeof WOULD_WAIT {
    const written = this.#native.dequeue(generation, ms);
    if (typeof written === 'number') return this.#failed(written);
    return this.#receive(() => (this.#isOfBytes ? written : readValue(written)) as T);
  }

  #tryDequeueMany(max: number, least: number, since?: number): T[] | typeof WOULD_WAIT {
    const written = this.#native.dequeueMany(max, least, since);
    if (typeof written === 'number') return this.#failed(written);
    const read = (): unknown[] =>
      this.#isOfBytes ? readBytes(written as unknown[]) : readValues(written as string);
    try {
      return this.#receive(read) as T[];
    } catch {
      // One of the items cannot be deserialized, and all went back to the queue. Take one item: the
      // good ones before it still arrive, and the error is that of the bad one alone.
      const first = this.#tryDequeue();
      return first === WOULD_WAIT ? WOULD_WAIT : [first];
    }
  }

  #receive<R>(read: () => R): R {
    try {
      return read();
    } catch (error) {
      this.#native.notReceived();
      throw error;
    }
  }

  /** Confirms to the native queue that the items have reached their consumer. */
  #arrived<R>(items: R): R {
    // If Node is ending this thread it refuses the call. The items then go back to the queue, so
    // they must not reach the consumer: this loop runs until the thread is gone.
    while (!this.#native.received());
    return items;
  }

  #failed(status: number): typeof WOULD_WAIT {
    if (status === STATUS.cancelled) throw this.#cancelled();
    if (status === STATUS.outOfRange) {
      throw new OutOfRangeError(`The queue '${this.name}' is closed and empty`);
    }
    return WOULD_WAIT;
  }

  /**
   * This thread's attachment of the queue's coordinator; cached, since every cancelled wait reads
   * it.
   */
  get #attachment(): Attachment | undefined {
    const { coordinatorId } = this.#native;
    if (this.#found === undefined && coordinatorId !== '') {
      const native = Attachment.find(coordinatorId)?.native ?? this.#native.coordinator();
      this.#found = Attachment.of(native);
    }
    return this.#found;
  }

  #cancelled(): Error {
    const attachment = this.#attachment;
    if (attachment?.shouldStop()) {
      const { name } = attachment.native;
      return attachment.signal.interrupted(
        new CancelledError(`The queue '${this.name}' was stopped with the coordinator '${name}'`),
      );
    }
    if (this.closed) return new CancelledError(`The queue '${this.name}' is closed`);
    const text = `The queue '${this.name}' was stopped with its coordinator, whose stop has since been cleared`;
    const error = new CancelledError(text);
    return attachment?.signal.interrupted(error) ?? error;
  }

  #timedOut(method: string, ms: number): Error {
    const state = method.startsWith('enqueue') ? `full (capacity ${this.capacity})` : 'empty';
    return new DeadlineExceededError(
      `${method}() on queue '${this.name}' timed out after ${ms} ms: it was ${state}`,
    );
  }
}
