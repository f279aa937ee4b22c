/**
 * The public class behind `createPool`, which is the base of ClusterCoordinator; and what is behind it:
 * connects the queue, the rules, the engine and the calls, and says when the pool begins and ends. A
 * cluster is a pool with an extension.
 */

import { EventEmitter } from 'node:events';
import { throwIfAborted } from '../base/abort.ts';
import {
  checkDuration,
  checkFunction,
  checkInteger,
  checkOptions,
  checkSignal,
  invalidType,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import { fieldOf } from '../base/thrown-value.ts';
import { within } from '../base/timer.ts';
import { attachmentOf } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { showWorkersOf, tellBusyWorkers } from '../coordinator/threads/busy-workers.ts';
import { counted, duration } from '../coordinator/words.ts';
import {
  cancelledByClose,
  FailedPreconditionError,
  isOfClose,
  poolClosed,
  poolClosing,
} from '../errors/errors.ts';
import { Calls, type CallsHost } from './calls/calls.ts';
import { Mapped as MappedItems } from './calls/mapped.ts';
import type {
  CallOptions,
  FunctionNames,
  ItemOf,
  Items,
  MapOptions,
  Mapped,
  MapResults,
  Named,
  OnError,
  Result,
  ScheduleArgs,
} from './calls/signatures.ts';
import {
  CLUSTER_OPTIONS,
  type CloseOptions,
  type ClusterEvents,
  type ClusterOptions,
  type ClusterStats,
  type PoolEvent,
  publishWorker,
  type ReadyOptions,
} from './pool-options.ts';
import type { Call } from './queue/call.ts';
import { CallQueue, type End } from './queue/call-queue.ts';
import { CallRules, stopError } from './queue/call-rules.ts';
import { type AnyFunction, NameResolver } from './queue/module-exports.ts';
import {
  type ChangeListeners,
  type NeverReady,
  NoWorkerWarning,
  whenReady,
} from './queue/readiness.ts';
import type { Engine, QueuedWork, Strategy, WorkerInfo } from './queue/strategy.ts';
import { giveFailure } from './queue/unseen-functions.ts';
import { clusterCoordinator } from './worker/coordinator-of-cluster.ts';
import { RETRIES, type Resource } from './worker/messages.ts';
import { moduleFingerprint, refuseOwnModule } from './worker/module.ts';
import { NO_VARIABLES, type VariableSource } from './worker/variables.ts';

/** The strategies that have a pool. */
const used = new WeakSet<object>();

const MAX_QUEUED = 262_144; // as in TensorFlow
const MAX_QUEUED_BYTES = 2 ** 30;
const CANCEL_GRACE_MS = 5_000;
const READY_MS = 60_000;
const MAX_WORKERS = 1_024;

/** What stands above a pool: of a cluster, its scheduled calls, variables and data sets. */
export interface PoolExtension<E> {
  readonly variables: VariableSource;
  /** What each worker makes before it takes calls. */
  readonly resources: Iterable<Resource>;
  /** Whether the workers were not sent yet what they have to make. */
  readonly isDefining: boolean;
  /** The calls that wait until they are put in the queue. */
  readonly waiting: readonly Call[];
  makeCalls(host: CallsHost): Calls;
  /** The pool has its engine. */
  connected(engine: E): void;
  /** A call is out of the queue. */
  left(call: Call): void;
  /** No function runs any more. */
  close(): void;
}

/** For `explain()`: what waits and what fails; or why the pool itself has failed. */
function linesOf(
  { waiting, oldest, blocked, failures }: QueuedWork,
  error: Error | undefined,
): string[] {
  const failed = failures.map(
    ({ name, count, last }) =>
      `'${name}' has failed ${count === 1 ? 'once' : `${count} times`} in the last minutes. The last: ${last}`,
  );
  if (error !== undefined) failed.unshift(`every call is refused: ${error.message}`);
  if (oldest === undefined) return failed;
  const why = blocked === undefined ? '' : `: ${blocked}`;
  const line = `${counted(waiting, 'call')} ${waiting === 1 ? 'waits' : 'wait'}, '${oldest.name}' for ${duration(oldest.ms)}${why}`;
  return [line, ...failed];
}

export class PoolCore {
  readonly coordinator: Coordinator;
  readonly queue: CallQueue<Call>;
  readonly rules: CallRules;
  readonly resolver: NameResolver;
  readonly changes: ChangeListeners;
  readonly calls: Calls;
  readonly #pool: CallPool;
  readonly #engine: Engine;
  readonly #extension: PoolExtension<Engine> | undefined;
  readonly #noWorker: NoWorkerWarning;
  /** Something was queued since the last event 'idle'. */
  #wasBusy = false;
  #closing: Promise<void> | undefined;
  /** Closes the pool at a coordinator's stop. */
  #hook: Disposable | undefined;
  /** That coordinator no longer shows the workers. */
  #hide: (() => void) | undefined;
  /** The coordinator whose stop has closed the pool: the errors of the end are echoes of that stop. */
  #closedBy: Coordinator | undefined;
  #drained: Promise<void> | undefined;
  /** The number of pending promises that users have. */
  #waiting = 0;
  /** The last argument of `Engine.setNeeded`. */
  #isNeeded = true;

  /**
   * @param pool - emits the events
   * @throws as the constructor of ClusterCoordinator
   */
  constructor(
    pool: CallPool,
    strategy: Strategy,
    options: ClusterOptions | undefined,
    extend?: (core: PoolCore, pool: CallPool) => PoolExtension<Engine>,
  ) {
    if (typeof fieldOf(strategy, 'connect') !== 'function') {
      throw invalidType('strategy', 'a LocalStrategy or a NatsStrategy', strategy);
    }
    const given = checkOptions('options', options, CLUSTER_OPTIONS) as ClusterOptions;
    const { maxQueued = MAX_QUEUED, maxQueuedBytes = MAX_QUEUED_BYTES, results } = given;
    const { retries = RETRIES, cancelGraceMs = CANCEL_GRACE_MS, coordinator: parent } = given;
    if (used.has(strategy)) {
      throw new FailedPreconditionError(
        'This strategy already has a ClusterCoordinator: make a new strategy for each',
      );
    }
    const { module, definition } = strategy;
    const name = extend === undefined ? 'pool' : 'cluster'; // in messages
    refuseOwnModule(module, name);
    this.#pool = pool;
    const coordinator = clusterCoordinator(name, undefined, parent);
    this.coordinator = coordinator;
    this.queue = new CallQueue<Call>(maxQueued, maxQueuedBytes, {
      onWork: () => this.#engine.wake(),
      onOut: (call) => {
        this.#extension?.left(call);
        this.#updateNeeded();
        this.#checkIdle();
      },
    });
    this.#extension = extend?.(this, pool);
    const { queue } = this;
    const variables = this.#extension?.variables ?? NO_VARIABLES;
    this.rules = new CallRules(
      { queue, coordinator, cancelGraceMs, retries, variables },
      {
        engine: () => this.#engine,
        resources: () => this.#extension?.resources ?? [],
        onChange: () => {
          queueMicrotask(() => {
            this.#updateNeeded();
            this.#updateCapacity();
          });
        },
        onEvent: (...event) => {
          publishWorker(coordinator, event);
          this.#tell(...event);
        },
      },
    );
    this.changes = this.rules.changes;
    const keepAlive = <T>(promise: Promise<T>): Promise<T> => this.wait(promise);
    this.resolver = new NameResolver(module, this.rules, keepAlive);
    this.#noWorker = new NoWorkerWarning(this.rules);
    const host: CallsHost = {
      rules: this.rules,
      resolver: this.resolver,
      results: results && { place: results, definition: moduleFingerprint(module, definition) },
      sharesMemory: () => this.#engine.sharesMemory === true,
      onPut: () => {
        this.#wasBusy = true;
        this.#noWorker.onPut();
        this.#updateNeeded();
      },
      whyNoWorker: () => this.#noWorker.why(),
      keepAlive,
    };
    this.calls = this.#extension?.makeCalls(host) ?? new Calls(host);
    this.#engine = strategy.connect(this.rules);
    this.#extension?.connected(this.#engine);
    used.add(strategy);
    attachmentOf(coordinator).workers.set(this, {
      work: () => linesOf(this.rules.work(), this.end?.why?.error),
    });
    const stop = (): void => this.#stop(); // now, if the signal has aborted already
    if (coordinator.shouldStop()) stop();
    else coordinator.signal.addEventListener('abort', stop);
    this.#updateNeeded();
    this.#updateCapacity();
  }

  get engine(): Engine {
    return this.#engine;
  }

  /** Why calls are refused; undefined while they are taken. */
  get end(): End | undefined {
    return this.queue.end;
  }

  /** Whether `close` has begun to end the workers. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /** The state in a few words, for util.inspect. */
  get facts(): string[] {
    return [
      this.rules.isOver ? 'ended' : 'running',
      `${this.queue.queued} queued`,
      `${this.queue.count('in-flight')} in flight`,
      counted(this.#engine.workers.length, 'worker'),
    ];
  }

  stats(): ClusterStats {
    const { statistics } = this.rules;
    return {
      waiting: this.queue.count('waiting'),
      queued: this.queue.queued + this.queue.count('delayed'),
      held: this.queue.count('held'),
      inFlight: this.queue.count('in-flight'),
      ...statistics.totals,
      queuedBytes: this.queue.queuedBytes,
      functions: statistics.functions,
      utilization: statistics.utilization(this.#engine.workers),
      engine: this.#engine.stats(),
    };
  }

  async ready(options: ReadyOptions | undefined): Promise<void> {
    const known = { timeoutMs: checkDuration, signal: checkSignal, onProgress: checkFunction };
    const { timeoutMs = READY_MS, signal, onProgress } = checkOptions('options', options, known);
    throwIfAborted(signal);
    await this.wait(
      whenReady({
        poolName: this.coordinator.name,
        report: () => {
          const report = this.#engine.report();
          // A worker that was not sent a data set yet reports that it is ready.
          return this.#extension?.isDefining === true ? { ...report, ready: false } : report;
        },
        whyNever: () => this.#whyNeverReady(),
        interrupted: (error) => this.#interrupted(error),
        changes: this.changes,
        timeoutMs,
        signal,
        onProgress,
      }),
    );
  }

  async resize(workers: number): Promise<void> {
    checkInteger('workers', workers, 1, MAX_WORKERS);
    if (this.#engine.resize === undefined) {
      throw new FailedPreconditionError(
        'Only a cluster with a LocalStrategy can be resized: start or end `allstop worker` processes instead',
      );
    }
    const over = this.#whyNeverReady();
    if (over !== undefined) {
      const { why, cause, isStop } = over;
      const text = `The ${this.coordinator.name} cannot be resized: ${why}`;
      const error = new FailedPreconditionError(text, { cause });
      throw isStop === true ? this.#interrupted(error) : error;
    }
    const resized = this.#engine.resize(workers);
    this.rules.failUnplaceable(this.#extension?.waiting);
    try {
      await this.wait(resized);
    } catch (error) {
      this.rules.failUnplaceable(this.#extension?.waiting); // the workers that it had begun are gone
      throw error;
    }
  }

  async close(options: CloseOptions | undefined): Promise<void> {
    const { drainMs = 0 } = checkOptions('options', options, { drainMs: checkDuration });
    // Its stop follows. A looper, say, that calls the pool meanwhile ends with the pool.
    attachmentOf(this.coordinator).errors.expect(isOfClose);
    if (this.#closing === undefined) this.#engine.leave?.();
    if (drainMs > 0) {
      this.#drained ??= this.resolver.after(() => {
        this.queue.close({ refusal: poolClosing(this.coordinator.name) });
        this.changes.notify();
        return this.#untilEmpty();
      });
      await this.wait(within(drainMs, this.#drained, () => {}));
    }
    if (this.#closing === undefined) {
      this.#closing = this.#close(); // first: a listener to the calls' end may call `close`
      this.#endCalls();
    }
    await this.wait(this.#closing);
  }

  /**
   * Closes the pool at the coordinator's stop, when nothing is left to run, or after `drainMs`: until
   * then it takes calls. `close` before takes the hook away.
   */
  closeAtStop(coordinator: Coordinator, drainMs: number): void {
    const own = attachmentOf(this.coordinator);
    this.#hide = showWorkersOf(own, attachmentOf(coordinator));
    const close = async (): Promise<void> => {
      tellBusyWorkers(own); // to the report of `exitAfterStop`
      const ended = this.resolver.after(() => this.#untilEmpty());
      await within(drainMs, ended, () => {});
      tellBusyWorkers(own); // with calls that have begun meanwhile
      if (this.#closing === undefined) this.#closedBy = coordinator;
      await this.close(undefined);
    };
    this.#hook = coordinator.onStop(close, { name: 'pool' });
  }

  /** A native thread may have stopped the pool since the event loop has turned. */
  hearStop(): void {
    if (this.coordinator.shouldStop()) void this.coordinator.signal; // reading it aborts it
  }

  /** Keeps the program alive until the promise has settled. */
  async wait<T>(promise: Promise<T>): Promise<T> {
    this.#waiting += 1;
    this.#updateNeeded();
    try {
      return await promise;
    } catch (error) {
      giveFailure(error);
      throw error;
    } finally {
      this.#waiting -= 1;
      this.#updateNeeded();
    }
  }

  /** Workers keep the program alive while a promise is pending or a function has not ended. */
  #updateNeeded(): void {
    const { queue } = this;
    const idle = queue.count('held') + queue.count('waiting');
    const needed = this.#waiting > 0 || queue.size > idle;
    if (needed === this.#isNeeded || this.#engine === undefined) return;
    this.#isNeeded = needed;
    this.#engine.setNeeded(needed);
  }

  /** Does nothing in `strategy.connect()`, in which zone.js runs microtasks that are due later. */
  #updateCapacity(): void {
    if (this.#engine === undefined) return;
    const { capacity } = this.#engine;
    this.rules.statistics.setCapacity(capacity);
    this.#noWorker.look(capacity > 0 || this.rules.isOver);
  }

  /** Whether nothing waits for room, is queued or in flight. */
  get #isEmpty(): boolean {
    return this.queue.size === 0 && (this.#extension?.waiting.length ?? 0) === 0;
  }

  /** @returns undefined as long as workers can still become ready */
  #whyNeverReady(): NeverReady | undefined {
    const ended = this.queue.end?.why;
    if (ended !== undefined || !this.coordinator.shouldStop()) return ended;
    const cause = this.coordinator.stopRecord?.error;
    return { why: `the ${this.coordinator.name} was stopped`, cause, isStop: true };
  }

  /** Marks the error as an echo of the stop that has ended the pool: its own, or that of `closeAtStop`. */
  #interrupted(error: Error): Error {
    return attachmentOf(this.#closedBy ?? this.coordinator).signal.interrupted(error);
  }

  /** Called after a stop: drops the queued calls and cancels those in flight. */
  #stop(): void {
    const error = stopError(this.coordinator);
    const dropped = { state: 'cancelled', value: error } as const;
    this.rules.end({ refusal: error, dropped }, this.coordinator.signal.reason);
  }

  /** Resolves when nothing is left to run, or when the pool is over. */
  async #untilEmpty(): Promise<void> {
    await this.changes.until(() => this.#isEmpty || this.rules.isOver);
    await this.calls.kept?.settled();
  }

  /** Emits an event when the present call has ended: a listener that throws disturbs nothing. */
  #tell(...event: PoolEvent): void {
    const pool = this.#pool;
    if (pool.listenerCount(event[0]) === 0) return;
    queueMicrotask(() => (pool.emit as (...what: typeof event) => boolean).call(pool, ...event));
  }

  #checkIdle(): void {
    if (!this.#isEmpty) return;
    this.changes.notify();
    if (!this.#wasBusy) return;
    this.#wasBusy = false;
    this.#tell('idle');
  }

  /** Refuses and cancels all calls. */
  #endCalls(): void {
    this.#hook?.[Symbol.dispose]();
    const { name } = this.coordinator;
    const isStop = this.#closedBy !== undefined;
    const echo = (made: Error): Error => (isStop ? this.#interrupted(made) : made);
    const error = echo(cancelledByClose(name));
    const dropped = { state: 'cancelled', value: error } as const;
    const why = { why: `the ${name} is closed`, cause: undefined, isClose: true, isStop };
    this.rules.end({ refusal: echo(poolClosed(name)), dropped, why }, error);
  }

  /** Ends the workers when `#endCalls` was called and no call is left. */
  async #close(): Promise<void> {
    await this.wait(this.changes.until(() => this.queue.isClosed && this.queue.size === 0));
    this.#extension?.close();
    await this.calls.kept?.settled(); // what is being stored asks the engine
    await this.#engine.close();
    await this.calls.kept?.close();
    this.coordinator.requestStop();
    attachmentOf(this.coordinator).workers.delete(this);
    this.#hide?.();
  }
}

/** Closes the pool at the coordinator's stop (`PoolCore.closeAtStop`). */
export let closeAtStop: (pool: CallPool, coordinator: Coordinator, drainMs: number) => void;

/** What runs the calls of the pool: of a LocalStrategy a WorkerPool. */
export let engineOf: (pool: CallPool) => Engine;

/** Workers, and the calls of the functions of their module. */
export class CallPool<M extends object = any>
  extends EventEmitter<ClusterEvents>
  implements AsyncDisposable
{
  /**
   * The stop flag of the whole cluster: `requestStop` in any worker stops everything. It cannot
   * be cleared.
   */
  readonly coordinator: Coordinator;
  readonly #core: PoolCore;

  static {
    engineOf = (pool) => pool.#core.engine;
    closeAtStop = (pool, coordinator, drainMs) => pool.#core.closeAtStop(coordinator, drainMs);
    showAs(CallPool.prototype, (pool) => ({ facts: pool.#core.facts }));
  }

  /** @internal */
  constructor(
    strategy: Strategy,
    options?: ClusterOptions,
    extend?: (core: PoolCore, pool: CallPool) => PoolExtension<Engine>,
  ) {
    super();
    this.#core = new PoolCore(this, strategy, options, extend);
    this.coordinator = this.#core.coordinator;
  }

  /** The workers, including stuck ones. */
  get workers(): WorkerInfo[] {
    return this.#core.engine.workers;
  }

  /** Counts of functions, and the strategy's counters, as plain data for dashboards and logs. */
  stats(): ClusterStats {
    return this.#core.stats();
  }

  /**
   * Runs a function and resolves with its result: one call, one promise. Its error, deadline or
   * cancellation is told to the caller and to nobody else: nothing else is cancelled, and no
   * `schedule`, `join` or `done` throws it; nor is it cancelled by the error of a scheduled
   * function. Takes the arguments and options of `schedule`. `join` waits for it.
   *
   * With a `key` the result is stored in the cluster's `results` before the promise resolves; a later
   * call of the function with that key and the same arguments, also in another run of the program,
   * resolves with it and runs nothing. Calls of one key at once share one run. A key that ended with
   * an error is run again.
   * @throws (rejects) what the function throws; the errors of the arguments and options that
   *   `schedule` throws; DeadlineExceededError, or the reason of `signal`, at any stage;
   *   CancelledError: the cluster was stopped or closed before the function has ended;
   *   FailedPreconditionError: it was closed before the call, or has no `results` for a key;
   *   UnavailableError: its workers have died too often, no worker will start any more, or the
   *   result cannot be stored; InvalidArgumentError: the key was used with other arguments, or they
   *   cannot be compared: a Variable, PerWorkerValues, shared memory
   */
  run<F extends AnyFunction>(
    fn: F,
    ...rest: ScheduleArgs<Parameters<F>, CallOptions>
  ): Promise<Result<F>>;
  /** As `run` with a function, by the name of the export. */
  run<K extends FunctionNames<M>>(
    name: K,
    ...rest: ScheduleArgs<Parameters<Named<M, K>>, CallOptions>
  ): Promise<Result<Named<M, K>>>;
  run(
    fn: AnyFunction | string,
    ...[args, options]: [args?: unknown, options?: CallOptions]
  ): Promise<any> {
    return this.#core.calls.run(fn, args, options);
  }

  /**
   * Runs a function with each item and yields the results. Items are pulled from the first `next`
   * on, as there is room (`concurrency`): never more than that are pulled and not yielded. Each
   * call is one of `run`, with the options of a call; but `signal` ends the whole map.
   *
   * The first error (of a function in its turn, or of the source) is thrown. Then, when the loop
   * is left, and when the signal is aborted, what is in flight is cancelled and the source is
   * closed.
   *
   * @example
   * ```js
   * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
   *
   * const module = new URL('data:text/javascript,export const square = (x) => x * x');
   * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
   *
   * for await (const result of cluster.map('square', [1, 2, 3])) console.log(result); // 1, 4, 9
   * await cluster.close();
   * ```
   * @param fn - an export of the strategy's module that takes one argument, or its name
   * @param items - an iterable or an async iterable
   * @throws TypeError, RangeError: the arguments. Its `next` rejects with the errors of `run`
   */
  map<F extends AnyFunction, I extends ItemOf<F>, E extends OnError = 'throw'>(
    fn: F,
    items: Items<I>,
    options?: MapOptions<E, I>,
  ): MapResults<Mapped<Result<F>, I, E>>;
  /** As `map` with a function, by the name of the export. */
  map<K extends FunctionNames<M>, I extends ItemOf<Named<M, K>>, E extends OnError = 'throw'>(
    name: K,
    items: Items<I>,
    options?: MapOptions<E, I>,
  ): MapResults<Mapped<Result<Named<M, K>>, I, E>>;
  map(fn: AnyFunction | string, items: Items<any>, options?: MapOptions): MapResults<any> {
    return new MappedItems(this.#core.calls, fn, items, options);
  }

  /**
   * Resolves when every worker can take functions. Never hangs.
   *
   * @example
   * ```js
   * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
   *
   * const module = new URL('data:text/javascript,export const square = (x) => x * x');
   * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }));
   *
   * await cluster.ready({ timeoutMs: 10_000 });
   * console.log(cluster.workers.length); // 2
   * await cluster.close();
   * ```
   * @throws (rejects) ClusterNotReadyError after `timeoutMs` (60,000), or at once when no
   *   worker will start any more: its `report` names each worker that is not ready, with the
   *   cause; the reason of `signal`; the error that `onProgress` throws
   */
  ready(options?: ReadyOptions): Promise<void> {
    return this.#core.ready(options);
  }

  /**
   * Changes the number of workers of a LocalStrategy (1 to 1024). Resolves when that many
   * workers are ready. The workers with the highest indexes end first, after the functions that they
   * run. Of calls that overlap, the last one wins, and all settle with it.
   * @throws (rejects) TypeError, RangeError; FailedPreconditionError: another strategy, or the
   *   cluster is over; UnavailableError: a worker could not be started, and is tried again;
   *   CancelledError: the cluster was closed or stopped meanwhile
   */
  resize(workers: number): Promise<void> {
    return this.#core.resize(workers);
  }

  /**
   * Ends the workers. For `drainMs` milliseconds (0) what was called before may still end, and later
   * calls are refused; then queued functions are cancelled, and running functions are asked to end
   * and have `cancelGraceMs` for that. Every RemoteValue is settled. A second call does not drain
   * any longer: it waits for the first, or ends what that still drains if its own `drainMs` is over
   * before.
   * @throws (rejects) TypeError, RangeError: the options
   */
  close(options?: CloseOptions): Promise<void> {
    return this.#core.close(options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
