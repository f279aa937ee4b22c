/**
 * `Gate`: a place in the code where threads are held until a test lets them go on.
 *
 * 1. The state is two words of shared memory: how many have arrived, and whether the gate is open.
 *    Both only grow, so a waiting thread tests a predicate and misses nothing.
 * 2. Every change notifies the word that it has changed. The stop of the coordinator notifies no
 *    word: a blocked thread looks at it after each slice of 50 ms, in which it can be terminated;
 *    an asynchronous wait also waits for the stop itself.
 * 3. Slices are timed by V8, not by `setTimeout`: fake timers do not hold them up.
 */

import { addAbortListener, removeAbortListener, throwIfAborted } from '../base/abort.ts';
import {
  checkDuration,
  checkOptions,
  checkSignal,
  checkString,
  invalidType,
  outOfRange,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import { now, turn } from '../base/timer.ts';
import { isSharedWords, lengthOf } from '../base/typed-arrays.ts';
import { type Attachment, attachmentOf, checkCoordinator } from '../coordinator/attachment.ts';
import { Coordinator } from '../coordinator/coordinator.ts';
import type { CoordinatorHandle } from '../coordinator/handle.ts';
import { waitForStop } from '../coordinator/waits.ts';
import { counted } from '../coordinator/words.ts';
import { CancelledError, DeadlineExceededError, InvalidHandleError } from '../errors/errors.ts';
import { SLICE_MS } from '../native/binding.ts';
import { hold, release } from '../native/native.ts';

/** The options of a Gate. */
export type GateOptions = {
  /** Its stop ends the waits at the gate, with a CancelledError (default: none). */
  coordinator?: Coordinator | undefined;
  /** For messages (default: `gate-N`). */
  name?: string | undefined;
};

/** The options of the waits at a Gate. */
export type GateWaitOptions = {
  /** Milliseconds (default Infinity; 0 only looks). Real time, also under fake timers. */
  timeoutMs?: number | undefined;
  /** When it aborts, the wait rejects with the signal's reason. Default: no signal. */
  signal?: AbortSignal | undefined;
};

/**
 * What another JavaScript thread of this process passes to `Gate.attach`. It can be posted, or be
 * an argument of a function on a cluster of threads.
 */
export type GateHandle = {
  /** What the handle is of. */
  readonly type: 'allstop.Gate';
  /** The name of the gate. */
  readonly name: string;
  /** The shared memory of the gate. */
  readonly words: Int32Array;
  /** The handle of the option `coordinator`. Left out if there is none. */
  readonly coordinator?: CoordinatorHandle;
};

type State = { name: string; words: Int32Array; coordinator: Coordinator | undefined };

const WAIT_OPTIONS = { timeoutMs: checkDuration, signal: checkSignal };

/** The words of the shared memory. */
const ARRIVED = 0;
const OPEN = 1;

let made = 0;
/** Set while a Gate is made for a state that exists already. */
let adopted: State | undefined;

const isState = (words: unknown): words is Int32Array =>
  isSharedWords(words) && lengthOf(words) === 2;

/**
 * Holds threads at a place in their code, until the test opens it: so a test knows where each
 * thread is, and no test has to sleep. The threads are JavaScript threads of this process, which
 * share the gate by its `handle`; the thread that made it may be one of them.
 *
 * An open gate stays open. The gate needs no `close`: when the last thread has dropped it, it is
 * gone. Disposing of it opens it, so that a test which fails holds nobody.
 *
 * @example
 * ```js
 * import { Coordinator } from 'allstop';
 * import { Gate } from 'allstop/testing';
 *
 * const coord = new Coordinator();
 * const gate = new Gate();
 * coord.start(async () => {
 *   await gate.pass();
 *   console.log('written');
 * });
 * await gate.arrived(); // the task is at the gate, and has written nothing
 * gate.open();
 * await coord.join(); // written
 * ```
 */
export class Gate implements Disposable {
  readonly #state: State;
  readonly #attachment: Attachment | undefined;

  static {
    showAs(Gate.prototype, ({ name, isOpen, arrivals }) => ({
      name,
      facts: [isOpen ? 'open' : 'closed', counted(arrivals, 'arrival')],
    }));
  }

  /** @throws TypeError (`ERR_INVALID_ARG_TYPE`) */
  constructor(options?: GateOptions) {
    if (adopted !== undefined) {
      this.#state = adopted;
    } else {
      const known = { coordinator: checkCoordinator, name: checkString };
      const { coordinator, name = `gate-${++made}` } = checkOptions('options', options, known);
      const words = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
      this.#state = { name, words, coordinator };
    }
    const { coordinator } = this.#state;
    this.#attachment = coordinator && attachmentOf(coordinator);
  }

  /**
   * The gate whose `handle` another JavaScript thread of this process has read.
   *
   * @throws InvalidHandleError (`ERR_ALLSTOP_INVALID_HANDLE`): this is not the handle of a gate,
   *   or the handle of its coordinator is stale; TypeError: `handle` is not an object
   */
  static attach(handle: GateHandle): Gate {
    if (typeof handle !== 'object' || handle === null) {
      throw invalidType('handle', 'the handle of a Gate', handle);
    }
    const { type, name, words, coordinator } = handle;
    if (type !== 'allstop.Gate' || typeof name !== 'string' || !isState(words)) {
      throw new InvalidHandleError('The handle is not the handle of a Gate');
    }
    const own = coordinator === undefined ? undefined : Coordinator.attach(coordinator);
    adopted = { name, words, coordinator: own };
    try {
      return new Gate();
    } finally {
      adopted = undefined;
    }
  }

  /** The option `name`. */
  get name(): string {
    return this.#state.name;
  }

  /** What another JavaScript thread of this process passes to `attach`. */
  get handle(): GateHandle {
    const { name, words, coordinator } = this.#state;
    const of = coordinator === undefined ? {} : { coordinator: coordinator.handle };
    return { type: 'allstop.Gate', name, words, ...of };
  }

  /** How often a thread has arrived: the calls of `pass` and `passSync`, in all threads. */
  get arrivals(): number {
    return Atomics.load(this.#state.words, ARRIVED);
  }

  /** Whether the gate is open. */
  get isOpen(): boolean {
    return Atomics.load(this.#state.words, OPEN) !== 0;
  }

  /** Lets all threads pass, those that arrive later, too. A second call does nothing. */
  open(): void {
    Atomics.store(this.#state.words, OPEN, 1);
    Atomics.notify(this.#state.words, OPEN);
  }

  [Symbol.dispose](): void {
    this.open();
  }

  /**
   * Resolves when threads have arrived `count` times in all (default 1), also if they have passed
   * since. Keeps the event loop alive meanwhile.
   *
   * @param count - an integer from 1
   * @throws (rejects) DeadlineExceededError: fewer have arrived after `timeoutMs`; CancelledError:
   *   the coordinator was stopped first (its `cause` is the reason of `coordinator.signal`); the
   *   reason of `options.signal`; TypeError, RangeError
   */
  async arrived(count: number = 1, options?: GateWaitOptions): Promise<void> {
    if (typeof count !== 'number') throw invalidType('count', 'of type number', count);
    const isCount = Number.isSafeInteger(count) && count >= 1;
    if (!isCount) throw outOfRange('count', 'an integer >= 1', count);
    await this.#wait(ARRIVED, count, options);
  }

  /**
   * Counts as an arrival, and resolves when the gate is open. Keeps the event loop alive meanwhile.
   *
   * @throws (rejects) DeadlineExceededError: the gate is closed after `timeoutMs`; CancelledError:
   *   the coordinator was stopped first. Its `cause` is the reason of `coordinator.signal`, and
   *   reported to the coordinator it is no new error; the reason of `options.signal`; TypeError,
   *   RangeError
   */
  async pass(options?: GateWaitOptions): Promise<void> {
    await this.#wait(OPEN, 1, options);
  }

  /**
   * As `pass`, but blocks this thread. If it is a worker, another thread that calls `terminate()`
   * or `process.exit()` ends it, and the coordinator's stop ends the wait within 50 ms.
   *
   * @param options.timeoutMs - milliseconds; default Infinity
   * @throws DeadlineExceededError, CancelledError: as `pass`; TypeError, RangeError
   */
  passSync(options?: { timeoutMs?: number | undefined }): void {
    const known = { timeoutMs: checkDuration };
    const { timeoutMs = Infinity } = checkOptions('options', options, known);
    const { words } = this.#state;
    const since = this.#attachment?.native.generation();
    this.#arrive();
    const deadline = now() + timeoutMs;
    while (!this.isOpen) {
      this.#throwIfStopped(since);
      const left = deadline - now();
      if (left <= 0) throw this.#late(timeoutMs);
      Atomics.wait(words, OPEN, 0, Math.min(left, SLICE_MS));
    }
  }

  #arrive(): void {
    Atomics.add(this.#state.words, ARRIVED, 1);
    Atomics.notify(this.#state.words, ARRIVED);
  }

  /** `count`: of how many arrivals; undefined: nobody has opened. */
  #late(timeoutMs: number, count?: number): DeadlineExceededError {
    const what =
      count === undefined
        ? `the gate '${this.name}' was closed. Does the test call open()`
        : `${this.arrivals} of ${count} threads had arrived at the gate '${this.name}'. Does each call pass() or passSync()`;
    return new DeadlineExceededError(`After ${timeoutMs} ms ${what}?`);
  }

  /** `since`: the generation when the wait began. A later stop ends it, also a cleared one. */
  #throwIfStopped(since: number | undefined): void {
    const attachment = this.#attachment;
    if (attachment === undefined) return;
    if (!attachment.shouldStop() && attachment.native.generation() === since) return;
    throw attachment.signal.interrupted(
      new CancelledError(
        `The wait at the gate '${this.name}' has ended: the coordinator '${attachment.native.name}' was stopped`,
      ),
    );
  }

  /** Waits until `word` is `least`. Who waits for OPEN arrives. */
  async #wait(word: number, least: number, options: GateWaitOptions | undefined): Promise<void> {
    const { timeoutMs = Infinity, signal } = checkOptions('options', options, WAIT_OPTIONS);
    throwIfAborted(signal);
    const { words } = this.#state;
    const attachment = this.#attachment;
    const since = attachment?.native.generation();
    const deadline = now() + timeoutMs;
    if (word === OPEN) this.#arrive();
    const ended = new AbortController();
    let wake = (): void => {};
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    if (attachment !== undefined) {
      waitForStop(attachment, Infinity, ended.signal, since).then(wake, () => {});
    }
    if (signal !== undefined) addAbortListener(signal, wake);
    hold();
    try {
      for (;;) {
        const seen = Atomics.load(words, word);
        if (seen >= least) return;
        this.#throwIfStopped(since);
        throwIfAborted(signal);
        const left = deadline - now();
        if (left <= 0) {
          await turn(); // a loop of looks starves nothing
          throw this.#late(timeoutMs, word === OPEN ? undefined : least);
        }
        const slice = Atomics.waitAsync(words, word, seen, Math.min(left, SLICE_MS));
        if (slice.async) await Promise.race([slice.value, woken]);
      }
    } finally {
      release();
      ended.abort();
      if (signal !== undefined) removeAbortListener(signal, wake);
    }
  }
}
