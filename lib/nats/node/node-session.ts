/**
 * The node's end of a session, the time in which one node serves one run: runs the closures that
 * the coordinator (session.ts) sends on threads of this process, and sends their results back.
 * The threads are a WorkerPool, as in the local strategy; this class is the pool's host.
 *
 * The threads begin and end with the session, so that a run finds no state of an earlier run.
 */

import { availableParallelism, hostname } from 'node:os';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { type StopMessage, StopPeer } from '../../coordinator/stop-relay.ts';
import type { TaskReadiness } from '../../errors/readiness-report.ts';
import { type Call, Closure, type ClosureOutcome } from '../../pool/queue/closure.ts';
import type { DrawAnswer, StrategyHost, WorkerInfo } from '../../pool/queue/strategy.ts';
import { clusterCoordinator } from '../../pool/worker/coordinator-of-cluster.ts';
import type { ModuleHooks } from '../../pool/worker/module-options.ts';
import type { Fate, Resource } from '../../pool/worker/protocol.ts';
import { RecentValues } from '../../pool/worker/recent-values.ts';
import { toPost, transferListOf } from '../../pool/worker/transfer.ts';
import type { Recycle } from '../../pool/workers/channel.ts';
import { WorkerPool } from '../../pool/workers/worker-pool.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { KeptVariables } from '../variables/kept-variables.ts';
import { NodeVariables } from '../variables/node-variables.ts';
import { checkLength, ReliableChannel } from '../wire/reliable-channel.ts';
import {
  type FromNode,
  LONG_BYTES,
  type NodeStatus,
  type PackedResource,
  pack,
  type SentCall,
  type SentResult,
  unpackToNode,
} from '../wire/session-messages.ts';
import { SharedDatasets, type SharedDatasetsSettings } from './shared-datasets.ts';

/** How many reported values of a function wait while the channel is full; and LONG_BYTES. */
const MOST_PROGRESS = 4_096;

export type NodeSessionOptions = ModuleHooks & {
  module: URL;
  job: 'worker' | 'ps';
  task: number;
  slots: number;
  cancelGraceMs: number;
  retries: number;
  /** How long a stop record of this node is provisional if the coordinator does not answer. */
  unavailableAfterMs: number;
  maxFrameBytes: number;
  /** When a thread is replaced. */
  recycle?: Recycle | undefined;
  /** Whether the module file is that of the coordinator. */
  hasModule: () => boolean;
};

/** How a function has ended on a node; 'lost': with its thread. */
export type CallOutcome = 'ok' | 'error' | 'cancelled' | 'lost';

export interface NodeSessionListener {
  /** Publishes a frame. @returns false if there is no connection */
  send(frame: Uint8Array): boolean;
  /** Tells all processes of the run of a stop, before the coordinator has decided on the record. */
  broadcast(stop: StopMessage): void;
  /** A message was malformed: the coordinator's, or one that another client sent in its name. */
  onMalformed(): void;
  /** The coordinator has ended the session; `isClosed`: its program has closed it. */
  onEnd(isClosed: boolean): void;
  /** What the node is for has begun: a thread has the module, or a ps its variables. Called once. */
  onServing(): void;
  /** A function has ended here, or its thread has. */
  onCall(name: string, outcome: CallOutcome): void;
  /** A thread has died, of `error`; another takes its place. */
  onThreadLost(error: Error): void;
  /** A thread is blocked in native code and cannot be ended; another takes its place. */
  onThreadStuck(): void;
  /** The module file is another: no thread starts any more, and the session leaves. Called once. */
  onModuleChanged(): void;
  /** No worker thread will live here. The message that tells the coordinator is on its way. */
  onFailed(error: Error): void;
}

export class NodeSession implements StrategyHost {
  readonly coordinator: Coordinator;
  readonly stops: StopPeer;
  readonly cancelGraceMs: number;
  readonly retries: number;
  readonly channel: ReliableChannel;
  readonly #options: NodeSessionOptions;
  readonly #listener: NodeSessionListener;
  /** Undefined on a parameter server, and until the coordinator has sent its variables. */
  #pool: WorkerPool | undefined;
  #inbox: Closure[] = [];
  readonly variables: NodeVariables = new NodeVariables((id, request) => {
    const [operation, name, closure, ...rest] = request;
    const known = this.#ids.get(closure) ?? 0;
    this.#post({ kind: 'operate', id, request: [operation, name, known, ...rest] });
  });
  /** Undefined on a worker. */
  readonly #kept: KeptVariables | undefined;
  /** The closures that have not ended, by the coordinator's ids. (`Closure.id` here is another.) */
  readonly #closures = new Map<number, Closure>();
  readonly #ids = new Map<number, number>();
  #resources: Resource[] = [];
  /** How many resources have come. */
  #received = 0;
  /** Of a node with several slots: the thread that has the data sets of all. */
  readonly #datasets: SharedDatasets | undefined;
  /** Data sets that each thread has to make before it runs functions, by worker. */
  readonly #tagged = new Map<number, Closure[]>();
  /** What functions have reported and was not sent. */
  readonly #progress = new Map<Closure, RecentValues>();
  #results: SentResult[] = [];
  #resultsBytes = 0;
  /** The number of the last message that has results or a stop, as `channel.posted` counts. */
  #lastResults = 0;
  #lastStatus = '';
  #isServing = false;
  #isStatusDue = false;
  #isFlushDue = false;
  #isOver = false;
  #hasOtherModule = false;
  /** No worker thread lives here. */
  hasFailed = false;

  constructor(options: NodeSessionOptions, listener: NodeSessionListener) {
    this.#options = options;
    this.#listener = listener;
    const { job, task, slots, maxFrameBytes } = options;
    this.cancelGraceMs = options.cancelGraceMs;
    this.retries = options.retries;
    this.channel = new ReliableChannel(
      { maxFrameBytes },
      {
        send: (frame) => listener.send(frame),
        onMessage: (bytes, attached) => this.#receive(bytes, attached),
        onImpostor: () => listener.onMalformed(),
      },
    );
    const coordinator = clusterCoordinator({ job, index: task });
    this.coordinator = coordinator;
    this.stops = new StopPeer(coordinator, {
      send: (stop) => this.#post({ kind: 'stop', stop: this.#here(stop) }),
      broadcast: (stop) => listener.broadcast(this.#here(stop)),
      answerMs: options.unavailableAfterMs,
    });
    if (job === 'ps') this.#kept = new KeptVariables();
    else if (slots > 1) this.#datasets = new SharedDatasets(this, this.#settings);
    this.changed();
  }

  get #settings(): SharedDatasetsSettings {
    const { module, job, task, setup, teardown } = this.#options;
    const hasModule = (): boolean => this.#hasModule();
    return { module, setup, teardown, task: { job, index: task }, hasModule };
  }

  /** False from the first time on that the module file is another: what runs may end, and no more. */
  #hasModule(): boolean {
    if (this.#hasOtherModule) return false;
    if (this.#options.hasModule()) return true;
    this.#hasOtherModule = true;
    this.#listener.onModuleChanged();
    this.leave();
    return false;
  }

  /** Starts the threads: their setup functions find the variables that the coordinator has sent. */
  #startPool(): void {
    for (const resource of this.#resources) this.#datasets?.add(resource);
    const { slots, recycle } = this.#options;
    this.#pool = new WorkerPool(this, {
      ...this.#settings,
      recycle,
      workers: slots,
      isolation: 'thread',
      startTogether: availableParallelism(),
      onSetupFailed: (error) => {
        this.#sendStatus(); // before: the cluster may fail, and its report is to say why
        this.#post({ kind: 'setup-failed', cause: encode(error).bytes });
      },
    });
    this.changed();
  }

  /** How many closures have not ended. */
  get running(): number {
    return this.#closures.size;
  }

  /** Whether the coordinator has not acknowledged all results and stops of this node. */
  get hasResults(): boolean {
    return this.#results.length > 0 || this.channel.acknowledgedMessages < this.#lastResults;
  }

  /** How long a coordinator may be away that comes back to its closures here. */
  get unavailableAfterMs(): number {
    return this.#options.unavailableAfterMs;
  }

  /** Asks the coordinator to send no more closures, and to end the session when all are done. */
  leave(): void {
    this.#pool?.leave();
    this.#post({ kind: 'leaving' });
  }

  /** Ends the threads. Resolves when they have ended, or are given up as stuck. */
  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.channel.close();
    this.stops.end(); // a join here would wait for the answer without end
    this.variables.close();
    await Promise.all([this.#pool?.close(), this.#datasets?.close()]);
    this.coordinator.requestStop();
  }

  // ---------------------------------------------------------------- host of the pool

  take(): Closure | undefined {
    // After a stop the coordinator cancels the closures in #inbox.
    if (this.coordinator.shouldStop()) return undefined;
    return this.#inbox.shift();
  }

  get waiting(): number {
    return this.#inbox.length;
  }

  /** The coordinator has decided which node runs a closure; here any thread may. */
  readonly hasPlaced = false;
  readonly placedOn: readonly number[] = [];

  /** A suspect is alone on its node. */
  isSuspectNext(): boolean {
    return false;
  }

  takeTagged(worker: number): Closure | undefined {
    return this.#tagged.get(worker)?.shift();
  }

  hasTagged(): boolean {
    return [...this.#tagged.values()].some((closures) => closures.length > 0);
  }

  prepare(worker: number): void {
    this.#tagged.set(
      worker,
      this.#resources.map((resource) => this.#toMake(resource)),
    );
  }

  /** What a thread here has to make. */
  #toMake(resource: Resource): Closure {
    const { id } = resource;
    return new Closure(this.#datasets === undefined ? resource : { kind: 'shared', id });
  }

  draw(request: Uint8Array, answer: DrawAnswer): void {
    this.#datasets?.draw(request, answer);
  }

  ended(closure: Closure, { state, value }: ClosureOutcome, microseconds = 0): void {
    let result: Pick<SentResult, 'state' | 'bytes'>;
    try {
      // A result comes packed from its thread: a call whose arguments are bytes gets bytes.
      if (state === 'ready') result = { state, bytes: checkLength(value as Uint8Array) };
      else result = { state: 'failed', bytes: checkLength(encode(value).bytes) };
    } catch (error) {
      result = { state: 'failed', bytes: encode(error).bytes };
    }
    this.#sendProgress(closure);
    const id = this.#forget(closure);
    if (id === undefined) return;
    const wasCancelled = closure.decided !== undefined;
    const how = state === 'ready' ? 'ok' : 'error';
    this.#listener.onCall((closure.work as Call).name, wasCancelled ? 'cancelled' : how);
    this.stops.sendStops();
    this.#results.push({ id, ...result, us: microseconds });
    this.#resultsBytes += result.bytes.byteLength;
    if (this.#resultsBytes > LONG_BYTES) this.#flush();
    else if (!this.#isFlushDue) {
      this.#isFlushDue = true;
      queueMicrotask(() => this.#flush());
    }
  }

  /** The coordinator decides, and cancels the closure. */
  overdue({ id }: Closure): void {
    const known = this.#ids.get(id);
    if (known !== undefined) this.#post({ kind: 'overdue', id: known });
  }

  /** While the channel is full, values wait here, where the newest are kept. */
  progressed(closure: Closure, values: readonly Uint8Array[]): void {
    let waiting = this.#progress.get(closure);
    if (waiting === undefined) {
      waiting = new RecentValues(MOST_PROGRESS, LONG_BYTES);
      this.#progress.set(closure, waiting);
    }
    for (const value of values) waiting.add(value);
    if (!this.channel.isFull) this.#sendProgress(closure);
  }

  returned(closure: Closure, fate: Fate, cause?: unknown): void {
    const id = this.#ids.get(closure.id);
    if (id === undefined) return;
    // Without a cause the pool has recalled the closure from a busy thread because another thread
    // is idle: the closure goes to the head of the queue, where the idle thread takes it. If its arguments were moved to the busy thread,
    // they are lost here, and the closure goes back to the coordinator, which has a copy.
    if (cause === undefined && closure.decided === undefined && !closure.isMoved) {
      this.#inbox.unshift(closure);
      return;
    }
    this.#forget(closure);
    if (fate !== 'sent') {
      const outcome = closure.decided === undefined ? 'lost' : 'cancelled';
      this.#listener.onCall((closure.work as Call).name, outcome);
    }
    this.#flush();
    this.#sendStatus(); // before 'returned', or the coordinator would send the closure here again
    const why = cause === undefined ? null : encode(cause).bytes;
    this.#post({ kind: 'returned', id, fate, cause: why });
  }

  /** The coordinator has an event for the node, which is one worker, when it is ready. */
  workerStarted(): void {}

  workerLost(_worker: WorkerInfo, error: Error): void {
    this.#listener.onThreadLost(error);
    this.#post({ kind: 'thread', cause: encode(error).bytes });
  }

  workerStuck(): void {
    this.#listener.onThreadStuck();
    this.#post({ kind: 'thread', cause: null });
  }

  changed(): void {
    if (this.#isStatusDue) return;
    this.#isStatusDue = true;
    queueMicrotask(() => {
      this.#isStatusDue = false;
      this.#sendStatus();
    });
  }

  failed(error: Error): void {
    this.hasFailed = true;
    queueMicrotask(() => {
      this.#post({ kind: 'failed', cause: encode(error).bytes });
      this.#listener.onFailed(error);
    });
  }

  // ---------------------------------------------------------------- from the coordinator

  #receive(bytes: Uint8Array, attached: readonly Uint8Array[]): void {
    const message = unpackToNode(bytes, attached);
    if (message === undefined) {
      this.#listener.onMalformed();
      return;
    }
    switch (message.kind) {
      case 'run':
        for (const call of message.calls) this.#run(call);
        this.#pool?.wake();
        return;
      case 'cancel':
        this.#cancel(message.id, decode(message.reason).value, message.replace);
        return;
      case 'recall':
        for (const id of message.ids) this.#giveBack(id);
        return;
      case 'resource': {
        const resource = unpackResource(message.resource);
        this.#resources.push(resource);
        this.#received += 1;
        if (this.#pool !== undefined) this.#datasets?.add(resource);
        for (const worker of this.#pool?.indexes ?? []) {
          this.#tagged.get(worker)?.push(this.#toMake(resource));
        }
        this.#pool?.wake();
        this.changed();
        return;
      }
      case 'forget': {
        const { id } = message;
        this.#resources = this.#resources.filter((each) => each.id !== id);
        this.#datasets?.forget(id);
        this.#pool?.forget(id);
        return;
      }
      case 'operate': {
        const { id, request } = message;
        const answer = this.#kept?.answer(request);
        if (id !== 0 && answer !== undefined) this.#post({ kind: 'answer', id, answer });
        return;
      }
      case 'defined': {
        const { definitions } = message;
        this.variables.definitions.push(...definitions);
        this.#datasets?.define(...definitions);
        if (this.#pool !== undefined) this.#pool.define(...definitions);
        else if (this.#kept === undefined && !this.#isOver) this.#startPool();
        return;
      }
      case 'answer':
        this.variables.answered(message.id, message.answer);
        return;
      case 'stopped':
        this.stops.answer(message.stop);
        return;
      case 'end':
        this.stops.sendStops();
        this.#listener.onEnd(message.isClosed);
    }
  }

  #run({ id, attempt, name, bytes, context, runTimeoutMs, ...of }: SentCall): void {
    if (this.#closures.has(id)) return;
    const args = toPost(bytes);
    const transfer = transferListOf([args]);
    const { perWorker, hasVariables = false, isKeyed = false } = of;
    const own = { bytes: args.length, perWorker, hasVariables, transfer, isKeyed };
    const call: Call = { kind: 'call', name, args, ...own };
    const before = { attempts: attempt - 1, contextText: context };
    const options = { isOwn: false, retries: Number.POSITIVE_INFINITY, runTimeoutMs, ...before };
    const closure = new Closure(call, undefined, undefined, options);
    this.#closures.set(id, closure);
    this.#ids.set(closure.id, id);
    this.#inbox.push(closure);
  }

  #cancel(id: number, reason: unknown, replace: boolean): void {
    const closure = this.#closures.get(id);
    if (closure === undefined) return; // the closure has ended; its result is on its way
    closure.decide({ state: 'cancelled', value: reason });
    if (!this.#takeFromInbox(closure)) this.#pool?.cancel(closure, { reason, replace });
    else this.returned(closure, 'sent');
  }

  #giveBack(id: number): void {
    const closure = this.#closures.get(id);
    if (closure === undefined) return;
    // A closure that can be neither taken from #inbox nor recalled has begun, and goes on.
    if (!this.#takeFromInbox(closure) && this.#pool?.recall(closure) !== true) return;
    this.#forget(closure);
    this.#post({ kind: 'returned', id, fate: 'sent', cause: null });
  }

  #takeFromInbox(closure: Closure): boolean {
    const at = this.#inbox.indexOf(closure);
    if (at === -1) return false;
    this.#inbox.splice(at, 1);
    return true;
  }

  #sendProgress(closure: Closure): void {
    const id = this.#ids.get(closure.id);
    const values = this.#progress.get(closure)?.takeAll() ?? [];
    if (id !== undefined && values.length > 0) this.#post({ kind: 'progress', id, values });
  }

  #forget(closure: Closure): number | undefined {
    this.#progress.delete(closure);
    const id = this.#ids.get(closure.id);
    this.#ids.delete(closure.id);
    if (id !== undefined) this.#closures.delete(id);
    return id;
  }

  // ---------------------------------------------------------------- to the coordinator

  /** The stop message, whose requester names this worker and host. */
  #here(stop: StopMessage): StopMessage {
    const { job, task } = this.#options;
    return {
      ...stop,
      requester: { ...stop.requester, worker: `${job}:${task}`, host: hostname() },
    };
  }

  #sendStatus(): void {
    const status = this.#status();
    const text = JSON.stringify(status);
    if (text === this.#lastStatus) return;
    this.#lastStatus = text;
    this.#post({ kind: 'status', status });
    const serves = status.phase === 'ready' || status.capacity > 0;
    if (this.#isServing || !serves) return;
    this.#isServing = true;
    this.#listener.onServing();
  }

  #status(): NodeStatus {
    const pool = this.#pool;
    if (pool === undefined) {
      const phase = this.#kept === undefined ? 'starting' : 'ready';
      return { phase, capacity: 0, restarts: 0, stuck: 0 };
    }
    const { tasks } = pool.report();
    const isExplained = ({ ready, cause }: TaskReadiness): boolean => !ready && cause !== undefined;
    const blocking = tasks.find(isExplained) ?? tasks.find(({ ready }) => !ready);
    const { workers, functions } = pool;
    return {
      // Data sets that the pool has not taken yet make its threads busy in a moment.
      phase: blocking?.phase ?? (this.hasTagged() ? 'building-dataset' : 'ready'),
      ...(blocking?.cause !== undefined && { cause: blocking.cause }),
      capacity: tasks.filter(({ ready }) => ready).length,
      ...(functions !== undefined && { functions: [...functions] }),
      restarts: workers.reduce((sum, { restarts }) => sum + restarts, 0),
      stuck: workers.filter(({ state }) => state === 'stuck').length,
      resources: this.#received,
    };
  }

  #flush(): void {
    this.#isFlushDue = false;
    const results = this.#results;
    if (results.length === 0) return;
    this.#results = [];
    this.#resultsBytes = 0;
    this.#post({ kind: 'results', results });
  }

  #post(message: FromNode): void {
    if (this.#isOver) return;
    this.channel.post(...pack(message));
    if (message.kind === 'results' || message.kind === 'stop')
      this.#lastResults = this.channel.posted;
  }
}

/** A copy of the arguments: a view would keep the whole message in memory. */
const unpackResource = (packed: PackedResource): Resource =>
  packed.kind === 'dataset' ? { ...packed, args: Buffer.from(packed.args) } : packed;
