/**
 * Makes a call of each call: checks it, finds its function's name, and puts it in the queue. The
 * options are checked at the door, so that a refused call changes nothing. What a call is given to call
 * back is called in the async context of the call, whichever worker's message it is that asks for it.
 */

import { AsyncResource } from 'node:async_hooks';
import { reasonOfAbort, throwIfAborted } from '../../base/abort.ts';
import {
  type Checks,
  checkBoolean,
  checkDuration,
  checkFunction,
  checkOptions,
  checkSignal,
  checkString,
  integerFrom,
  invalidType,
  isBag,
  oneOf,
  outOfRange,
  unchecked,
} from '../../base/arguments.ts';
import { rejection } from '../../base/callers-frames.ts';
import { fieldOf, isOfType, isThenable } from '../../base/thrown-value.ts';
import { EventLoopYield } from '../../base/timer.ts';
import { checkErrorTypes, isErrorClass } from '../../coordinator/coordinator-options.ts';
import { FailedPreconditionError, InvalidArgumentError } from '../../errors/errors.ts';
import { activeContext } from '../../telemetry/spans.ts';
import { unpackValue } from '../../values/value.ts';
import { Call, type CallTerms, type RetryRule, type Work } from '../queue/call.ts';
import { Placement, PRIORITIES } from '../queue/call-lines.ts';
import type { Outcome, RoomWaiter, Settle } from '../queue/call-queue.ts';
import type { CallRules } from '../queue/call-rules.ts';
import {
  type AnyFunction,
  checkFunctionOrName,
  type NameResolver,
} from '../queue/module-exports.ts';
import {
  deadlineExceeded,
  inTime,
  type Limits,
  overdue,
  UNLIMITED,
  watch,
} from '../queue/time-limits.ts';
import { giveFailure } from '../queue/unseen-functions.ts';
import { argumentsOf, makeWork } from '../queue/work.ts';
import {
  aboutOf,
  isTaskTraced,
  type TaskMessage,
  traceEnd,
  traceStart,
} from '../worker/task-channel.ts';
import type { CallOptions, ScheduleOptions } from './signatures.ts';

/** Checks an integer from `least` on, or Infinity. */
export const countFrom =
  (least: number) =>
  (name: string, value: unknown): void => {
    if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
    const isCount = Number.isInteger(value) || value === Number.POSITIVE_INFINITY;
    if (!isCount || value < least) {
      throw outOfRange(name, `an integer >= ${least}, or Infinity`, value);
    }
  };

/**
 * `fn`, which is called in the async context that is now. (What `AsyncLocalStorage.bind` returns has
 * properties that are defined for each call.)
 */
export function inThisContext<A extends unknown[], R>(fn: (...args: A) => R): (...args: A) => R {
  const here = new AsyncResource('allstop');
  return (...args) => here.runInAsyncScope(fn, undefined, ...args);
}

function checkFinite(name: string, value: unknown): void {
  checkDuration(name, value);
  if (value === Number.POSITIVE_INFINITY) throw outOfRange(name, 'finite', value);
}

const OF_A_WAIT = { signal: checkSignal, timeoutMs: checkDuration };
export const OF_A_CALL: Checks = {
  ...OF_A_WAIT,
  runTimeoutMs: checkDuration,
  retries: countFrom(0),
  retryOn: unchecked,
  retryDelayMs: (name, value) => {
    if (typeof value !== 'function') checkFinite(name, value);
  },
  priority: oneOf(...PRIORITIES),
  worker: integerFrom(0),
  resources: (name, value) => {
    if (!isBag(value)) throw invalidType(name, 'of type object', value);
    for (const [resource, amount] of Object.entries(value)) {
      checkFinite(`${name}.${resource}`, amount);
    }
  },
  onProgress: checkFunction,
};
const OF_A_RUN: Checks = { ...OF_A_CALL, key: checkString };

/** The options of a call of whichever method, with their defaults. */
export type CheckedOptions = CallTerms & {
  limits: Limits;
  /** Is given each value that the function reports. */
  onProgress?: ((value: unknown, item?: unknown) => unknown) | undefined;
  /** The key under which the result is kept. */
  key?: string | undefined;
  /** The hash of the arguments of a call with a key, as they were when it was made. */
  hash?: string | undefined;
  /** It waited outside the queue, since before `close`. */
  isEarlier?: boolean;
};

/** @throws TypeError, RangeError, InvalidArgumentError */
export const checkCallOptions = (
  options: CallOptions | undefined,
  { rules }: Pick<CallsHost, 'rules'>,
  checks: Checks = OF_A_CALL,
): CheckedOptions =>
  optionsOfCall(options === undefined ? options : checkOptions('options', options, checks), rules);

/**
 * All are made here, with the properties in one order, so that V8 keeps one hidden class.
 *
 * @param given - checked, each by itself. @throws RangeError, InvalidArgumentError
 */
export function optionsOfCall(
  given: Partial<CallOptions> | undefined,
  rules: CallRules,
): CheckedOptions {
  // To read what is not given is slow, once V8 has seen options of many kinds.
  if (given === undefined) {
    return {
      limits: UNLIMITED,
      retries: rules.retries,
      retryRule: undefined,
      runTimeoutMs: undefined,
      priority: 'normal',
      placement: undefined,
      context: activeContext(),
      onProgress: undefined,
      key: undefined,
    };
  }
  const { worker, resources, runTimeoutMs = Infinity, onProgress } = given;
  const placement = Placement.of(worker, resources);
  checkPlacement(placement, rules);
  return {
    limits: limitsOf(given),
    retries: given.retries ?? rules.retries,
    retryRule: retryRuleOf(given),
    runTimeoutMs: runTimeoutMs === Infinity ? undefined : runTimeoutMs,
    priority: given.priority ?? 'normal',
    placement,
    context: activeContext(),
    onProgress: onProgress && inThisContext(onProgress),
    key: given.key,
  };
}

/** @throws RangeError: there will never be a worker for it */
function checkPlacement(placement: Placement | undefined, rules: CallRules): void {
  const error = rules.nowhere(placement);
  if (error !== undefined) throw error;
}

/** @throws TypeError, RangeError, InvalidArgumentError */
function retryRuleOf(given: Partial<ScheduleOptions>): RetryRule | undefined {
  const { retryOn, retryDelayMs = 0 } = given;
  if (retryOn === undefined) {
    if (given.retryDelayMs === undefined) return undefined;
    throw new InvalidArgumentError(
      'options.retryDelayMs is for options.retryOn, which is not given: after a death the function runs again at once',
    );
  }
  const isRule = typeof retryOn === 'function' && !isErrorClass(retryOn);
  const isNamed = isRule ? retryOn : named(retryOn);
  return inThisContext((error, attempt) => {
    const again: unknown = isNamed(error, attempt);
    checkBoolean('options.retryOn(error, attempt)', again);
    if (!again) return undefined;
    const delayMs = typeof retryDelayMs === 'function' ? retryDelayMs(attempt) : retryDelayMs;
    checkFinite('options.retryDelayMs(attempt)', delayMs);
    return delayMs;
  });
}

function named(given: unknown): (error: unknown) => boolean {
  const names = checkErrorTypes('options.retryOn', given);
  return (error) => isOfType(error, names);
}

/** The options of `join` of a cluster. */
export type WaitOptions = {
  /** Milliseconds after which the wait rejects with a DeadlineExceededError. Default: Infinity. */
  timeoutMs?: number | undefined;
  /** When it aborts, the wait rejects with the signal's reason. Default: no signal. */
  signal?: AbortSignal | undefined;
};

/** @throws TypeError, RangeError */
export function checkWaitOptions(options: WaitOptions | undefined): Limits {
  return limitsOf(checkOptions('options', options, OF_A_WAIT));
}

export const limitsOf = ({ signal, timeoutMs = Infinity }: WaitOptions): Limits =>
  signal === undefined && timeoutMs === Infinity
    ? UNLIMITED
    : { signal, timeoutMs, leftMs: timeoutMs };

/** `settle`, which then also publishes the end of the call on the tracing channel. */
const traced =
  (settle: Settle, message: TaskMessage, callOf: () => Call): Settle =>
  (state, value) => {
    if (!settle(state, value)) return false;
    const { attempts, isSpent } = callOf();
    message.attempt = isSpent ? attempts : attempts + 1;
    traceEnd(message, state === 'ready' ? { result: value } : { error: value });
    return true;
  };

/** Of a call that waits for whichever worker: continues the sentence of `deadlineExceeded`. */
const whyWaiting = (whyNoWorker: string): string =>
  whyNoWorker === '' ? '' : `: it has waited for a worker. ${whyNoWorker}`;

/** What the calls of one pool share. */
export interface CallsHost {
  readonly rules: CallRules;
  readonly resolver: NameResolver;
  /** Where the results of calls with a key are kept, and the fingerprint of the module. */
  readonly results?: { place: Results; definition: string } | undefined;
  sharesMemory(): boolean;
  /** A call was put in the queue, or waits for room there. */
  onPut(): void;
  /** Why no worker is ready, as a sentence; '' while one is. */
  whyNoWorker(): string;
  /** Keeps the program alive until the promise has settled. */
  keepAlive<T>(promise: Promise<T>): Promise<T>;
}

/** Is given what a function reports, each value packed. */
export type Report = (values: readonly Uint8Array[]) => void;

/** A name of the function for messages, while the name of its export may be unknown. */
export const shownName = (fn: AnyFunction | string): string =>
  typeof fn === 'string' ? fn : fn.name || '(anonymous)';

export class Calls {
  readonly host: CallsHost;
  /** Undefined if no results are kept. */
  readonly kept: KeptResults | undefined;
  readonly #yielding = new EventLoopYield();

  constructor(host: CallsHost) {
    this.host = host;
    const { results, rules } = host;
    this.kept = results?.place.open(results.definition, {
      hold: (work, options, settle) => this.put(work, { ...options, isHeld: true }, settle),
      release: (call) => this.release(call),
      decide: (call, outcome) => rules.decide(call, outcome),
      assertHeld: async () => await rules.engine.assertHeld?.(),
    });
  }

  /** @throws FailedPreconditionError: the pool keeps no results, for which a key is given */
  checkKeeps(): KeptResults {
    if (this.kept !== undefined) return this.kept;
    throw new FailedPreconditionError(
      'A key needs a place where results are kept: the option results, with new FileResults(directory) of allstop/cluster',
    );
  }

  /** The errors are those of `ClusterCoordinator.run`. */
  run(fn: AnyFunction | string, args: unknown, given: CallOptions | undefined): Promise<unknown> {
    return new Promise((resolve) => {
      let isRefused = false; // a second rejection would be one that nobody handles
      const refuse = (error: unknown): void => {
        if (!isRefused) resolve(rejection(error));
        isRefused = true;
      };
      const settle: Settle = (state, value) => {
        if (state === 'ready') resolve(value);
        else {
          giveFailure(value);
          refuse(value);
        }
        return true;
      };
      try {
        checkFunctionOrName(fn);
        const values = argumentsOf(args); // before the options: run('add', 1, 2)
        const { room } = this.start(
          fn,
          values,
          checkCallOptions(given, this.host, OF_A_RUN),
          settle,
        );
        if (room !== undefined) this.host.keepAlive(room).catch(refuse);
      } catch (error) {
        refuse(error);
      }
    });
  }

  /** Begins a call, whose options were checked. @throws the errors of wrong arguments */
  start(
    fn: AnyFunction | string,
    args: readonly unknown[],
    options: CheckedOptions,
    settle: Settle,
    report?: Report,
  ): Started {
    const { limits, runTimeoutMs, key } = options;
    throwIfAborted(limits.signal);
    // A timer would decide after a turn of the event loop, in which a worker may run the function.
    if (limits.leftMs <= 0) {
      const late = deadlineExceeded(shownName(fn), limits.timeoutMs, ': it was not called');
      return this.#refuse(late);
    }
    if (runTimeoutMs === 0) return this.#refuse(overdue(shownName(fn), 0));
    const { resolver } = this.host;
    const name = resolver.known(fn);
    const work = this.make(name ?? shownName(fn), args);
    const own =
      key === undefined ? options : { ...options, hash: this.checkKeeps().hashOf(work, args) };
    if (name === undefined || this.hasToWait(work) || resolver.isBusy) {
      return this.#startLater(fn, work, own, settle, report);
    }
    return this.#startNow(work, own, settle, report);
  }

  /** Queues a call that was held. */
  release(call: Call): void {
    this.host.rules.queue.release(call);
    this.host.onPut(); // while it was held, nothing may have kept the program alive
  }

  /** @throws the errors of wrong arguments */
  protected make(name: string, args: readonly unknown[]): Work {
    return makeWork(name, args, this.host.sharesMemory());
  }

  /** Whether the call uses what the workers may not have been sent yet: `defined` is awaited. */
  protected hasToWait(_call: Work): boolean {
    return false;
  }

  /** Resolves when the workers were sent what the program has made for them. */
  protected get defined(): Promise<void> | undefined {
    return undefined;
  }

  /** Puts a call in the queue, or has it wait for room. */
  protected put(work: Work, options: CheckedOptions, settle: Settle, report?: Report): HeldCall {
    const { rules } = this.host;
    const { limits, onProgress, isEarlier } = options;
    const about = isTaskTraced() ? aboutOf(rules.coordinator) : undefined;
    const message: TaskMessage | undefined = about && {
      ...about,
      side: 'caller',
      name: work.name,
      call: 0,
      attempt: 1,
    };
    const told = onProgress === undefined ? report : this.#reporter(onProgress, report);
    const settles = message === undefined ? settle : traced(settle, message, () => call);
    const call: Call = new Call(work, settles, rules, options, told);
    if (limits !== UNLIMITED) this.#limit(call, limits);
    let room: Promise<void> | undefined;
    if (message === undefined) room = this.#enter(call, isEarlier);
    else {
      message.call = call.id;
      room = traceStart(message, () => this.#enter(call, isEarlier));
    }
    this.host.onPut();
    return { call, room };
  }

  /** Lets the event loop turn if it is time for that. */
  give<T>(value: T): Promise<T> {
    return this.#yielding.give(value);
  }

  #refuse(error: Error): Started {
    const refused = async (): Promise<never> => {
      throw await this.give(error);
    };
    return { cancel: () => {}, room: refused() };
  }

  #startNow(
    work: Work,
    options: CheckedOptions,
    settle: Settle,
    report: Report | undefined,
  ): Started {
    if (options.key !== undefined) return this.checkKeeps().start(work, options, settle);
    const { call, room } = this.put(work, options, settle, report);
    return { cancel: (reason) => this.#cancel(call, reason), room };
  }

  /**
   * Begins a call when its name is known, its data sets are defined and earlier calls have begun.
   */
  #startLater(
    fn: AnyFunction | string,
    work: Work,
    options: CheckedOptions,
    settle: Settle,
    report: Report | undefined,
  ): Started {
    const { resolver, rules } = this.host;
    const { limits } = options;
    const { signal, timeoutMs } = limits;
    const began = performance.now();
    const wasOver = rules.isOver;
    const tooLate = (): Error =>
      deadlineExceeded(shownName(fn), timeoutMs, whyWaiting(this.host.whyNoWorker()));
    const inOwnTime = <T>(promise: Promise<T>): Promise<T> =>
      inTime(promise, limits, () => {
        throw tooLate(); // who rejects the user's promise gives it the caller's frames
      });
    let started: Started | undefined;
    let cancelled: { reason: unknown } | undefined;
    const defined = this.hasToWait(work) ? this.defined : undefined;
    const entered = resolver.inOrder(fn, defined, inOwnTime, (name) => {
      if (signal?.aborted) throw reasonOfAbort(signal);
      if (cancelled !== undefined) throw cancelled.reason;
      // To the queue, a call of `run` that comes now is one after the end of the cluster.
      const dropped = rules.queue.end?.dropped;
      if (options.group === undefined && !wasOver && dropped !== undefined) throw dropped.value;
      const leftMs = timeoutMs - (performance.now() - began);
      if (leftMs <= 0) throw tooLate();
      checkPlacement(options.placement, rules);
      const own = limits === UNLIMITED ? options : { ...options, limits: { ...limits, leftMs } };
      started = this.#startNow({ ...work, name }, own, settle, report);
      return started; // later calls do not wait for its room
    });
    const later = async (): Promise<void> => {
      const { room } = await inOwnTime(entered);
      await room;
    };
    return {
      room: later(),
      cancel(reason) {
        if (started === undefined) cancelled = { reason };
        else started.cancel(reason);
      },
    };
  }

  /** Decides when a limit of the call is reached before it has settled. */
  #limit(call: Call, limits: Limits): void {
    const { name } = call.work;
    const { placement } = call;
    const whyQueued = (): string =>
      placement === undefined
        ? whyWaiting(this.host.whyNoWorker())
        : `: it has waited for ${placement.text}`;
    const late = (): void => {
      const why = call.life.at === 'queued' ? whyQueued() : '';
      const value = deadlineExceeded(name, limits.timeoutMs, why);
      this.host.rules.decide(call, { state: 'failed', value });
    };
    call.atEnd(watch(limits, late, (reason) => this.#cancel(call, reason)));
  }

  /** @returns undefined if the call is queued; else a promise that resolves when it is */
  #enter(call: Call, isEarlier: boolean | undefined): Promise<void> | undefined {
    if (call.group !== undefined) return call.group.put(call);
    let room: Promise<void> | undefined;
    const makeWaiter = (): RoomWaiter => {
      let entered = (): void => {};
      let refused: (error: unknown) => void = entered;
      room = new Promise((resolve, reject) => {
        entered = resolve;
        refused = reject;
      });
      return { entered, refused };
    };
    try {
      this.host.rules.queue.put(call, makeWaiter, isEarlier);
    } catch (error) {
      return Promise.reject(error);
    }
    return room;
  }

  /**
   * Calls `report`, and `onProgress` with each value until the call has settled. If `onProgress` throws,
   * or the promise that it returns rejects, the call is cancelled.
   */
  #reporter(
    onProgress: (value: unknown) => unknown,
    report: Report | undefined,
  ): (values: readonly Uint8Array[], call: Call) => void {
    return (values, call) => {
      report?.(values);
      const isOver = (): boolean => call.life.at !== 'in-flight' || call.decided !== undefined;
      const refuse = (error: unknown): void => {
        if (isOver()) throw error; // nobody else would hear of it
        this.#cancel(call, error);
      };
      try {
        for (const value of values) {
          if (isOver()) return;
          const told = onProgress(unpackValue(value));
          if (isThenable(told)) void Promise.resolve(told).catch(refuse);
        }
      } catch (error) {
        this.#cancel(call, error);
      }
    };
  }

  #cancel(call: Call, value: unknown): void {
    this.host.rules.decide(call, { state: 'cancelled', value });
  }
}

// The seam between calls with a key and what keeps their results, which stands above the pool.

/** Says where results are kept: a FileResults or a NatsResults. Made by the user. */
export interface Results {
  /**
   * Opens the place for one pool. Waits for nothing: what cannot be reached is told by a call.
   *
   * @internal
   * @param definition - the fingerprint of the module
   */
  open(definition: string, host: KeptResultsHost): KeptResults;
}

/** A call that has begun, for the one who made it. */
export type Started = {
  cancel(reason: unknown): void;
  /** Resolves when it is in the queue, or rejects; undefined if it is. */
  room: Promise<void> | undefined;
};

/** A call in the queue that is held there. */
export type HeldCall = { call: Call; room: Promise<void> | undefined };

export interface KeptResultsHost {
  /** Puts a call in the queue that is held there. */
  hold(work: Work, options: CheckedOptions, settle: Settle): HeldCall;
  /** Queues a call that was held. */
  release(call: Call): void;
  /** `Engine.assertHeld` */
  assertHeld(): Promise<void>;
  /** `CallRules.decide` */
  decide(call: Call, outcome: Outcome): void;
}

export interface KeptResults {
  /** Whether a call with a key has not settled. */
  readonly isBusy: boolean;
  /** Resolves when all calls that have begun have settled. */
  settled(): Promise<void>;
  /** Called when the pool is over. Resolves when what is being stored is stored. */
  close(): Promise<void>;
  /** A call waits for its arguments: `promise` resolves when it has begun. */
  waits<T>(promise: Promise<T>): Promise<T>;
  /** @throws InvalidArgumentError: the arguments cannot be compared with stored ones */
  hashOf(work: Work, args: readonly unknown[]): string;
  /**
   * Begins a call, with its key and the hash of its arguments in `options`.
   *
   * @throws InvalidArgumentError: a call with the same key and other arguments has not ended
   */
  start(work: Work, options: CheckedOptions, settle: Settle): Started;
}

/** @throws TypeError */
export function checkResults(name: string, results: unknown): void {
  if (typeof fieldOf(results, 'open') === 'function') return;
  throw invalidType(name, 'a FileResults or a NatsResults', results);
}
