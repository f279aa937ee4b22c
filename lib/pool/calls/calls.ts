/** Makes a closure of each call: checks it, finds its function's name, and puts it in the queue. */

import { reasonOfAbort, throwIfAborted } from '../../base/abort-reason.ts';
import { EventLoopYield } from '../../base/turn.ts';
import type { ResultStore } from '../../cluster/results/result-store.ts';
import { FailedPreconditionError } from '../../errors/errors.ts';
import { unpackValue } from '../../values/value.ts';
import { argumentsOf, makeCall, makeHeldCall } from '../queue/call.ts';
import { type Call, Closure, type ClosureGroup, type ClosureOwner } from '../queue/closure.ts';
import type { ClosureQueue } from '../queue/closure-queue.ts';
import type { ClosureRules } from '../queue/closure-rules.ts';
import type { Datasets } from '../queue/datasets.ts';
import type { Placement } from '../queue/lines/placement.ts';
import { type AnyFunction, checkFunctionOrName } from '../queue/module-exports.ts';
import type { NameResolver } from '../queue/name-resolver.ts';
import { makeRemoteValue, RemoteValue, type Settle } from '../queue/remote-value.ts';
import {
  deadlineExceeded,
  inTime,
  limit,
  notCalled,
  overdue,
  whyWaiting,
} from '../queue/time-limits.ts';
import { isTaskTraced } from '../worker/task-channel.ts';
import {
  type CheckedOptions,
  checkCallOptions,
  checkPlacement,
  checkRunOptions,
} from './call-options.ts';
import { CallTrace } from './call-trace.ts';
import { KeyedCalls, type Started } from './keyed-calls.ts';
import { isHeldBy, whenThere } from './remote-arguments.ts';
import type { CallOptions, ScheduleOptions } from './signatures.ts';

/** What the calls of one cluster share. */
export interface CallsHost {
  /** The cluster, which alone can use its PerWorkerValues. */
  readonly cluster: object;
  /** The calls of `schedule`. */
  readonly group: ClosureGroup;
  readonly rules: ClosureRules;
  readonly resolver: NameResolver;
  readonly datasets: Datasets;
  readonly owner: ClosureOwner;
  /** The `retries` of a call that names none. */
  readonly retries: number;
  /** Where the results of calls with a key are kept, and the fingerprint of the module. */
  readonly results?: { store: ResultStore; definition: string } | undefined;
  sharesMemory(): boolean;
  /** `Engine.whyNowhere` */
  whyNowhere(placement: Placement): string | undefined;
  /** `Engine.assertHeld` */
  assertHeld(): Promise<void>;
  /** A closure was put in the queue, or waits for room there. */
  onPut(): void;
  /** Why no worker is ready, as a sentence; '' while one is. */
  whyNoWorker(): string;
  /** Keeps the program alive until the promise has settled. */
  keepAlive<T>(promise: Promise<T>): Promise<T>;
}

/** A name of the function for messages, while the name of its export may be unknown. */
export const shownName = (fn: AnyFunction | string): string =>
  typeof fn === 'string' ? fn : fn.name || '(anonymous)';

/** @returns undefined if the closure is queued; else a promise that resolves when it is */
function putOwn(queue: ClosureQueue<Closure>, closure: Closure): Promise<void> | undefined {
  let enter = (): void => {};
  let refuse: (error: unknown) => void = enter;
  try {
    const waiter = { entered: () => enter(), refused: (error: unknown) => refuse(error) };
    if (queue.put(closure, waiter)) return undefined;
  } catch (error) {
    return Promise.reject(error);
  }
  return new Promise((resolve, reject) => {
    enter = resolve;
    refuse = reject;
  });
}

export class Calls {
  readonly host: CallsHost;
  /** Undefined if no results are kept. */
  readonly keyed: KeyedCalls | undefined;
  readonly #yielding = new EventLoopYield();

  constructor(host: CallsHost) {
    this.host = host;
    const { results, rules } = host;
    if (results === undefined) return;
    this.keyed = new KeyedCalls(results.store, results.definition, {
      hold: (call, options, settle) => this.put(call, options, settle, true),
      release: (closure) => {
        rules.queue.release(closure);
        host.onPut(); // while it was held, nothing may have kept the program alive
      },
      decide: (closure, outcome) => rules.decide(closure, outcome),
      assertHeld: () => host.assertHeld(),
    });
  }

  /** @throws FailedPreconditionError: the cluster keeps no results, for which a key is given */
  checkKeeps(): KeyedCalls {
    if (this.keyed !== undefined) return this.keyed;
    throw new FailedPreconditionError(
      'A key needs a place where results are kept: new ClusterCoordinator(strategy, { results: new FileResults(directory) })',
    );
  }

  /** A call of `run` (`isOwn`) or `schedule`. Resolves when it is queued. */
  call(
    fn: AnyFunction | string,
    args: unknown,
    given: ScheduleOptions | CallOptions | undefined,
    isOwn: boolean,
  ): Promise<RemoteValue<unknown>> {
    try {
      checkFunctionOrName(fn);
      const values = argumentsOf(args); // before the options: run('add', 1, 2)
      const check = isOwn ? checkRunOptions : checkCallOptions;
      const options = { ...check(given, this.host), group: isOwn ? undefined : this.host.group };
      return this.enter(fn, values, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @throws the errors of wrong arguments */
  enter(
    fn: AnyFunction | string,
    args: readonly unknown[],
    options: CheckedOptions,
  ): Promise<RemoteValue<unknown>> {
    const { resolver } = this.host;
    const { limits } = options;
    if (limits.signal?.aborted) return Promise.reject(reasonOfAbort(limits.signal));
    if (limits.leftMs <= 0) return this.#refuse(notCalled(shownName(fn), limits));
    if (options.runTimeoutMs === 0) return this.#refuse(overdue(shownName(fn), 0));
    const name = resolver.known(fn);
    const call = this.make(name ?? shownName(fn), args);
    if (options.key !== undefined) {
      if (isHeldBy(call.args)) return this.#enterWhenThere(fn, call, options);
      return this.#enterCall(fn, name, call, { ...options, hash: this.#hashOf(call, args) });
    }
    return this.#enterCall(fn, name, call, options);
  }

  /** Rejects, and lets the event loop turn if it is time for that. */
  async #refuse(error: Error): Promise<never> {
    throw await this.#yielding.give(error);
  }

  #enterCall(
    fn: AnyFunction | string,
    name: string | undefined,
    call: Call,
    options: CheckedOptions,
  ): Promise<RemoteValue<unknown>> {
    if (name === undefined || this.hasToWait(call) || this.host.resolver.isBusy) {
      return this.#enterLater(fn, call, options);
    }
    return this.#put(call, options);
  }

  /** A call with a key: what its arguments are is known when its RemoteValues are there. */
  #enterWhenThere(
    fn: AnyFunction | string,
    call: Call,
    options: CheckedOptions,
  ): Promise<RemoteValue<unknown>> {
    const { limits } = options;
    const args = call.args as readonly unknown[];
    this.#hashOf(
      call,
      args.map((value) => (value instanceof RemoteValue ? undefined : value)),
    );
    const began = performance.now();
    const tooLate = (): Error => deadlineExceeded(shownName(fn), limits.timeoutMs);
    const there = Promise.all(
      args.map((value) => (value instanceof RemoteValue ? value.fetch() : value)),
    );
    const enter = async (): Promise<RemoteValue<unknown>> => {
      const values = await inTime(there, limits, tooLate);
      const leftMs = Math.max(0, limits.leftMs - (performance.now() - began));
      return await this.enter(fn, values, { ...options, limits: { ...limits, leftMs } });
    };
    return this.checkKeeps().waits(enter());
  }

  /** @throws FailedPreconditionError, InvalidArgumentError: the call can have no key */
  #hashOf(call: Call, args: readonly unknown[]): string {
    return this.checkKeeps().hashOf(call, args);
  }

  /**
   * Begins a call for which `hasToWait` is false.
   *
   * @throws the errors of wrong arguments; DeadlineExceededError: the call has no time
   */
  start(call: Call, args: readonly unknown[], options: CheckedOptions, settle: Settle): Started {
    if (options.limits.leftMs <= 0) throw notCalled(call.name, options.limits);
    if (options.runTimeoutMs === 0) throw overdue(call.name, 0);
    if (options.key !== undefined) {
      const hash = this.#hashOf(call, args);
      return this.checkKeeps().start(call, { ...options, hash }, settle);
    }
    const { closure, room } = this.put(call, options, settle);
    return { cancel: (reason) => this.#cancel(closure, reason), room };
  }

  /** @throws the errors of wrong arguments */
  make(name: string, args: readonly unknown[]): Call {
    const { cluster } = this.host;
    const make = isHeldBy(args) ? makeHeldCall : makeCall;
    return make(name, args, cluster, this.host.sharesMemory());
  }

  /** Whether the call uses what the workers may not have been sent yet, or waits for values. */
  hasToWait({ perWorker, args }: Call): boolean {
    return perWorker !== undefined || isHeldBy(args);
  }

  /** @returns the closure, and a promise that resolves when it is queued if there is no room yet */
  put(
    call: Call,
    { limits, onProgress, ...options }: CheckedOptions,
    settle: Settle,
    isHeld: boolean = isHeldBy(call.args),
    report?: (values: readonly Uint8Array[]) => void,
  ): { closure: Closure; room: Promise<void> | undefined } {
    const { rules, owner } = this.host;
    const { group } = options;
    const trace = isTaskTraced() ? new CallTrace(owner.coordinator, call.name) : undefined;
    const around = trace?.around(settle) ?? settle;
    const closure = new Closure(call, around, owner, {
      ...options,
      isHeld,
      onProgress: onProgress === undefined ? report : this.#reporter(onProgress, report),
    });
    limit(closure, limits, rules, () => this.host.whyNoWorker());
    const put = (): Promise<void> | undefined =>
      group === undefined ? putOwn(rules.queue, closure) : group.put(closure);
    const room = trace === undefined ? put() : trace.start(closure, put);
    this.host.onPut();
    return { closure, room };
  }

  /** Calls `report`, and `onProgress` with each value until the closure has settled. */
  #reporter(
    onProgress: (value: unknown) => void,
    report?: (values: readonly Uint8Array[]) => void,
  ): (values: readonly Uint8Array[], closure: Closure) => void {
    return (values, closure) => {
      report?.(values);
      try {
        for (const value of values) {
          if (closure.life.at !== 'in-flight' || closure.decided !== undefined) return;
          onProgress(unpackValue(value));
        }
      } catch (error) {
        this.#cancel(closure, error);
      }
    };
  }

  #cancel(closure: Closure, value: unknown): void {
    this.host.rules.decide(closure, { state: 'cancelled', value });
  }

  /**
   * Queues a call when its name is known, its data sets are defined and earlier calls are queued.
   */
  async #enterLater(
    fn: AnyFunction | string,
    call: Call,
    options: CheckedOptions,
  ): Promise<RemoteValue<unknown>> {
    const { resolver, datasets, rules } = this.host;
    const { limits } = options;
    const { signal, timeoutMs } = limits;
    const began = performance.now();
    const wasOver = rules.isOver;
    const tooLate = (): Error =>
      deadlineExceeded(shownName(fn), timeoutMs, whyWaiting(this.host.whyNoWorker()));
    const defined = this.hasToWait(call) ? datasets.defined : undefined;
    const inOwnTime = <T>(promise: Promise<T>): Promise<T> => inTime(promise, limits, tooLate);
    const entered = resolver.inOrder(fn, defined, inOwnTime, (name) => {
      throwIfAborted(signal);
      // To the queue, a call of `run` that comes now is one after the end of the cluster.
      const dropped = rules.queue.end?.dropped;
      if (options.group === undefined && !wasOver && dropped !== undefined) throw dropped.value;
      const leftMs = timeoutMs - (performance.now() - began);
      if (leftMs <= 0) throw tooLate();
      checkPlacement(options.placement, this.host);
      // `remote` is a promise that resolves when there is room. It is put in an object, so that
      // `entered`, for which later calls wait, does not wait for it.
      return {
        remote: this.#put({ ...call, name }, { ...options, limits: { ...limits, leftMs } }),
      };
    });
    const { remote } = await inOwnTime(entered);
    return remote;
  }

  #put(call: Call, options: CheckedOptions): Promise<RemoteValue<unknown>> {
    if (options.key !== undefined) return this.#putKeyed(call, options);
    const isOwn = options.group === undefined;
    let made: ReturnType<Calls['put']> | undefined;
    const report = isOwn
      ? undefined
      : (values: readonly Uint8Array[]): void => RemoteValue.report(remote, values);
    const remote = makeRemoteValue<unknown>((settle) => {
      const put = this.put(call, options, settle, undefined, report);
      made = put;
      return { cancel: (reason) => this.#cancel(put.closure, reason) };
    });
    const { closure, room } = made as unknown as ReturnType<Calls['put']>;
    const release = (): void => {
      if (closure.isHeld) this.#releaseWhenThere(closure);
    };
    if (room === undefined) {
      release();
      return isOwn ? Promise.resolve(remote) : this.#yielding.give(remote);
    }
    return this.host.keepAlive(
      room.then(() => {
        release();
        return remote;
      }),
    );
  }

  #putKeyed(call: Call, options: CheckedOptions): Promise<RemoteValue<unknown>> {
    let room: Promise<void> | undefined;
    const remote = makeRemoteValue<unknown>((settle) => {
      const started = this.checkKeeps().start(call, options, settle);
      room = started.room;
      return started;
    });
    // Without room the RemoteValue fails, too.
    return room === undefined
      ? Promise.resolve(remote)
      : this.host.keepAlive(
          (room as Promise<void>).then(
            () => remote,
            () => remote,
          ),
        );
  }

  /** Queues a closure that is held when its values are there. */
  #releaseWhenThere(closure: Closure): void {
    const { rules } = this.host;
    const { name, args } = closure.work;
    whenThere(args as unknown[], closure, {
      onThere: (values) => {
        try {
          // Copies of Variables were made when the call was held: `make` takes them for plain objects.
          const { hasVariables } = closure.work;
          const made = this.make(name, values);
          closure.arrive({ ...made, hasVariables: hasVariables || made.hasVariables });
          rules.queue.release(closure);
          this.host.onPut(); // while it was held, nothing may have kept the program alive
        } catch (error) {
          rules.decide(closure, { state: 'failed', value: error });
        }
      },
      onFailed: (outcome) => rules.decide(closure, outcome),
    });
  }
}
