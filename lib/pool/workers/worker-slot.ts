/**
 * A place for one worker. When its worker is gone or used up (`recycle`), another starts here.
 *
 * 1. `#state` says what the worker does and what may become of it; `#become` alone writes it.
 * 2. Messages of a worker that is gone or stuck are ignored.
 * 3. A retiring worker takes nothing more, and ends when it has nothing: after its teardown
 *    function, if there is one. So `retire` ends no function.
 */

import { builtin } from '../../base/builtins.ts';
import { codeOf, fieldOf, messageOf, namedMessageOf } from '../../base/thrown-value.ts';
import { RealTimer } from '../../base/timer.ts';
import type { ShownWorker } from '../../coordinator/attachment.ts';
import { type Attachment, attachmentOf } from '../../coordinator/attachment.ts';
import type { StopMessage } from '../../coordinator/stop-relay.ts';
import { updateBusyWorkers } from '../../coordinator/threads/busy-workers.ts';
import { duration } from '../../coordinator/words.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import {
  localRemedy,
  notMade,
  settingUp,
  type TaskPhase,
  type TaskReadiness,
} from '../../errors/phases.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { passedAsBytes } from '../../values/value.ts';
import type { Call } from '../queue/call.ts';
import type { RunningCall, StrategyHost, WorkerInfo } from '../queue/strategy.ts';
import type { FromWorker, WorkerResource } from '../worker/messages.ts';
import { importError, whyNotImported } from '../worker/module.ts';
import type { Definition } from '../worker/variables.ts';
import {
  type Isolation,
  startProcess,
  startThread,
  type WorkerChannel,
  type WorkerName,
  type WorkerOptions,
} from './channel.ts';
import { activityOf } from './feeding.ts';
import { type Keeper, LiveWorker, nameOf } from './live-worker.ts';

// The setup and teardown functions of a worker, as its slot sees them.

/**
 * A worker that runs nothing any more ends: after its teardown function, if it has one, and a process
 * by itself. It has limited time for both. What goes wrong with the function is a warning
 * (`ALLSTOP_TEARDOWN`): no call waits for it, and the worker ends all the same.
 */
class Ending {
  /** Undefined: nothing that can fail. */
  #what: string | undefined;
  readonly #timer: RealTimer;

  /**
   * `what` the worker does, for warnings; undefined: it only exits. `onLate` is called when the time
   * is over, unless the worker is gone.
   */
  constructor(what: string | undefined, limitMs: number, onLate: () => void) {
    this.#what = what;
    this.#timer = new RealTimer(limitMs, () => {
      this.#warn(`did not end within ${duration(limitMs)}: the worker is ended by force`);
      onLate();
    });
  }

  /** The teardown function has ended; `failed`: with this encoded error. */
  tornDown(failed: Uint8Array | undefined): void {
    if (failed !== undefined) {
      const { value } = decode(failed);
      this.#warn(`failed: ${messageOf(value)}`, value);
    }
    this.#what = undefined;
  }

  /** The worker is gone. */
  clear(): void {
    this.#timer.clear();
  }

  #warn(how: string, error?: unknown): void {
    if (this.#what === undefined) return;
    const stack = fieldOf(error, 'stack');
    process.emitWarning(`${this.#what} ${how}`, {
      code: 'ALLSTOP_TEARDOWN',
      ...(typeof stack === 'string' && { detail: stack }),
    });
  }
}

/** A worker with what it runs, now and later. `isStuck`: in native code, and it cannot be ended. */
function shownWorker(
  label: string,
  { pid, place, threadId }: WorkerChannel,
  ran: { readonly calls: readonly RunningCall[]; readonly running: number },
  isStuck = false,
): ShownWorker {
  const name = `${label} (${place})`;
  const who = isStuck ? `${name}, which is stuck in native code,` : name;
  return {
    describe() {
      const activity = activityOf(ran.calls, ran.running);
      return `${name}${activity}${isStuck ? '; it is stuck in native code' : ''}`;
    },
    busy: () =>
      ran.calls.map((call) => ({
        text: `${who} runs '${call.name}'`,
        startedAt: call.startedAt,
        pid,
        threadId,
      })),
  };
}

// What the workers of one slot make before they take functions: data sets and their iterators
// (resources), in the order in which they were defined.
//
// 1. A resource of the present worker waits in `#waiting`, is in `#making` from when the worker is
//    sent it until the worker has made it. Nothing waits while nothing is made.
// 2. A death while several were made may be the fault of any: it is charged to none, and the next
//    workers make one at a time until each of these was made. So the next death is charged to the
//    one that causes it.
// 3. One that was charged with more than `retries` deaths in a row has failed: the next workers
//    are sent its error in its place.

class Preparations {
  readonly #retries: number;
  #worker: LiveWorker | undefined;
  readonly #making = new Map<number, WorkerResource>();
  #waiting: WorkerResource[] = [];
  /** Deaths that are charged to those that may have caused one, since they were last made. */
  readonly #deaths = new Map<number, number>();
  /** The iterators that the worker has made. */
  readonly #iterators = new Set<number>();
  /** The encoded errors of those that have failed. */
  readonly #failed = new Map<number, Uint8Array>();

  constructor(retries: number) {
    this.#retries = retries;
  }

  /** A worker was started. */
  begin(worker: LiveWorker): void {
    this.#worker = worker;
  }

  /** Whether the worker takes functions: it has made what it has to make before. */
  get areOver(): boolean {
    return this.#making.size === 0;
  }

  /** Why the worker takes no functions. */
  get cause(): string | undefined {
    const first = [...this.#making.values()].find((resource) => this.#isAtWork(resource));
    return first && notMade(functionOf(first));
  }

  add(resource: WorkerResource): void {
    this.#waiting.push(resource);
    this.#advance();
  }

  /** Nobody will use the resource any more. */
  forget(id: number): void {
    this.#waiting = this.#waiting.filter((resource) => resource.id !== id);
    this.#iterators.delete(id);
    this.#failed.delete(id);
  }

  /** Whether the worker has iterators, which it has to let go before it ends. */
  get hasIterators(): boolean {
    return this.#iterators.size > 0;
  }

  /** The worker has made a resource, or knows that it is impossible. */
  made(id: number): void {
    if (this.#making.get(id)?.kind === 'iterator') this.#iterators.add(id);
    this.#making.delete(id);
    this.#deaths.delete(id);
    this.#advance();
  }

  /**
   * The worker is gone.
   *
   * @param wasEnded - whether its death is no fault of a resource
   * @returns what may have caused its death
   */
  lost(cause: Error, wasEnded: boolean): string | undefined {
    const suspects = wasEnded
      ? []
      : [...this.#making.values()].filter((resource) => this.#isAtWork(resource));
    for (const suspect of suspects) this.#charge(suspect, suspects.length === 1 ? 1 : 0, cause);
    this.#making.clear();
    this.#iterators.clear();
    this.#waiting = [];
    return suspects[0] && functionOf(suspects[0]);
  }

  /** Whether the worker may be running a function of the module for a resource in `#making`. */
  #isAtWork(resource: WorkerResource): boolean {
    if (this.#failed.has(resource.id)) return false;
    if (resource.kind === 'iterator') return !this.#making.has(resource.dataset);
    return resource.kind === 'dataset';
  }

  #advance(): void {
    while (this.#making.size === 0 || this.#deaths.size === 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#send(next);
    }
  }

  #send(resource: WorkerResource): void {
    const { id } = resource;
    const channel = this.#worker?.channel;
    this.#making.set(id, resource);
    let record = this.#failed.get(id);
    if (record === undefined) {
      try {
        const hasToBePacked = resource.kind === 'dataset' && channel?.isShared === false;
        const sent = hasToBePacked ? { ...resource, args: passedAsBytes(resource.args) } : resource;
        return channel?.post({ kind: 'prepare', resource: sent });
      } catch (error) {
        record = encode(error).bytes; // it cannot be sent
      }
    }
    // Functions that use the resource fail with this encoded error.
    this.#worker?.post({ kind: 'prepare', resource: { kind: 'broken', id, record } });
  }

  #charge(resource: WorkerResource, more: number, cause: Error): void {
    const { id } = resource;
    const retries = this.#retries;
    const deaths = (this.#deaths.get(id) ?? 0) + more;
    this.#deaths.set(id, deaths);
    if (deaths <= retries) return;
    const times = deaths === 1 ? 'once' : `${deaths} times`;
    const text = `The ${functionOf(resource)} lost its worker ${times} (retries: ${retries}). Last: ${messageOf(cause)}`;
    this.#failed.set(id, encode(new UnavailableError(text, { cause })).bytes);
    this.#deaths.delete(id);
  }
}

/** The function of the module that makes a resource, after 'the'. */
const functionOf = (resource: WorkerResource): string =>
  resource.kind === 'dataset'
    ? `data set function '${resource.name}'`
    : 'function that makes the iterator of a data set';

/** What a slot tells its pool. */
export interface SlotListener {
  /** The worker can take more calls than before. */
  onFree(slot: WorkerSlot): void;
  /** The worker has imported the module and made its data sets. `isFirst`: for the first time, not only new ones. */
  onReady(slot: WorkerSlot, isFirst: boolean): void;
  /** The worker has imported the module, whose exports have these names. */
  onLoaded(slot: WorkerSlot, names: readonly string[]): void;
  /** The module cannot be imported. */
  onImportFailed(slot: WorkerSlot, error: Error): void;
  /** The worker is gone. Its calls were given to `StrategyHost.returned` before. */
  onGone(slot: WorkerSlot, death: Death): void;
  /** A process has stopped its coordinator. */
  onStop(message: StopMessage): void;
  onResult(name: string, us: number): void;
}

export type Death = {
  readonly cause: Error;
  /**
   * 'retired': by `retire`, and the worker had nothing; 'killed': by `kill`; 'died': by itself, or
   * since it could not begin.
   */
  readonly how: 'retired' | 'killed' | 'died';
  /** Whether the worker had imported the module and made its data sets. */
  readonly wasReady: boolean;
  /** The function, also of a data set, that the worker was running. */
  readonly running: string | undefined;
};

export type SlotSettings = WorkerOptions & {
  readonly isolation: Isolation;
  /** Set on a NATS node, where all workers are one task. Undefined: each worker is its own task. */
  readonly task?: WorkerName;
};

type Living = {
  readonly worker: LiveWorker;
} /** It imports the module and is set up: in this phase, which may be why it cannot begin. */ & (
  | { readonly is: 'starting'; readonly phase: TaskPhase }
  /** It takes calls, unless it makes data sets (`Preparations`). */
  | { readonly is: 'serving' }
  /** It takes nothing more, and ends when it has nothing. */
  | { readonly is: 'retiring'; readonly why: Error }
  /** It has nothing, and was asked to end. */
  | { readonly is: 'ending'; readonly why: Error; readonly ending: Ending }
);

type State =
  /** No worker: none was started, or it is gone. */
  | { readonly is: 'vacant'; readonly phase: TaskPhase }
  | Living
  /** It is ended by force. */
  | {
      readonly is: 'killed';
      readonly worker: LiveWorker;
      readonly why: Error;
      /** What it was doing. */
      readonly before: Living;
      /** The call that did not obey its cancellation; or `retire`, before it could begin. */
      readonly by: Call | 'retire' | undefined;
    };

const MAY_FOLLOW: Readonly<Record<State['is'], readonly State['is'][]>> = {
  vacant: ['starting', 'vacant'],
  starting: ['starting', 'serving', 'killed', 'vacant'],
  serving: ['retiring', 'killed', 'vacant'],
  retiring: ['ending', 'killed', 'vacant'],
  ending: ['killed', 'vacant'],
  killed: ['vacant'],
};

const FAILED: ReadonlySet<TaskPhase> = new Set(['import-failed', 'setup-failed']);

/** Why it could not begin, if it could not. */
const failedPhase = (state: Living): TaskPhase | undefined =>
  state.is === 'starting' && FAILED.has(state.phase) ? state.phase : undefined;

function phaseOf(state: State, isPrepared: boolean): TaskPhase {
  if (state.is === 'vacant' || state.is === 'starting') return state.phase;
  if (state.is === 'killed') return failedPhase(state.before) ?? 'stopping';
  if (state.is !== 'serving') return 'stopping';
  return isPrepared ? 'ready' : 'building-dataset';
}

const recycled = (): Error => new CancelledError('The worker is replaced by a new one');

export class WorkerSlot implements Keeper {
  readonly index: number;
  readonly name: WorkerName;
  /** JOB:INDEX */
  readonly #label: string;
  readonly #settings: SlotSettings;
  readonly #host: StrategyHost;
  readonly #attachment: Attachment;
  readonly #listener: SlotListener;
  readonly #preparations: Preparations;
  #state: State = { is: 'vacant', phase: 'starting' };
  /** Since when its phase lasts, and why it is not ready: a later worker is shown with it, too. */
  #since = new Date();
  #cause: unknown;
  /** In what the last start has failed, since a worker was last ready. */
  #failedIn: TaskPhase | undefined;
  /** The pid of the current or last worker. Never 0: with it process.kill() signals our own group. */
  #pid = Number.NaN;
  #completed = 0;
  /** How often another worker has taken the place of one that had died or was ended by force. */
  #restarts = 0;
  /** Deaths while the worker ran no function, since a function last ended here. */
  #deaths = 0;
  /** Threads of this slot that are blocked in native code and could not be ended. */
  readonly stuck: Map<LiveWorker, WorkerInfo> = new Map();

  constructor(index: number, settings: SlotSettings, host: StrategyHost, listener: SlotListener) {
    this.index = index;
    this.name = settings.task ?? { job: 'worker', index };
    this.#label = `${this.name.job}:${this.name.index}`;
    this.#settings = settings;
    this.#host = host;
    this.#attachment = attachmentOf(host.coordinator);
    this.#listener = listener;
    this.#preparations = new Preparations(host.retries);
  }

  get worker(): LiveWorker | undefined {
    return this.#state.is === 'vacant' ? undefined : this.#state.worker;
  }

  /** The worker has imported the module, and its setup function has ended. */
  get isLoaded(): boolean {
    const state = this.#state.is === 'killed' ? this.#state.before : this.#state;
    return state.is !== 'vacant' && state.is !== 'starting';
  }

  /** And it is not about to end. */
  get isServing(): boolean {
    return this.#state.is === 'serving';
  }

  /** And it has made its data sets: it takes calls. */
  get isReady(): boolean {
    return this.#state.is === 'serving' && this.#preparations.areOver;
  }

  /** A setup function has failed here since a worker was last ready. */
  get hasFailedSetup(): boolean {
    return this.#failedIn === 'setup-failed';
  }

  /** @returns false if the state may not follow on the present one: then nothing has changed */
  #become(next: State, cause?: unknown): boolean {
    const last = this.#state;
    if (!MAY_FOLLOW[last.is].includes(next.is)) return false;
    if (next.is === 'vacant') {
      const living = last.is === 'killed' ? last.before : last;
      if (living.is === 'ending') living.ending.clear();
    }
    this.#state = next;
    // A worker that serves is not reported as ready before it was sent what it has to make.
    if (next.is !== 'serving') this.#tell(cause);
    return true;
  }

  /** What is reported of the slot has changed. */
  #tell(cause?: unknown): void {
    this.#cause = cause ?? this.#cause;
    this.#since = new Date();
    this.#host.changed();
  }

  /** @throws UnavailableError: no thread or process can be started */
  start(): void {
    const settings = this.#settings;
    const begin = settings.isolation === 'thread' ? startThread : startProcess;
    try {
      const channel = begin(this.#host, settings, this.name, {
        onMessage: (message) => {
          if (this.worker === worker) this.#receive(worker, message);
        },
        onUnreadable: (error) => {
          const result = this.worker === worker ? worker.unreadable(error) : undefined;
          if (result === undefined) return false;
          this.#receive(worker, { kind: 'allstop:results', results: [result] });
          return true;
        },
        isIdle: () => this.isLoaded && worker.running === 0 && this.#preparations.areOver,
        onStuck: () => this.#abandon(worker),
        onGone: (cause) => this.#onGone(worker, cause),
      });
      const worker = new LiveWorker(channel, this.#host, this, settings);
      this.#become({ is: 'starting', worker, phase: 'starting' });
      this.#preparations.begin(worker);
      this.#pid = channel.pid;
      this.define(this.#host.variables.definitions);
      // The worker is not registered as a thread of the coordinator: else the coordinator's `join`
      // would wait for the worker, which lives until the cluster is closed.
      this.#shown.set(worker, shownWorker(this.#label, channel, worker));
    } catch (error) {
      // Node's message may end with a full stop; that of a phase has none.
      const why = `A worker cannot be started: ${messageOf(error).replace(/\.$/, '')}`;
      this.#become({ is: 'vacant', phase: 'lost' }, why);
      throw new UnavailableError(why, { cause: error });
    }
  }

  /** The workers that `explain()` and the end of the process show. */
  get #shown(): Map<object, ShownWorker> {
    return this.#attachment.workers;
  }

  /** Has the worker make a resource. `isReady` is false until the worker reports it as made. */
  prepare(resource: WorkerResource): void {
    this.#preparations.add(resource);
    if (!this.#preparations.areOver) this.#tell();
  }

  /** Nobody has the data set or iterator any more. */
  forget(id: number): void {
    this.#preparations.forget(id);
    if (this.isLoaded) this.worker?.post({ kind: 'forget', id });
  }

  /** Tells the worker of variables. (A thread that shares their memory finds them by their names.) */
  define(definitions: readonly Definition[]): void {
    const { worker } = this;
    const isFound = worker?.channel.isShared === true && this.#host.variables.id !== undefined;
    if (!isFound && definitions.length > 0) worker?.post({ kind: 'define', definitions });
  }

  /** Tells the functions that run, and those that follow, that the worker will be asked to end. */
  leave(): void {
    if (this.isLoaded) this.worker?.post({ kind: 'leave' });
  }

  /** The worker can take more calls than before. */
  onFree(): void {
    this.worker?.watch();
    this.#listener.onFree(this);
  }

  /** Ends the worker by force. `onGone` follows, also for a thread that is stuck. */
  kill(why: Error, by?: Call | 'retire'): void {
    const before = this.#state;
    if (before.is === 'vacant' || before.is === 'killed') return;
    const { worker } = before;
    this.#become({ is: 'killed', worker, why, before, by });
    worker.channel.kill();
  }

  /**
   * Ends the worker when it runs nothing: what it was only sent goes back, and its teardown
   * function is called, with `cancelGraceMs` to end. `onGone` follows.
   */
  retire(why: Error): void {
    const { worker } = this;
    if (this.#state.is === 'starting') return this.kill(why, 'retire');
    if (worker === undefined || !this.#become({ is: 'retiring', worker, why })) return;
    worker.giveBack();
    if (worker.running > 0) this.leave();
    this.#endIfRetired();
  }

  #endIfRetired(): void {
    const state = this.#state;
    if (state.is !== 'retiring' || state.worker.running > 0) return;
    const { worker, why } = state;
    const { teardown } = this.#settings;
    let does: string | undefined;
    if (teardown !== undefined) does = `The teardown function '${teardown}'`;
    else if (this.#preparations.hasIterators) does = 'return() of the iterators';
    // A thread loses nothing by force.
    if (does === undefined && worker.channel.isShared) return this.kill(why);
    const what = does && `${does} of ${this.#label}`;
    const ending = new Ending(what, this.#host.cancelGraceMs, () => this.kill(why));
    this.#become({ is: 'ending', worker, why, ending });
    worker.post({ kind: 'end', letsGo: true });
  }

  /**
   * The pool starts another worker in the place of one that has died. `isCharged`: a function was
   * charged with the death.
   *
   * @returns the number of deaths that no function was charged with, since one last ended here
   */
  isReplaced(isCharged: boolean): number {
    this.#restarts += 1;
    if (!isCharged) this.#deaths += 1;
    return this.#deaths;
  }

  get info(): WorkerInfo {
    const { worker } = this;
    let state: WorkerInfo['state'] = 'lost';
    if (worker !== undefined) {
      if (!this.isLoaded || !this.#preparations.areOver) state = 'starting';
      else state = worker.idleSince === undefined ? 'busy' : 'idle';
    }
    return {
      name: this.#label,
      ...this.name,
      state,
      host: builtin('node:os').hostname(),
      pid: this.#pid,
      running: worker?.running ?? 0,
      completed: this.#completed,
      restarts: this.#restarts,
      calls: worker?.calls ?? [],
    };
  }

  get readiness(): TaskReadiness {
    const { isReady: ready } = this;
    const own = phaseOf(this.#state, this.#preparations.areOver);
    const phase = own === 'starting' ? (this.#failedIn ?? own) : own; // it is tried again
    const why = phase === 'building-dataset' ? this.#preparations.cause : this.#cause;
    const cause = ready || why === undefined ? undefined : messageOf(why);
    return {
      job: this.name.job,
      task: this.name.index,
      host: builtin('node:os').hostname(),
      ready,
      phase,
      since: this.#since,
      ...(this.worker !== undefined && { pid: this.#pid }),
      ...(cause !== undefined && { cause, remedy: localRemedy(phase, cause) }),
    };
  }

  #receive(worker: LiveWorker, message: FromWorker): void {
    switch (message.kind) {
      case 'allstop:results':
        for (const result of message.results) {
          const name = worker.took(result);
          if (name === undefined) continue;
          this.#completed += 1;
          this.#deaths = 0;
          this.#listener.onResult(name, result[3]);
        }
        if (worker.isSpent) this.retire(recycled());
        updateBusyWorkers(this.#attachment);
        this.#endIfRetired();
        return this.onFree();
      case 'allstop:announcing':
        return worker.announces(message);
      case 'allstop:pong':
        worker.hasAnswered();
        return this.onFree();
      case 'allstop:progress':
      case 'allstop:begun':
        return worker.heard(message);
      case 'allstop:ready':
        this.#failedIn = undefined;
        this.#cause = undefined;
        this.#become({ is: 'serving', worker });
        this.#listener.onLoaded(this, message.functions);
        for (const resource of this.#host.resources) this.prepare(resource);
        this.#listener.onFree(this);
        return this.#checkReady(worker);
      case 'allstop:failed': {
        const { value } = decode(message.error);
        const { module } = this.#settings;
        this.#failedIn = 'import-failed';
        const why = whyNotImported(module, value);
        this.#become({ is: 'starting', worker, phase: 'import-failed' }, why);
        const isWhole = message.isWhole && value instanceof Error;
        return this.#listener.onImportFailed(this, isWhole ? value : importError(module, value));
      }
      case 'allstop:settingUp': {
        const { setup = '' } = this.#settings;
        const cause = this.hasFailedSetup ? undefined : settingUp(setup);
        this.#become({ is: 'starting', worker, phase: 'setting-up' }, cause);
        return;
      }
      case 'allstop:setupFailed': {
        const { value: cause } = decode(message.error);
        const { setup } = this.#settings;
        const by = setup === undefined ? '' : ` by '${setup}'`; // else no such teardown
        const text = `Worker ${this.#label} could not be set up${by}: ${namedMessageOf(cause)}`;
        const error = new UnavailableError(text, { cause });
        this.#failedIn = 'setup-failed';
        this.#become({ is: 'starting', worker, phase: 'setup-failed' }, error);
        return this.kill(error);
      }
      case 'allstop:heapFull':
        return this.retire(recycled());
      case 'allstop:ending': {
        if (this.#state.is !== 'ending') return;
        this.#state.ending.tornDown(message.error);
        // A process exits.
        if (worker.channel.isShared) this.kill(this.#state.why);
        return;
      }
      case 'allstop:leaving':
        return this.retire(new CancelledError('The worker was asked to end, by SIGTERM'));
      case 'allstop:prepared':
        this.#preparations.made(message.id);
        this.#checkReady(worker);
        return this.onFree();
      case 'allstop:stop':
        return this.#listener.onStop(message.stop);
      case 'allstop:draw':
        return this.#host.draw?.(message.request, (state, bytes) =>
          worker.post({ kind: 'drawn', id: message.id, state, bytes }),
        );
      case 'allstop:operate':
        return this.#host.variables.answer(message.request, (answer) =>
          worker.post({ kind: 'answer', id: message.id, answer }),
        );
      case 'allstop:begins':
      case 'allstop:output':
      case 'allstop:dying': // heard by the channel
    }
  }

  #checkReady(worker: LiveWorker): void {
    if (!this.isReady) return;
    const isFirst = worker.hasAnswered();
    this.#tell();
    this.#listener.onReady(this, isFirst);
  }

  #onGone(worker: LiveWorker, cause: Error): void {
    if (this.stuck.delete(worker)) {
      this.#shown.delete(worker); // the thread has returned from native code and ended
      updateBusyWorkers(this.#attachment);
      this.#host.changed();
    }
    if (this.worker === worker) this.#lose(worker, cause);
  }

  #abandon(worker: LiveWorker): void {
    const state = this.#state;
    if (state.is !== 'killed' || state.worker !== worker) return;
    const info: WorkerInfo = { ...this.info, state: 'stuck', running: 0 };
    this.stuck.set(worker, info);
    this.#lose(worker, state.why);
    const ran = { calls: info.calls, running: info.calls.length };
    this.#shown.set(worker, shownWorker(this.#label, worker.channel, ran, true));
    this.#host.tell('workerStuck', info);
  }

  /** Returns all calls of the worker, which is gone. */
  #lose(worker: LiveWorker, ended: Error): void {
    const state = this.#state;
    if (state.is === 'vacant') return;
    const killed = state.is === 'killed' ? state : undefined;
    const before = state.is === 'killed' ? state.before : state;
    const cause = killed?.why ?? ended;
    const failed = failedPhase(before);
    const isLeaving = before.is === 'retiring' || before.is === 'ending';
    const isRetired = isLeaving || killed?.by === 'retire';
    const wasRetired = isRetired && worker.running === 0;
    const wasKilled = killed !== undefined && failed === undefined;
    const wasReady = this.isLoaded && this.#preparations.areOver;
    const made = this.#preparations.lost(cause, killed !== undefined || isRetired);
    const by = killed?.by === 'retire' ? undefined : killed?.by;
    const hadNoMemory = codeOf(cause.cause) === 'ERR_WORKER_OUT_OF_MEMORY';
    const lost = worker.lose(killed !== undefined, by, hadNoMemory);
    this.#shown.delete(worker);
    this.#become({ is: 'vacant', phase: failed ?? 'lost' }, wasRetired ? undefined : cause);
    updateBusyWorkers(this.#attachment);
    for (const { call, fate } of lost) this.#host.returned(call, fate, cause);
    const ran = lost.find(({ fate }) => fate === 'running');
    const running = ran === undefined ? made : nameOf(ran.call);
    const how = wasRetired ? 'retired' : wasKilled ? 'killed' : 'died';
    this.#listener.onGone(this, { cause, how, wasReady, running });
    worker.isGone(cause);
  }
}
