/** Makes a call of each call: checks it, finds its function's name, and puts it in the queue. */

import { reasonOfAbort, throwIfAborted } from '../../base/abort.ts';
import { invalidType } from '../../base/arguments.ts';
import { rejection } from '../../base/callers-frames.ts';
import { fieldOf, isThenable } from '../../base/thrown-value.ts';
import { EventLoopYield } from '../../base/timer.ts';
import { FailedPreconditionError } from '../../errors/errors.ts';
import { unpackValue } from '../../values/value.ts';
import { Call, type CallOwner, type Work } from '../queue/call.ts';
import type { Placement } from '../queue/call-lines.ts';
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
  limit,
  notCalled,
  overdue,
  UNLIMITED,
  whyWaiting,
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
import { type CheckedOptions, checkPlacement, checkRunOptions } from './call-options.ts';
import type { CallOptions } from './signatures.ts';

// Publishes the life of one call on the tracing channel, in the thread that made it.

class CallTrace {
  readonly #message: TaskMessage;
  #call: Call | undefined;

  constructor(coordinator: object, name: string) {
    this.#message = { ...aboutOf(coordinator), side: 'caller', name, call: 0, attempt: 1 };
  }

  /** Queues the call by `put`, in the contexts that subscribers have bound to the start. */
  start<T>(call: Call, put: () => T): T {
    this.#call = call;
    this.#message.call = call.id;
    return traceStart(this.#message, put);
  }

  /** `settle`, which then also publishes the end of the call. */
  around(settle: Settle): Settle {
    return (state, value) => {
      const isFirst = settle(state, value);
      if (isFirst) {
        const { attempts = 0, isSpent = false } = this.#call ?? {};
        this.#message.attempt = isSpent ? attempts : attempts + 1;
        traceEnd(this.#message, state === 'ready' ? { result: value } : { error: value });
      }
      return isFirst;
    };
  }
}

/** What the calls of one pool share. */
export interface CallsHost {
  readonly rules: CallRules;
  readonly resolver: NameResolver;
  readonly owner: CallOwner;
  /** The `retries` of a call that names none. */
  readonly retries: number;
  /** Where the results of calls with a key are kept, and the fingerprint of the module. */
  readonly results?: { place: Results; definition: string } | undefined;
  sharesMemory(): boolean;
  /** `Engine.whyNowhere` */
  whyNowhere(placement: Placement): string | undefined;
  /** `Engine.assertHeld` */
  assertHeld(): Promise<void>;
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
      hold: (work, options, settle) => this.#put(work, { ...options, isHeld: true }, settle),
      release: (call) => this.release(call),
      decide: (call, outcome) => rules.decide(call, outcome),
      assertHeld: () => host.assertHeld(),
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
        const { room } = this.start(fn, values, checkRunOptions(given, this.host), settle);
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
    if (limits.leftMs <= 0) return this.#refuse(notCalled(shownName(fn), limits));
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
  protected put(
    work: Work,
    options: CheckedOptions,
    settle: Settle,
    report: Report | undefined,
  ): HeldCall {
    return this.#put(work, options, settle, report);
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
      checkPlacement(options.placement, this.host);
      const own = { ...options, limits: { ...limits, leftMs } };
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

  #put(work: Work, options: CheckedOptions, settle: Settle, report?: Report): HeldCall {
    const { rules, owner } = this.host;
    const { limits, onProgress } = options;
    const trace = isTaskTraced() ? new CallTrace(owner.coordinator, work.name) : undefined;
    const told = onProgress === undefined ? report : this.#reporter(onProgress, report);
    const call = new Call(work, trace?.around(settle) ?? settle, owner, options, told);
    if (limits !== UNLIMITED) limit(call, limits, rules, () => this.host.whyNoWorker());
    const { isEarlier } = options;
    const room =
      trace === undefined
        ? this.#enter(call, isEarlier)
        : trace.start(call, () => this.#enter(call, isEarlier));
    this.host.onPut();
    return { call, room };
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
