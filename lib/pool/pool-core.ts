/**
 * What a pool is behind its public class: connects the queue, the rules, the engine and the calls, and
 * says when it begins and ends. A cluster is one with an extension.
 */

import type { EventEmitter } from 'node:events';
import { throwIfAborted } from '../base/abort.ts';
import {
  checkDuration,
  checkFunction,
  checkInteger,
  checkOptions,
  checkSignal,
  invalidType,
} from '../base/arguments.ts';
import { fieldOf } from '../base/thrown-value.ts';
import { setImmediate, Timer, within } from '../base/timer.ts';
import { attachmentOf } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { showWorkersOf, tellBusyWorkers } from '../coordinator/threads/busy-workers.ts';
import { counted } from '../coordinator/words.ts';
import {
  cancelledByClose,
  FailedPreconditionError,
  isOfClose,
  poolClosed,
  poolClosing,
} from '../errors/errors.ts';
import { importing, type ReadinessReport } from '../errors/phases.ts';
import { beginCallEvents } from '../events/timeline.ts';
import { Calls, type CallsHost } from './calls/calls.ts';
import { FunctionStatistics } from './function-stats.ts';
import {
  type CloseOptions,
  type ClusterCoordinatorOptions,
  type ClusterEvents,
  type ClusterStats,
  checkClusterOptions,
  publishWorker,
  type ReadyOptions,
  type Retry,
} from './pool-options.ts';
import type { Call } from './queue/call.ts';
import { CallQueue, type End } from './queue/call-queue.ts';
import { CallRules, stopError } from './queue/call-rules.ts';
import { ModuleExports, NameResolver } from './queue/module-exports.ts';
import { ChangeListeners, type NeverReady, whenReady } from './queue/readiness.ts';
import type { Engine, EngineEvent, Strategy } from './queue/strategy.ts';
import { giveFailure } from './queue/unseen-functions.ts';
import { clusterCoordinator } from './worker/coordinator-of-cluster.ts';
import type { Resource } from './worker/messages.ts';
import { moduleFingerprint, refuseOwnModule } from './worker/module.ts';
import { NO_VARIABLES, type VariableSource } from './worker/variables.ts';

/** The strategies that have a pool. */
const used = new WeakSet<object>();

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

const NOTHING: PoolExtension<unknown> = {
  variables: NO_VARIABLES,
  resources: [],
  isDefining: false,
  waiting: [],
  makeCalls: (host) => new Calls(host),
  connected: () => {},
  left: () => {},
  close: () => {},
};

export class PoolCore<E extends Engine = Engine> {
  readonly coordinator: Coordinator;
  readonly queue: CallQueue<Call>;
  readonly rules: CallRules;
  readonly resolver: NameResolver;
  readonly functions: ModuleExports;
  readonly changes: ChangeListeners = new ChangeListeners();
  readonly calls: Calls;
  readonly #pool: EventEmitter<ClusterEvents>;
  readonly #engine: E;
  readonly #extension: PoolExtension<E>;
  readonly #statistics = new FunctionStatistics();
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
    pool: EventEmitter<ClusterEvents>,
    strategy: Strategy<E>,
    options: ClusterCoordinatorOptions | undefined,
    extend?: (core: PoolCore<E>) => PoolExtension<E>,
  ) {
    if (typeof fieldOf(strategy, 'connect') !== 'function') {
      throw invalidType('strategy', 'a LocalStrategy or a NatsStrategy', strategy);
    }
    const { maxQueued, maxQueuedBytes, retries, cancelGraceMs, parent, results } =
      checkClusterOptions(options);
    if (used.has(strategy)) {
      throw new FailedPreconditionError(
        'This strategy already has a ClusterCoordinator: make a new strategy for each',
      );
    }
    const { module, definition } = strategy;
    const name = extend === undefined ? 'pool' : 'cluster'; // in messages
    refuseOwnModule(module, name);
    this.#pool = pool;
    this.functions = new ModuleExports(module);
    const coordinator = clusterCoordinator(name, undefined, parent);
    this.coordinator = coordinator;
    this.queue = new CallQueue<Call>(maxQueued, maxQueuedBytes, {
      onWork: () => this.#engine.wake(),
      onOut: (call) => {
        this.#extension.left(call);
        this.#updateNeeded();
        this.#checkIdle();
      },
    });
    this.resolver = new NameResolver(this.functions, this.changes, {
      functionNames: () => this.#engine.functions,
      isOver: () => this.rules.isOver,
      keepAlive: (promise) => this.wait(promise),
    });
    this.#extension = extend?.(this) ?? NOTHING;
    const { variables } = this.#extension;
    this.rules = new CallRules(
      { queue: this.queue, coordinator, cancelGraceMs, retries, variables },
      {
        resources: () => this.#extension.resources,
        cancel: (call, cancellation) => this.#engine.cancel(call, cancellation),
        onChange: () => {
          this.changes.notify();
          queueMicrotask(() => {
            this.#updateNeeded();
            this.#updateCapacity();
          });
        },
        onLanded: () => this.changes.notify(),
        onRun: (call, microseconds) => this.#statistics.onRun(call, microseconds),
        onRetry: (call, attempt, cause) => {
          this.#statistics.onRetry(call);
          this.#tell('retry', { name: call.work.name, attempt, cause });
        },
        whyNowhere: (placement) => this.#engine.whyNowhere(placement),
        onEvent: (...event) => {
          if (event[0] !== 'disconnected' && event[0] !== 'reconnected') {
            publishWorker(coordinator, ...event);
          }
          this.#tell(...event);
        },
      },
    );
    this.#noWorker = new NoWorkerWarning({
      poolName: name,
      report: () => this.#engine.report(),
      waiting: () => (this.rules.isOver ? 0 : this.queue.queued),
    });
    this.calls = this.#extension.makeCalls({
      rules: this.rules,
      resolver: this.resolver,
      owner: {
        coordinator,
        events: beginCallEvents(attachmentOf(coordinator)),
        onSettled: (call, outcome) => this.#statistics.onSettled(call, outcome),
      },
      retries,
      results: results && { place: results, definition: moduleFingerprint(module, definition) },
      sharesMemory: () => this.#engine.sharesMemory === true,
      whyNowhere: (placement) => this.#engine.whyNowhere(placement),
      assertHeld: async () => await this.#engine.assertHeld?.(),
      onPut: () => {
        this.#wasBusy = true;
        this.#noWorker.onPut();
        this.#updateNeeded();
      },
      whyNoWorker: () => this.#noWorker.why(),
      keepAlive: (promise) => this.wait(promise),
    });
    this.#engine = strategy.connect(this.rules);
    this.#extension.connected(this.#engine);
    used.add(strategy);
    const stop = (): void => this.#stop(); // now, if the signal has aborted already
    if (coordinator.shouldStop()) stop();
    else coordinator.signal.addEventListener('abort', stop);
    this.#updateNeeded();
    this.#updateCapacity();
  }

  get engine(): E {
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
    const { ready: completed, failed, cancelled } = this.#statistics.counts;
    return {
      waiting: this.queue.count('waiting'),
      queued: this.queue.queued + this.queue.count('delayed'),
      held: this.queue.count('held'),
      inFlight: this.queue.count('in-flight'),
      completed,
      failed,
      cancelled,
      retried: this.rules.retried,
      queuedBytes: this.queue.queuedBytes,
      functions: this.#statistics.functions,
      utilization: this.#statistics.utilization(this.#engine.workers),
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
          return this.#extension.isDefining ? { ...report, ready: false } : report;
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
    this.rules.failUnplaceable(this.#extension.waiting);
    try {
      await this.wait(resized);
    } catch (error) {
      this.rules.failUnplaceable(this.#extension.waiting); // the workers that it had begun are gone
      throw error;
    }
  }

  async close(options: CloseOptions | undefined): Promise<void> {
    const { drainMs = 0 } = checkOptions('options', options, { drainMs: checkDuration });
    // Its stop follows. A looper, say, that calls the pool meanwhile ends with the pool.
    attachmentOf(this.coordinator).errors.expect(isOfClose);
    if (this.#closing === undefined) this.#engine.leave?.();
    if (drainMs > 0) await this.wait(this.#drain(drainMs));
    this.#closing ??= this.#close();
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
    this.#statistics.setCapacity(capacity);
    this.#noWorker.look(capacity > 0 || this.rules.isOver);
  }

  /** Whether nothing waits for room, is queued or in flight. */
  get #isEmpty(): boolean {
    return this.queue.size === 0 && this.#extension.waiting.length === 0;
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

  /** Resolves when nothing is left to run, when the pool is over, or after `drainMs`. */
  async #drain(drainMs: number): Promise<void> {
    this.#drained ??= this.resolver.after(async () => {
      this.queue.close({ refusal: poolClosing(this.coordinator.name) });
      this.changes.notify();
      await this.#untilEmpty();
    });
    await within(drainMs, this.#drained, () => {});
  }

  /** Resolves when nothing is left to run, or when the pool is over. */
  async #untilEmpty(): Promise<void> {
    await this.changes.until(() => this.#isEmpty || this.rules.isOver);
    await this.calls.kept?.settled();
  }

  /** Emits an event when the present call has ended: a listener that throws disturbs nothing. */
  #tell(...event: EngineEvent | ['retry', Retry] | ['idle']): void {
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

  async #close(): Promise<void> {
    this.#hook?.[Symbol.dispose]();
    const { name } = this.coordinator;
    const isStop = this.#closedBy !== undefined;
    const echo = (made: Error): Error => (isStop ? this.#interrupted(made) : made);
    const error = echo(cancelledByClose(name));
    const dropped = { state: 'cancelled', value: error } as const;
    const why = { why: `the ${name} is closed`, cause: undefined, isClose: true, isStop };
    this.rules.end({ refusal: echo(poolClosed(name)), dropped, why }, error);
    await this.wait(this.changes.until(() => this.queue.size === 0));
    this.#extension.close();
    await this.calls.kept?.settled(); // what is being stored asks the engine
    await this.#engine.close();
    await this.calls.kept?.close();
    this.coordinator.requestStop();
    this.#hide?.();
  }
}

// What is said of calls that wait while the cluster has no worker: a warning, without which the
// program would hang without a word, and the reason in the errors of calls whose time is over.

const NO_WORKER_MS = 10_000;

type NoWorkerOptions = {
  /** 'pool' or 'cluster'. */
  poolName: string;
  report: () => ReadinessReport;
  /** How many calls are queued; 0 if the cluster runs nothing more. */
  waiting: () => number;
};

/** Warns once for each time without a worker. While there is one, nothing is timed. */
class NoWorkerWarning {
  readonly #options: NoWorkerOptions;
  #hasWorker = false;
  #hasWarned = false;
  #timer: Timer | undefined;

  constructor(options: NoWorkerOptions) {
    this.#options = options;
  }

  /** The workers have changed. `isFine`: one is ready, or none is needed any more. */
  look(isFine: boolean): void {
    this.#hasWorker = isFine;
    if (isFine) {
      this.#timer?.clear();
      this.#timer = undefined;
      this.#hasWarned = false;
    } else if (this.#options.waiting() > 0) this.onPut();
  }

  /** A call was queued. */
  onPut(): void {
    if (this.#hasWorker || this.#hasWarned || this.#timer !== undefined) return;
    // The message of a worker that is ready may have come while the program computed: the event
    // loop reads it before the immediate. An idle loop does not wake for one that is unreferenced.
    const late = (): void => void setImmediate(() => this.#warn(timer));
    const timer = new Timer(NO_WORKER_MS, late).unref();
    this.#timer = timer;
  }

  /** Why no worker is ready, as a sentence; '' while one is. */
  why(): string {
    return this.#hasWorker ? '' : reasonOf(this.#options.report());
  }

  #warn(timer: Timer): void {
    if (this.#timer !== timer) return;
    this.#timer = undefined;
    const waiting = this.#options.waiting();
    if (waiting === 0) return;
    this.#hasWarned = true;
    const calls = waiting === 1 ? '1 call waits' : `${waiting} calls wait`;
    const text = `${calls}, and no worker of the ${this.#options.poolName} has been ready for ${NO_WORKER_MS / 1_000} s`;
    const why = reasonOf(this.#options.report());
    process.emitWarning(why === '' ? text : `${text}. ${why}`, {
      type: 'NoWorkerWarning',
      code: 'ALLSTOP_NO_WORKER',
    });
  }
}

/** What `ready()` would say of the engine, or else of the first worker; '' if all are ready. */
function reasonOf({ engine, tasks }: ReadinessReport): string {
  if (engine.phase !== 'ready') return textOf(`The engine is '${engine.phase}'`, engine);
  const blocking = tasks.filter(({ ready }) => !ready);
  const [first] = blocking;
  if (first === undefined) return '';
  const { job, task, phase, cause } = first;
  const more = blocking.length > 1 ? `, like ${blocking.length - 1} more` : '';
  const what = `${job}:${task} is not ready (${phase})${more}`;
  if (phase === 'starting' && cause === undefined) return textOf(what, importing);
  return textOf(what, first);
}

function textOf(what: string, { cause, remedy }: { cause?: string; remedy?: string }): string {
  const why = cause === undefined ? '' : `: ${cause}`;
  return `${what}${why}${remedy === undefined ? '' : `. What to do: ${remedy}`}`;
}
