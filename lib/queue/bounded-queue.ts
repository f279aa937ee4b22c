/** A queue between threads: JavaScript's, and native ones. */

import { isUint8Array } from 'node:util/types';
import {
  checkBoolean,
  checkDuration,
  checkOptions,
  checkSignal,
  checkString,
  invalidType,
  outOfRange,
} from '../base/arguments.ts';
import { now } from '../base/clock.ts';
import { turn } from '../base/turn.ts';
import { WeakById } from '../base/weak-by-id.ts';
import { Attachment, checkCoordinator } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { idOfHandle, type QueueHandle } from '../coordinator/handle.ts';
import {
  CancelledError,
  DeadlineExceededError,
  InvalidHandleError,
  OutOfRangeError,
} from '../errors/errors.ts';
import { CODECS, type NativeQueue, SLICE_MS, STATUS } from '../native/binding.ts';
import { listen, unlisten } from '../native/doorbell.ts';
import { binding } from '../native/native.ts';
import { readBytes, readValue, readValues, type Written, writeValue } from './queue-codec.ts';
import { maySettleAtOnce, QueueWaits, WOULD_WAIT } from './queue-waits.ts';

export type BoundedQueueOptions = {
  /** How many items it holds, at least 1. */
  capacity: number;
  name?: string | undefined;
  /** Its stop ends every wait at this queue. */
  coordinator?: Coordinator | undefined;
  /**
   * 'structured' (default): values, between JavaScript threads, as a structured clone
   * makes them; nothing that is shared or transferred. 'bytes': `Uint8Array`s, copied,
   * which native code sees, too.
   */
  codec?: 'structured' | 'bytes' | undefined;
};

export type QueueWaitOptions = {
  /** How long it waits at most; default: endlessly. 0: not at all. */
  timeoutMs?: number | undefined;
  /** Ends the wait, which then rejects with its reason. */
  signal?: AbortSignal | undefined;
};

const done = Promise.resolve();

const byId = new WeakById<BoundedQueue>();

/** Set while a BoundedQueue is made for a native one that exists already. */
let adopted: NativeQueue | undefined;

let unnamed = 0;

function create(options: unknown): NativeQueue {
  const given = checkOptions<BoundedQueueOptions>('options', options as BoundedQueueOptions);
  const { capacity, name, coordinator, codec = 'structured' } = given;
  if (typeof capacity !== 'number')
    throw invalidType('options.capacity', 'of type number', capacity);
  if (!Number.isSafeInteger(capacity) || capacity < 1) {
    throw outOfRange('options.capacity', 'an integer >= 1', capacity);
  }
  if (name !== undefined) checkString('options.name', name);
  const index = CODECS.indexOf(codec);
  if (index === -1) throw invalidType('options.codec', "one of 'structured', 'bytes'", codec);
  const shared =
    coordinator === undefined ? null : checkCoordinator('options.coordinator', coordinator).native;
  return binding().createQueue(name ?? `queue-${++unnamed}`, capacity, index, shared);
}

function checkWait(options: QueueWaitOptions | undefined): {
  timeoutMs: number;
  signal: AbortSignal | undefined;
} {
  const { timeoutMs = Number.POSITIVE_INFINITY, signal } = checkOptions('options', options);
  checkDuration('options.timeoutMs', timeoutMs);
  if (signal !== undefined) checkSignal('options.signal', signal);
  return { timeoutMs, signal };
}

/**
 * A queue that holds producers up when it is full. One native queue, shared by all
 * JavaScript threads that attach to it and by native threads; TensorFlow's FIFOQueue.
 *
 * - First in, first out for each producer (for each JavaScript thread). Who goes first
 *   among waiting threads is not promised.
 * - A waiter reserves nothing: an item is taken when its consumer runs. A wait that is
 *   aborted, times out, or dies with its worker loses none.
 * - With a `coordinator`, a stop ends every wait at once. From then on `enqueue` fails
 *   with a CancelledError, whose cause is what `coord.signal` aborts with; `dequeue`
 *   takes what is there without waiting, and then fails the same way. Such an error is
 *   an echo of the stop.
 * - While a promise of it is pending, the event loop stays alive. However fast items
 *   come, the loop turns every few milliseconds between them: timers and signals are not
 *   starved by who awaits one item after the other.
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
   * The queue behind a handle of another JavaScript thread of this process. The same
   * object each time, per thread, while it lives.
   *
   * @throws InvalidHandleError (`ERR_ALLSTOP_INVALID_HANDLE`): the handle is stale, of
   *   another process, or of another copy of the package
   */
  static attach<T = unknown>(handle: QueueHandle<T>): BoundedQueue<T> {
    const id = idOfHandle('BoundedQueue', handle);
    const known = byId.get(id);
    if (known !== undefined) return known as BoundedQueue<T>;
    const native = binding().attachQueue(Number(id));
    if (native === null) throw new InvalidHandleError('The handle is stale: its queue is gone');
    adopted = native;
    try {
      return new BoundedQueue<T>({ capacity: native.capacity });
    } finally {
      adopted = undefined;
    }
  }

  get name(): string {
    return this.#native.name;
  }

  get capacity(): number {
    return this.#native.capacity;
  }

  /** How many items there are: a guess, as other threads go on. */
  get size(): number {
    return this.#native.size();
  }

  /** Whether `close` was called, by anybody. There may be items yet. */
  get closed(): boolean {
    return this.#native.closed();
  }

  /**
   * For another JavaScript thread of this process. Reading it keeps the queue alive
   * until this thread ends; a queue that is closed and empty, until this object is
   * collected.
   */
  get handle(): QueueHandle<T> {
    this.#native.publish();
    return { type: 'allstop.BoundedQueue', world: binding().world, id: this.#native.id };
  }

  /**
   * Resolves when the item is in the queue.
   *
   * @throws (rejects) CancelledError: closed, or stopped; DeadlineExceededError; the
   *   reason of `options.signal`; TypeError: an item that cannot be cloned, or, of a
   *   queue of bytes, is no Uint8Array. Nothing was enqueued then.
   */
  enqueue(item: T, options?: QueueWaitOptions): Promise<void> {
    try {
      const { timeoutMs, signal } = checkWait(options);
      const written = this.#write(item);
      if (signal?.aborted) throw signal.reason;
      if (this.#tryEnqueueInTurn(written)) return maySettleAtOnce() ? done : turn();
      const timedOut = (): Error => this.#fullFor(timeoutMs);
      if (timeoutMs === 0) throw timedOut();
      const generation = this.#beginEnqueue();
      listen(this.#native.token, this.#listener);
      // Bytes of its own: what they are now is what was enqueued, whatever becomes of the caller's.
      const kept = typeof written === 'string' ? written : new Uint8Array(written);
      const attempt = (since: number, ms?: number): undefined | typeof WOULD_WAIT =>
        this.#tryEnqueue(kept, since, ms) ? undefined : WOULD_WAIT;
      const ended = (): void => this.#native.endEnqueue();
      return this.#enqueues.add(generation, attempt, { timeoutMs, signal, timedOut, ended });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As `enqueue`, blocking this thread. In a worker it gives way to `terminate()` and
   * `process.exit()` within 50 ms. What this thread has enqueued before and is waiting
   * yet goes first.
   */
  enqueueSync(item: T, timeoutMs: number = Number.POSITIVE_INFINITY): void {
    checkDuration('timeoutMs', timeoutMs);
    const written = this.#write(item);
    if (this.#tryEnqueueInTurn(written)) return;
    const deadline = now() + timeoutMs;
    const slice = (): number => {
      const left = deadline - now();
      if (left <= 0) throw this.#fullFor(timeoutMs);
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
   * Enqueues if there is room, and nothing that this thread has enqueued before is
   * waiting for it; whether it has.
   *
   * @throws CancelledError: closed, or stopped; TypeError, as `enqueue`
   */
  tryEnqueue(item: T): boolean {
    const written = this.#write(item);
    return this.#tryEnqueueInTurn(written);
  }

  /**
   * Resolves to the next item.
   *
   * @throws (rejects) OutOfRangeError: closed, and empty; CancelledError: stopped, and
   *   empty; DeadlineExceededError; the reason of `options.signal`
   */
  dequeue(options?: QueueWaitOptions): Promise<T> {
    return this.#dequeue(options, (since, ms) => this.#tryDequeue(since, ms));
  }

  /**
   * As `dequeue`, with 1 to `max` items: those that are there, once there is one; 65,536
   * at most.
   */
  dequeueMany(max: number, options?: QueueWaitOptions): Promise<T[]> {
    try {
      if (typeof max !== 'number') throw invalidType('max', 'of type number', max);
      if (!Number.isSafeInteger(max) || max < 1) throw outOfRange('max', 'an integer >= 1', max);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.#dequeue(options, (since, ms) => this.#tryDequeueMany(max, since, ms));
  }

  /**
   * As `dequeue`, blocking this thread, and giving way as `enqueueSync` does. What this
   * thread has enqueued before and is waiting yet goes in meanwhile.
   */
  dequeueSync(timeoutMs: number = Number.POSITIVE_INFINITY): T {
    checkDuration('timeoutMs', timeoutMs);
    let item = this.#tryDequeue();
    if (item !== WOULD_WAIT) return this.#arrived(item);
    const generation = this.#native.beginWait();
    const deadline = now() + timeoutMs;
    for (let left = timeoutMs; left > 0; left = deadline - now()) {
      while (this.#enqueues.size > 0 && this.#enqueues.attemptFirst()); // else it may be for these
      item = this.#tryDequeue(generation, Math.min(left, SLICE_MS));
      if (item !== WOULD_WAIT) return this.#arrived(item);
    }
    throw this.#emptyFor(timeoutMs);
  }

  /**
   * The next item, or undefined if there is none now.
   *
   * @throws OutOfRangeError: closed, and empty; CancelledError: stopped, and empty
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
    // Not a generator: its `return` would wait for a `next` that waits for an item.
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
   * From now on nobody begins to enqueue; what is there can be dequeued. Who waits to
   * enqueue already is let in as there is room, unless `cancelPendingEnqueues`. May be
   * called again.
   */
  close(options?: { cancelPendingEnqueues?: boolean | undefined }): void {
    const { cancelPendingEnqueues = false } = checkOptions('options', options);
    checkBoolean('options.cancelPendingEnqueues', cancelPendingEnqueues);
    this.#native.close(cancelPendingEnqueues);
  }

  #write(item: T): Written {
    if (!this.#isOfBytes) return writeValue(item);
    if (!isUint8Array(item)) {
      throw invalidType('item', 'an instance of Uint8Array', item);
    }
    return item;
  }

  /** A wait to enqueue, as which it is let in by `close`. */
  #beginEnqueue(): number {
    const generation = this.#native.beginWait();
    if (!this.#native.beginEnqueue(generation)) throw this.#cancelled();
    return generation;
  }

  /** False: it would have to wait. */
  #tryEnqueue(written: Written, generation?: number, ms?: number): boolean {
    const status = this.#native.enqueue(written, !this.#isOfBytes, generation, ms);
    if (status === STATUS.cancelled) throw this.#cancelled();
    return status === STATUS.ok;
  }

  /** The same, but for those that this thread has waiting: they go first. */
  #tryEnqueueInTurn(written: Written): boolean {
    while (this.#enqueues.size > 0 && this.#enqueues.attemptFirst());
    if (this.#enqueues.size === 0) return this.#tryEnqueue(written);
    this.#beginEnqueue(); // for what it throws
    this.#native.endEnqueue();
    return false;
  }

  #dequeue<R>(
    options: QueueWaitOptions | undefined,
    attempt: (generation?: number, ms?: number) => R | typeof WOULD_WAIT,
  ): Promise<R> {
    try {
      const { timeoutMs, signal } = checkWait(options);
      if (signal?.aborted) throw signal.reason;
      if (timeoutMs === 0 || (this.#dequeues.size === 0 && maySettleAtOnce())) {
        const result = attempt();
        if (result !== WOULD_WAIT) return Promise.resolve(this.#arrived(result));
      }
      const timedOut = (): Error => this.#emptyFor(timeoutMs);
      if (timeoutMs === 0) throw timedOut();
      listen(this.#native.token, this.#listener);
      const generation = this.#native.beginWait();
      const arrived = (): void => this.#arrived(undefined);
      return this.#dequeues.add(generation, attempt, { timeoutMs, signal, timedOut, arrived });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #tryDequeue(generation?: number, ms?: number): T | typeof WOULD_WAIT {
    const written = this.#native.dequeue(generation, ms);
    if (typeof written === 'number') return this.#failed(written);
    return this.#receive(() => (this.#isOfBytes ? written : readValue(written)) as T);
  }

  #tryDequeueMany(max: number, generation?: number, ms?: number): T[] | typeof WOULD_WAIT {
    const written = this.#native.dequeueMany(max, generation, ms);
    if (typeof written === 'number') return this.#failed(written);
    const read = (): unknown[] =>
      this.#isOfBytes ? readBytes(written as unknown[]) : readValues(written as string);
    try {
      return this.#receive(read) as T[];
    } catch {
      // One of them cannot be read: those before it one by one, and it is that one's error.
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

  /** What was dequeued is its consumer's from now on. */
  #arrived<R>(items: R): R {
    while (!this.#native.received()); // it goes back, as this thread is being ended: here, then
    return items;
  }

  #failed(status: number): typeof WOULD_WAIT {
    if (status === STATUS.cancelled) throw this.#cancelled();
    if (status === STATUS.outOfRange) {
      throw new OutOfRangeError(`The queue '${this.name}' is closed and empty`);
    }
    return WOULD_WAIT;
  }

  /** Of its coordinator. Found once: each of those that a stop cancels asks for it. */
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
      return attachment.interrupted(
        new CancelledError(`The queue '${this.name}' was stopped with the coordinator '${name}'`),
      );
    }
    return new CancelledError(
      this.closed
        ? `The queue '${this.name}' is closed`
        : `The queue '${this.name}' was stopped with its coordinator, which has been cleared since`,
    );
  }

  #fullFor(ms: number): Error {
    return new DeadlineExceededError(`The queue '${this.name}' was full for ${ms} ms`);
  }

  #emptyFor(ms: number): Error {
    return new DeadlineExceededError(`The queue '${this.name}' was empty for ${ms} ms`);
  }
}
