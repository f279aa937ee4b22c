/** TensorFlow's LooperThread: calls a function at fixed intervals until a stop. */

import {
  type Checks,
  checkBoolean,
  checkDuration,
  checkFunctionOrUrl,
  checkOptions,
  checkString,
  invalidType,
  isList,
  nameOf,
  oneOf,
  unchecked,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import { checkCoordinator } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { OwnThread } from '../coordinator/threads/tasks.ts';
import { runInWorker } from '../coordinator/threads/workers.ts';
import { duration } from '../coordinator/words.ts';
import { cloneChecked, refusedValue } from '../values/lost-values.ts';
import {
  type LooperTimes,
  type LooperWork,
  loop,
  MISSED_TICKS,
  type MissedTicks,
} from './looper-loop.ts';

/** The options of a LooperThread. */
export type LooperThreadOptions = {
  /**
   * What each run calls: a function, called on the event loop of this JavaScript thread, or the
   * URL of a module whose default export is called in a Worker. Left out only by a derived class
   * that overrides `runLoop`.
   */
  target?: ((...args: any[]) => unknown) | URL | undefined;
  /**
   * The arguments of `target`; by default none. If `target` is a URL, the constructor clones them.
   */
  args?: readonly unknown[] | undefined;
  /** The name of the thread. Default: that of the function or derived class, else 'looper'. */
  name?: string | undefined;
  /** What the looper does about runs that are due while a run takes too long. Default: 'burst'. */
  missedTicks?: MissedTicks | undefined;
  /**
   * Whether the looper serves other threads, so that `Coordinator.run` ends without it, as the
   * option `daemon` of `start`. Default: false; to say so silences `ALLSTOP_ONLY_LOOPERS`.
   */
  daemon?: boolean | undefined;
};

const LOOP_OPTIONS: Checks = {
  args: unchecked,
  name: checkString,
  missedTicks: oneOf(...MISSED_TICKS),
  daemon: checkBoolean,
};
const OPTIONS: Checks = { target: unchecked, ...LOOP_OPTIONS };

const TARGET_OR_OVERRIDE =
  'a function or an instance of URL, unless a derived class overrides runLoop()';

function copyOf(args: readonly unknown[]): unknown[] {
  try {
    return cloneChecked([...args]);
  } catch (error) {
    const whole = { path: 'options.args', value: args };
    throw refusedValue(error, 'The arguments of the module', whole, cloneChecked);
  }
}

function rhythm(intervalMs: number): string {
  if (intervalMs === 0) return 'back to back';
  return intervalMs === Number.POSITIVE_INFINITY ? 'once' : `every ${duration(intervalMs)}`;
}

/**
 * A thread of a coordinator that calls its target at once and then every `intervalMs`
 * milliseconds, until a stop. Due times count from the first run, by a monotonic clock, and do not
 * drift (with `missedTicks: 'delay'` they count from the end of the last run). A stop ends the wait
 * for the next run at once, even a stop that is cleared immediately.
 *
 * A target function runs on the event loop of this JavaScript thread: it is awaited, and the loop
 * turns between two runs. A target module runs in a Worker, where `Coordinator.current()` is this
 * coordinator; the Worker's `workerData` belongs to the looper, not to the module. It ends with the
 * looper, whatever the module has left open.
 *
 * An error that a run throws or rejects with stops the coordinator and ends the looper. So does
 * an error of `startLoop` or `stopLoop`.
 *
 * A derived class may override `runLoop` instead of giving a target.
 *
 * @example
 * ```js
 * import { Coordinator, LooperThread } from 'allstop';
 *
 * class Countdown extends LooperThread {
 *   left = 3;
 *   runLoop() {
 *     this.left -= 1;
 *     if (this.left === 0) coord.requestStop();
 *   }
 * }
 * const coord = new Coordinator();
 * const countdown = new Countdown(coord, 10).start(); // now, and every 10 ms until the stop
 * await coord.join();
 * console.log(countdown.left); // 0
 * ```
 */
export class LooperThread {
  /** The name of the thread, as the coordinator lists it. */
  readonly name: string;
  readonly #times: LooperTimes;
  readonly #target: ((...args: any[]) => unknown) | URL | undefined;
  readonly #args: readonly unknown[];
  readonly #thread: OwnThread;

  static {
    showAs(LooperThread.prototype, (looper) => {
      const { intervalMs } = looper.#times;
      const { name, state } = looper.#thread;
      return { name, facts: [rhythm(intervalMs), state] };
    });
  }

  /**
   * Registers the looper with `coord`: `coord.threads` lists it, and joins do not wait for it until
   * it is started. A call that throws registers nothing.
   *
   * @param intervalMs null or 0: back to back; Infinity: one run
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`): also if `args` are given without a target, if a
   *   LooperThread itself (no derived class) is given no target, and if a class that overrides
   *   `runLoop` is given a URL; RangeError (`ERR_OUT_OF_RANGE`); DataCloneError: args for a module
   *   that cannot be cloned
   */
  constructor(coord: Coordinator, intervalMs: number | null, options?: LooperThreadOptions) {
    const attachment = checkCoordinator('coord', coord);
    if (intervalMs !== null) checkDuration('intervalMs', intervalMs);
    const given = checkOptions('options', options, OPTIONS);
    const { target, args, name, missedTicks = 'burst', daemon } = given;
    if (args !== undefined && !isList(args)) {
      throw invalidType('options.args', 'an instance of Array', args);
    }
    // A derived class may define runLoop as a field, which is set after this constructor: start()
    // checks that there is a target or a runLoop.
    if (target !== undefined || args !== undefined || new.target === LooperThread) {
      checkFunctionOrUrl('options.target', target, TARGET_OR_OVERRIDE);
    }
    this.#refuseUrl(target);
    this.#target = target;
    this.#args = target instanceof URL ? copyOf(args ?? []) : [...(args ?? [])];
    this.#times = { intervalMs: intervalMs ?? 0, missedTicks };
    const ownName = new.target === LooperThread ? undefined : nameOf(new.target);
    this.name =
      name ?? (typeof target === 'function' ? nameOf(target) : undefined) ?? ownName ?? 'looper';
    this.#thread = new OwnThread(attachment, this, 'looper', this.name, daemon);
  }

  /**
   * Makes a LooperThread and starts it.
   *
   * @example
   * ```js
   * import { Coordinator, LooperThread } from 'allstop';
   *
   * const coord = new Coordinator();
   * let runs = 0;
   * const count = () => ++runs === 3 && coord.requestStop();
   * LooperThread.loop(coord, 100, count); // now, and every 100 ms until the stop
   * await coord.join();
   * console.log(runs); // 3
   * ```
   * @param intervalMs - milliseconds; null or 0: back to back; Infinity: one run
   * @throws the errors of the constructor
   */
  static loop(
    coord: Coordinator,
    intervalMs: number | null,
    target: ((...args: any[]) => unknown) | URL,
    options?: Omit<LooperThreadOptions, 'target'>,
  ): LooperThread {
    checkCoordinator('coord', coord);
    checkFunctionOrUrl('target', target);
    return new LooperThread(coord, intervalMs, {
      ...checkOptions('options', options, LOOP_OPTIONS),
      target,
    }).start();
  }

  get #runsItself(): boolean {
    return this.runLoop !== LooperThread.prototype.runLoop;
  }

  /** A URL as the target of a looper that runs itself. */
  #refuseUrl(target: unknown): void {
    if (!this.#runsItself || !(target instanceof URL)) return;
    throw invalidType('options.target', 'a function where runLoop is overridden', target);
  }

  /** Whether the looper has been started and has not ended. */
  get alive(): boolean {
    return this.#thread.alive;
  }

  /**
   * Starts the looper. Until it has ended it keeps the event loop of this thread alive, and joins
   * of the coordinator wait for it.
   *
   * @throws FailedPreconditionError: the looper was started before; TypeError
   *   (`ERR_INVALID_ARG_TYPE`): there is neither a target nor an overridden `runLoop`, or there are
   *   both and the target is a URL
   */
  start(): this {
    this.#thread.refuseSecondStart();
    if (!this.#runsItself) checkFunctionOrUrl('options.target', this.#target, TARGET_OR_OVERRIDE);
    this.#refuseUrl(this.#target);
    const written = this.#runsItself ? this.runLoop : this.#target;
    // Not one task from the first run to the stop: on Node 20 a task makes each `await` slower.
    this.#thread.run(() => this.#run(), written instanceof URL ? undefined : written, false);
    return this;
  }

  /**
   * Resolves when the looper has ended, with or without an error: errors go to the coordinator.
   * Resolves at once if the looper was never started.
   *
   * @throws (rejects) SelfJoinError: called from within a run of this looper
   */
  join(): Promise<void> {
    return this.#thread.join();
  }

  /** Called on this thread before the first run, even if a stop has already been requested. */
  protected startLoop(): unknown {
    return undefined;
  }

  /** One run, on this thread: calls the target. Not called if the target is a URL. */
  protected runLoop(): unknown {
    return typeof this.#target === 'function' ? this.#target(...this.#args) : undefined;
  }

  /**
   * Called on this thread after the last run, even if that run threw or there was no run. Not
   * called if `startLoop` threw.
   */
  protected stopLoop(): unknown {
    return undefined;
  }

  async #run(): Promise<void> {
    await this.#thread.within(() => this.startLoop());
    try {
      await (this.#target instanceof URL ? this.#loopInWorker(this.#target) : this.#loopHere());
    } catch (error) {
      // Before stopLoop, so that the other threads stop without waiting for stopLoop.
      this.#thread.fail(error, { via: 'exception' });
    }
    await this.#thread.within(() => this.stopLoop());
  }

  #loopHere(): Promise<void> {
    const { attachment, generation } = this.#thread;
    const run = (): Promise<void> => this.#thread.within(() => this.runLoop());
    return loop(attachment, generation, this.#times, run);
  }

  #loopInWorker(target: URL): Promise<void> {
    const work = { kind: 'looper', name: this.name, args: this.#args, times: this.#times } as const;
    return runInWorker<LooperWork>(this.#thread, target, work);
  }
}
