/** TensorFlow's LooperThread: does something every so often, until a stop. */

import {
  checkDuration,
  checkOptions,
  checkString,
  holds,
  invalidType,
  nameOf,
} from '../base/arguments.ts';
import { attachmentBehind } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { OwnThread } from '../coordinator/own-thread.ts';
import { runInWorker } from '../coordinator/workers.ts';
import { workerEntry } from '../native/binary/package-files.ts';
import { type LooperTimes, loop, MISSED_TICKS, type MissedTicks } from './looper-loop.ts';
import type { LooperWork } from './looper-worker.ts';

export type LooperThreadOptions = {
  /**
   * What a run calls: a function, on this thread's event loop, or the URL of a module
   * whose default export is called in a Worker.
   */
  target?: ((...args: any[]) => unknown) | URL | undefined;
  /** Passed to the target. For a URL they are cloned, now. */
  args?: readonly unknown[] | undefined;
  /** Default: the name of the function or of the derived class, else 'looper'. */
  name?: string | undefined;
  /** Default: 'burst', as in TensorFlow. */
  missedTicks?: MissedTicks | undefined;
};

function checkTarget(
  name: string,
  target: unknown,
): asserts target is URL | ((...args: any[]) => unknown) {
  if (typeof target === 'function' || holds(() => target instanceof URL)) return;
  throw invalidType(name, 'a function or an instance of URL', target);
}

/**
 * A thread of a coordinator that calls its target at once and then every `intervalMs`
 * milliseconds, until a stop. The times are fixed, by a monotonic clock: they do not
 * drift, and a stop ends the wait for the next one at once, even if it is cleared at
 * once.
 *
 * A function runs on the event loop of this JavaScript thread: it is awaited, and the
 * loop turns between two runs. A module runs in a Worker, where `Coordinator.current()`
 * is this coordinator and `workerData` is not its own.
 *
 * What a run throws, or rejects with, stops the coordinator and ends the looper. So does
 * what `startLoop` or `stopLoop` throws.
 *
 * Also a base class: override `runLoop` instead of giving a target.
 */
export class LooperThread {
  readonly name: string;
  readonly #times: LooperTimes;
  readonly #target: ((...args: any[]) => unknown) | URL | undefined;
  readonly #args: readonly unknown[];
  readonly #thread: OwnThread;

  /**
   * Registers itself: `coord.threads` lists it, and until it is started it holds up no
   * join. A refused call registers nothing.
   *
   * @param intervalMs null or 0: back to back; Infinity: one run
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`): also for `args` without a target, for
   *   none where this class is not derived from, and for a URL beside a `runLoop`; RangeError
   *   (`ERR_OUT_OF_RANGE`); DataCloneError: args of a module that cannot be cloned
   */
  constructor(coord: Coordinator, intervalMs: number | null, options?: LooperThreadOptions) {
    const attachment = attachmentBehind('coord', coord);
    if (intervalMs !== null) checkDuration('intervalMs', intervalMs);
    const { target, args, name, missedTicks = 'burst' } = checkOptions('options', options);
    if (name !== undefined) checkString('options.name', name);
    if (!MISSED_TICKS.includes(missedTicks)) {
      throw invalidType('options.missedTicks', "one of 'burst', 'skip', 'delay'", missedTicks);
    }
    if (args !== undefined && !holds(() => Array.isArray(args))) {
      throw invalidType('options.args', 'an instance of Array', args);
    }
    // A derived class may have a field for it, which is not there yet: start() looks again.
    if (target !== undefined || args !== undefined || new.target === LooperThread) {
      checkTarget('options.target', target);
    }
    if (this.#runsItself && target instanceof URL) {
      throw invalidType('options.target', 'a function where runLoop is overridden', target);
    }
    this.#target = target;
    this.#args = target instanceof URL ? structuredClone([...(args ?? [])]) : [...(args ?? [])];
    this.#times = { intervalMs: intervalMs ?? 0, missedTicks };
    const ownName = new.target === LooperThread ? undefined : nameOf(new.target);
    this.name =
      name ?? (typeof target === 'function' ? nameOf(target) : undefined) ?? ownName ?? 'looper';
    this.#thread = new OwnThread(attachment, this, 'looper', this.name);
  }

  /** A looper, started. Throws what the constructor throws. */
  static loop(
    coord: Coordinator,
    intervalMs: number | null,
    target: ((...args: any[]) => unknown) | URL,
    options?: Omit<LooperThreadOptions, 'target'>,
  ): LooperThread {
    checkTarget('target', target);
    return new LooperThread(coord, intervalMs, {
      ...checkOptions('options', options),
      target,
    }).start();
  }

  get #runsItself(): boolean {
    return this.runLoop !== LooperThread.prototype.runLoop;
  }

  /** Started and not ended. */
  get alive(): boolean {
    return this.#thread.alive;
  }

  /**
   * Begins. Until it has ended it keeps this thread's event loop alive, and joins of the
   * coordinator wait for it.
   *
   * @throws FailedPreconditionError: it was started before; TypeError: a derived class
   *   without a target has no `runLoop` of its own
   */
  start(): this {
    this.#thread.refuseSecondStart();
    if (!this.#runsItself) checkTarget('options.target', this.#target);
    this.#thread.start(() => this.#run());
    return this;
  }

  /**
   * Resolves when it has ended, however it did: its error goes to the coordinator. At
   * once if it was never started.
   *
   * @throws (rejects) SelfJoinError: it is called from within the looper's own run
   */
  join(): Promise<void> {
    return this.#thread.join();
  }

  /** Called before the first run, on this thread, even if a stop is requested already. */
  protected startLoop(): unknown {
    return undefined;
  }

  /** One run, on this thread. Calls the target; not called if that is a URL. */
  protected runLoop(): unknown {
    return typeof this.#target === 'function' ? this.#target(...this.#args) : undefined;
  }

  /**
   * Called after the last run, on this thread, even if that threw or none took place.
   * Not called if `startLoop` threw.
   */
  protected stopLoop(): unknown {
    return undefined;
  }

  async #run(): Promise<void> {
    await this.startLoop();
    try {
      await (this.#target instanceof URL ? this.#loopInWorker(this.#target) : this.#loopHere());
    } catch (error) {
      this.#thread.watch.fail(error, { via: 'exception' }); // now: the others need not wait for stopLoop
    }
    await this.stopLoop();
  }

  #loopHere(): Promise<void> {
    const { attachment, watch } = this.#thread;
    return loop(attachment, watch.generation, this.#times, () => this.runLoop());
  }

  async #loopInWorker(target: URL): Promise<void> {
    const { attachment, watch } = this.#thread;
    if (watch.stopWasRequested) return;
    const workerData: LooperWork = {
      kind: 'looper',
      module: target.href,
      args: [...this.#args],
      times: this.#times,
      since: watch.generation,
    };
    await runInWorker(attachment, watch, workerEntry(), { name: this.name, workerData });
  }
}
