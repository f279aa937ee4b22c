/**
 * The node's end of a session, the time in which one node serves one run: runs the calls that
 * the coordinator (session.ts) sends on threads of this process, and sends their results back.
 * The threads are a WorkerPool, as in the local strategy; this class is the pool's host.
 *
 * The threads begin and end with the session, so that a run finds no state of an earlier run.
 */

import { availableParallelism, hostname } from 'node:os';
import { answerOf, ClusterVariables } from '../../cluster/variables/cluster-variables.ts';
import { type StopMessage, StopPeer } from '../../coordinator/stop-relay.ts';
import { UnavailableError } from '../../errors/errors.ts';
import type { TaskReadiness } from '../../errors/phases.ts';
import type { NativeArray } from '../../native/binding.ts';
import { Call, type Work } from '../../pool/queue/call.ts';
import type { Outcome } from '../../pool/queue/call-queue.ts';
import type { DrawAnswer, EngineEvent } from '../../pool/queue/strategy.ts';
import { clusterCoordinator } from '../../pool/worker/coordinator-of-cluster.ts';
import {
  type Fate,
  type Resource,
  type WorkerResource,
  wasStarted,
} from '../../pool/worker/messages.ts';
import type { ModuleHooks } from '../../pool/worker/module.ts';
import { RecentValues } from '../../pool/worker/recent-values.ts';
import type { Answer, Definition, Request, VariableSource } from '../../pool/worker/variables.ts';
import type { Recycle } from '../../pool/workers/channel.ts';
import { coalesced } from '../../pool/workers/feeding.ts';
import { WorkerPool } from '../../pool/workers/worker-pool.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { toPost, transferListOf } from '../../values/to-thread.ts';
import { checkLength, ReliableChannel } from '../wire/reliable-channel.ts';
import {
  type FromNode,
  LONG_BYTES,
  type NodeStatus,
  type PackedResource,
  pack,
  type SentCall,
  type SentResult,
  type ServerRequest,
  unpackToNode,
} from '../wire/session-messages.ts';
import { NodeHost, SharedDatasets, type SharedDatasetsSettings } from './node-host.ts';

// The calls that a coordinator has sent to this node and that have not ended here; and their results, until they are sent.

/** How many reported values of a function wait while the channel is full; and LONG_BYTES. */
const MOST_PROGRESS = 4_096;

class ReceivedCalls {
  /** By the coordinator's ids. (`Call.id` here is another.) */
  readonly #calls = new Map<number, Call>();
  readonly #ids = new Map<number, number>();
  /** What functions have reported and was not sent. */
  readonly #progress = new Map<Call, RecentValues>();
  #results: SentResult[] = [];
  #resultsBytes = 0;

  get size(): number {
    return this.#calls.size;
  }

  /** @returns undefined if the node has the call already */
  receive({ id, attempt, name, bytes, context, ...of }: SentCall): Call | undefined {
    if (this.#calls.has(id)) return undefined;
    const args = toPost(bytes);
    const transfer = transferListOf([args]);
    const { perWorker, hasVariables = false, isKeyed = false, runTimeoutMs } = of;
    const own = { bytes: args.length, perWorker, hasVariables, transfer, isKeyed };
    const work: Work = { name, args, ...own };
    const before = { attempts: attempt - 1, contextText: context };
    const options = { retries: Number.POSITIVE_INFINITY, runTimeoutMs, ...before };
    const call = new Call(work, undefined, undefined, options);
    call.become({ at: 'in-flight' }); // for the coordinator, which has the queue
    this.#calls.set(id, call);
    this.#ids.set(call.id, id);
    return call;
  }

  get(id: number): Call | undefined {
    return this.#calls.get(id);
  }

  /** The coordinator's id of a call here; undefined: it has ended. */
  idOf(call: number): number | undefined {
    return this.#ids.get(call);
  }

  /** The call has ended, or goes back. @returns the coordinator's id; undefined: it went before */
  remove(call: Call): number | undefined {
    this.#progress.delete(call);
    const id = this.#ids.get(call.id);
    this.#ids.delete(call.id);
    if (id !== undefined) this.#calls.delete(id);
    return id;
  }

  /** While the channel is full, values wait here, where the newest are kept. */
  addProgress(call: Call, values: readonly Uint8Array[]): void {
    let waiting = this.#progress.get(call);
    if (waiting === undefined) {
      waiting = new RecentValues(MOST_PROGRESS, LONG_BYTES);
      this.#progress.set(call, waiting);
    }
    for (const value of values) waiting.add(value);
  }

  takeProgress(call: Call): Uint8Array[] {
    return this.#progress.get(call)?.takeAll() ?? [];
  }

  /** @returns whether the results are to be sent now, not in a moment */
  addResult(result: SentResult): boolean {
    this.#results.push(result);
    this.#resultsBytes += result.bytes.byteLength;
    return this.#resultsBytes > LONG_BYTES;
  }

  get hasResults(): boolean {
    return this.#results.length > 0;
  }

  takeResults(): SentResult[] {
    const results = this.#results;
    this.#results = [];
    this.#resultsBytes = 0;
    return results;
  }
}

// The variables of a run at a node: those that threads use, and those that a parameter server keeps.

class NodeVariables implements VariableSource {
  readonly id: undefined;
  readonly definitions: Definition[] = [];
  readonly #post: (id: number, request: Request) => void;
  readonly #replies = new Map<number, (answer: Answer) => void>();
  #lastId = 0;
  /** An encoded error: the session is over. */
  #over: Uint8Array | undefined;

  /** @param post - sends an operation to the coordinator */
  constructor(post: (id: number, request: Request) => void) {
    this.#post = post;
  }

  answer(request: Request, reply: (answer: Answer) => void): void {
    if (this.#over !== undefined) {
      reply([undefined, this.#over]);
      return;
    }
    this.#lastId += 1;
    this.#replies.set(this.#lastId, reply);
    this.#post(this.#lastId, request);
  }

  /** The coordinator's answer. An array is copied: the message's is a view of a longer buffer. */
  answered(id: number, [value, record]: Answer): void {
    const own = ArrayBuffer.isView(value) ? (value as NativeArray).slice() : value;
    this.#replies.get(id)?.(record === undefined ? [own] : [own, record]);
    this.#replies.delete(id);
  }

  /** The session is over: no answer will come. */
  close(): void {
    this.#over = encode(
      new UnavailableError("The session with the variables' coordinator is over"),
    ).bytes;
    for (const reply of this.#replies.values()) reply([undefined, this.#over]);
    this.#replies.clear();
  }
}

/** What a parameter server answers, which keeps `variables` for one session. */
const keptAnswer = (variables: ClusterVariables, request: ServerRequest): Answer =>
  answerOf(() => {
    const [operation, name, call, , value] = request;
    if (operation === 'define') return void variables.define(name, value);
    if (operation === 'forget') return variables.forget(call);
    return variables.perform(request as Request);
  });

/** How a function has ended on a node; 'lost': with its thread. */
export type CallOutcome = 'ok' | 'error' | 'cancelled' | 'lost';

/** `phase`: a RefusalPhase of the coordinator, which this version may not know. */
export type NodeEvent =
  /** `job` and `task`: of the session that goes on. */
  | { event: 'connected'; cluster: string; job?: string; task?: number }
  | { event: 'disconnected'; cause: string; remedy: string }
  | { event: 'forbidden'; cause: string; remedy: string }
  /** The server takes no message as long as this node's hello. */
  | { event: 'too-long'; cause: string; remedy: string }
  /** The coordinator is older than one that this node has served, by its token. */
  | { event: 'ignored'; cause: string; remedy: string }
  | { event: 'refused'; phase: string; why: string }
  | { event: 'session'; job: string; task: number; run: string }
  /** What the node is for has begun: a thread has the module, or a ps its variables. */
  | { event: 'serving'; job: string; task: number; run: string }
  | { event: 'thread-lost'; why: string }
  /** A thread is blocked in native code and cannot be ended; another takes its place. */
  | { event: 'thread-stuck' }
  /** The module file is another: no thread starts any more, and the session leaves. */
  | { event: 'module-changed' }
  | { event: 'session-over'; why: string };

/** What all sessions of a node have. */
export type ServingOptions = ModuleHooks & {
  module: URL;
  job: 'worker' | 'ps';
  /** How many threads run functions. */
  slots: number;
  /** When a thread is replaced. */
  recycle?: Recycle | undefined;
  /** Called when a function has ended here. */
  onCall?: (name: string, outcome: CallOutcome) => void;
  /** Called with each event, for operators; not again with an event equal to the last. */
  onEvent(event: NodeEvent): void;
};

export type NodeSessionOptions = ServingOptions & {
  run: string;
  task: number;
  cancelGraceMs: number;
  retries: number;
  /** How long a stop record of this node is provisional if the coordinator does not answer. */
  unavailableAfterMs: number;
  maxFrameBytes: number;
  /** Whether the module file is that of the coordinator. */
  hasModule: () => boolean;
};

/** The node. */
export interface NodeSessionListener {
  /** Publishes a frame. @returns false if there is no connection */
  send(frame: Uint8Array): boolean;
  /** Tells all processes of the run of a stop, before the coordinator has decided on the record. */
  broadcast(stop: StopMessage): void;
  tell(event: NodeEvent): void;
  /** A message was malformed: the coordinator's, or one that another client sent in its name. */
  onMalformed(): void;
  /** The coordinator has ended the session. */
  onEnd(why: string): void;
  /** No worker thread will live here. The message that tells the coordinator is on its way. */
  onFailed(error: Error): void;
}

/**
 * How far a session is; it only goes on. 'leaving': it takes no more calls; 'without-module': no
 * thread starts any more, either; 'failed': no worker thread lives here.
 */
const LIFE = ['starting', 'serving', 'leaving', 'without-module', 'failed', 'over'] as const;
type Life = (typeof LIFE)[number];

export class NodeSession extends NodeHost {
  readonly stops: StopPeer;
  readonly channel: ReliableChannel;
  override readonly variables: NodeVariables;
  readonly #options: NodeSessionOptions;
  /** Of each pool of the session. */
  readonly #settings: SharedDatasetsSettings;
  readonly #listener: NodeSessionListener;
  #life: Life = 'starting';
  /** Whether no worker thread lived here. */
  #hasFailed = false;
  /** Undefined on a parameter server, and until the coordinator has sent its variables. */
  #pool: WorkerPool | undefined;
  readonly calls: ReceivedCalls = new ReceivedCalls();
  /** How long a coordinator may be away that comes back to its calls here. */
  readonly unavailableAfterMs: number;
  /** Undefined on a worker. */
  readonly #kept: ClusterVariables | undefined;
  /** Of a node with several slots: the thread that has the data sets of all. */
  readonly #datasets: SharedDatasets | undefined;
  /** The data sets and iterators that have come, and that the program has. */
  made: Resource[] = [];
  /** How many have come. */
  #received = 0;
  /** The number of the last message that has results or a stop, as `channel.posted` counts. */
  #lastResults = 0;
  #lastStatus = '';
  readonly #flushSoon: () => void = coalesced(queueMicrotask, () => this.#flush());
  readonly #sendStatusSoon: () => void = coalesced(queueMicrotask, () => this.#sendStatus());

  constructor(options: NodeSessionOptions, listener: NodeSessionListener) {
    const { job, task, slots, maxFrameBytes, cancelGraceMs, retries } = options;
    const { module, setup, teardown } = options;
    const coordinator = clusterCoordinator('cluster', { job, index: task });
    const variables = new NodeVariables((id, request) => {
      const [operation, name, call, ...rest] = request;
      const known = this.calls.idOf(call) ?? 0;
      this.#post({ kind: 'operate', id, request: [operation, name, known, ...rest] });
    });
    super({ coordinator, cancelGraceMs, retries, variables });
    this.variables = variables;
    this.#options = options;
    this.unavailableAfterMs = options.unavailableAfterMs;
    this.#listener = listener;
    const hasModule = (): boolean => this.#hasModule();
    this.#settings = { module, setup, teardown, task: { job, index: task }, hasModule };
    this.channel = new ReliableChannel(
      { maxFrameBytes },
      {
        send: (frame) => listener.send(frame),
        onMessage: (bytes, attached) => this.#receive(bytes, attached),
        onImpostor: () => listener.onMalformed(),
      },
    );
    /** The stop message, whose requester names this worker and host. */
    const here = (stop: StopMessage): StopMessage => ({
      ...stop,
      requester: { ...stop.requester, worker: `${job}:${task}`, host: hostname() },
    });
    this.stops = new StopPeer(coordinator, {
      send: (stop) => this.#post({ kind: 'stop', stop: here(stop) }),
      broadcast: (stop) => listener.broadcast(here(stop)),
      answerMs: options.unavailableAfterMs,
    });
    if (job === 'ps') this.#kept = new ClusterVariables(this);
    else if (slots > 1) this.#datasets = new SharedDatasets(this, this.#settings);
    this.changed();
  }

  /** @returns false if it is there, or beyond */
  #advance(life: Life): boolean {
    if (LIFE.indexOf(life) <= LIFE.indexOf(this.#life)) return false;
    this.#life = life;
    return true;
  }

  /** False from the first time on that the module file is another: what runs may end, and no more. */
  #hasModule(): boolean {
    if (this.#life === 'without-module') return false;
    if (this.#options.hasModule()) return true;
    if (this.#life === 'over' || this.#life === 'failed') return false;
    this.#listener.tell({ event: 'module-changed' });
    this.leave('without-module');
    return false;
  }

  /** Starts the threads: their setup functions find the variables that the coordinator has sent. */
  #startPool(): void {
    for (const resource of this.made) this.#datasets?.add(resource);
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

  /** Whether the coordinator has not acknowledged all results and stops of this node. */
  get hasResults(): boolean {
    return this.calls.hasResults || this.channel.acknowledgedMessages < this.#lastResults;
  }

  /** Whether the session is over because no worker thread lived here. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Asks the coordinator to send no more calls, and to end the session when all are done. */
  leave(life: 'leaving' | 'without-module' = 'leaving'): void {
    if (!this.#advance(life)) return;
    this.#pool?.leave();
    this.#post({ kind: 'leaving' });
  }

  /** Ends the threads. Resolves when they have ended, or are given up as stuck. */
  async close(): Promise<void> {
    if (!this.#advance('over')) return;
    this.channel.close();
    this.stops.end(); // a join here would wait for the answer without end
    this.variables.close();
    await Promise.all([this.#pool?.close(), this.#datasets?.close()]);
    this.coordinator.requestStop();
  }

  // ---------------------------------------------------------------- host of the pool

  get resources(): readonly WorkerResource[] {
    return this.made.map((resource) => this.#toMake(resource));
  }

  #toMake(resource: Resource): WorkerResource {
    return this.#datasets === undefined ? resource : { kind: 'shared', id: resource.id };
  }

  draw(request: Uint8Array, answer: DrawAnswer): void {
    this.#datasets?.draw(request, answer);
  }

  ended(call: Call, { state, value }: Outcome, microseconds = 0): void {
    let result: Pick<SentResult, 'state' | 'bytes'>;
    try {
      // A result comes packed from its thread: a call whose arguments are bytes gets bytes.
      if (state === 'ready') result = { state, bytes: checkLength(value as Uint8Array) };
      else result = { state: 'failed', bytes: checkLength(encode(value).bytes) };
    } catch (error) {
      result = { state: 'failed', bytes: encode(error).bytes };
    }
    this.#sendProgress(call);
    const id = this.calls.remove(call);
    if (id === undefined) return;
    const wasCancelled = call.decided !== undefined;
    const how = state === 'ready' ? 'ok' : 'error';
    this.#options.onCall?.(call.work.name, wasCancelled ? 'cancelled' : how);
    this.stops.sendStops();
    if (this.calls.addResult({ id, ...result, us: microseconds })) this.#flush();
    else this.#flushSoon();
  }

  override changed(): void {
    this.#sendStatusSoon();
  }

  /** The coordinator decides, and cancels the call. */
  override overdue(call: Call): void {
    const id = this.calls.idOf(call.id);
    if (id !== undefined) this.#post({ kind: 'overdue', id });
  }

  override progressed(call: Call, values: readonly Uint8Array[]): void {
    this.calls.addProgress(call, values);
    if (!this.channel.isFull) this.#sendProgress(call);
  }

  returned(call: Call, fate: Fate, cause?: unknown): void {
    const id = this.calls.idOf(call.id);
    if (id === undefined) return;
    // Without a cause the pool has recalled the call from a busy thread because another thread
    // is idle: the call goes to the head of the line, where the idle thread takes it. If its
    // arguments were moved to the busy thread, they are lost here, and the call goes back to the
    // coordinator, which has a copy.
    if (cause === undefined && call.decided === undefined && !call.isMoved) {
      this.putBack(call);
      return;
    }
    if (wasStarted(fate)) {
      const outcome = call.decided === undefined ? 'lost' : 'cancelled';
      this.#options.onCall?.(call.work.name, outcome);
    }
    this.calls.remove(call);
    this.#flush();
    this.#sendStatus(); // before 'returned', or the coordinator would send the call here again
    const why = cause === undefined ? null : encode(cause).bytes;
    this.#post({ kind: 'returned', id, fate, cause: why });
  }

  tell(...[event, , error]: EngineEvent): void {
    if (event === 'workerLost') {
      // Each thread counts, also if the next one dies in the same way.
      this.#options.onEvent({ event: 'thread-lost', why: error.message });
      this.#post({ kind: 'thread', cause: encode(error).bytes });
    } else if (event === 'workerStuck') {
      this.#options.onEvent({ event: 'thread-stuck' });
      this.#post({ kind: 'thread', cause: null });
    }
  }

  failed(error: Error): void {
    this.#hasFailed ||= this.#advance('failed');
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
        for (const sent of message.calls) {
          const call = this.calls.receive(sent);
          if (call !== undefined) this.enqueue(call);
        }
        this.#pool?.wake();
        return;
      case 'cancel':
        this.#cancel(message.id, decode(message.reason).value, message.replace);
        return;
      case 'recall':
        for (const id of message.ids) this.#recall(id);
        return;
      case 'resource': {
        const resource = unpackResource(message.resource);
        this.#received += 1;
        this.made.push(resource);
        if (this.#pool !== undefined) this.#datasets?.add(resource);
        this.#pool?.prepare(this.#toMake(resource));
        this.changed();
        return;
      }
      case 'forget': {
        const { id } = message;
        this.made = this.made.filter((each) => each.id !== id);
        this.#datasets?.forget(id);
        this.#pool?.forget(id);
        return;
      }
      case 'operate': {
        const { id, request } = message;
        if (this.#kept === undefined) return;
        const answer = keptAnswer(this.#kept, request);
        if (id !== 0) this.#post({ kind: 'answer', id, answer });
        return;
      }
      case 'defined': {
        const { definitions } = message;
        this.variables.definitions.push(...definitions);
        this.#datasets?.define(...definitions);
        if (this.#pool !== undefined) this.#pool.define(...definitions);
        else if (this.#kept === undefined && this.#life !== 'over') this.#startPool();
        return;
      }
      case 'answer':
        this.variables.answered(message.id, message.answer);
        return;
      case 'stopped':
        this.stops.answer(message.stop);
        return;
      case 'leave':
        this.#pool?.leave();
        return;
      case 'end':
        this.stops.sendStops();
        this.#listener.onEnd(
          message.isClosed
            ? 'the program has closed its coordinator; waiting for the next'
            : 'the coordinator has ended the session',
        );
    }
  }

  #cancel(id: number, reason: unknown, replace: boolean): void {
    const call = this.calls.get(id);
    if (call === undefined) return; // the call has ended; its result is on its way
    call.become({ at: 'in-flight', outcome: { state: 'cancelled', value: reason } });
    if (!this.withdraw(call)) this.#pool?.cancel(call, { reason, replace });
    else this.returned(call, 'sent');
  }

  /** A call that can be neither taken from the line nor recalled has begun, and goes on. */
  #recall(id: number): void {
    const call = this.calls.get(id);
    if (call === undefined) return;
    if (!this.withdraw(call) && this.#pool?.recall(call) !== true) return;
    this.calls.remove(call);
    this.#post({ kind: 'returned', id, fate: 'sent', cause: null });
  }

  // ---------------------------------------------------------------- to the coordinator

  #sendProgress(call: Call): void {
    const id = this.calls.idOf(call.id);
    const values = this.calls.takeProgress(call);
    if (id !== undefined && values.length > 0) this.#post({ kind: 'progress', id, values });
  }

  #sendStatus(): void {
    const status = this.#status();
    const text = JSON.stringify(status);
    if (text === this.#lastStatus) return;
    this.#lastStatus = text;
    this.#post({ kind: 'status', status });
    const serves = status.phase === 'ready' || status.capacity > 0;
    if (!serves || !this.#advance('serving')) return;
    const { job, task, run } = this.#options;
    this.#listener.tell({ event: 'serving', job, task, run });
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
      phase: blocking?.phase ?? 'ready',
      ...(blocking?.cause !== undefined && { cause: blocking.cause }),
      capacity: tasks.filter(({ ready }) => ready).length,
      ...(functions !== undefined && { functions: [...functions] }),
      restarts: workers.reduce((sum, { restarts }) => sum + restarts, 0),
      stuck: workers.filter(({ state }) => state === 'stuck').length,
      resources: this.#received,
    };
  }

  #flush(): void {
    const results = this.calls.takeResults();
    if (results.length > 0) this.#post({ kind: 'results', results });
  }

  #post(message: FromNode): void {
    if (this.#life === 'over') return;
    this.channel.post(...pack(message));
    if (message.kind === 'results' || message.kind === 'stop')
      this.#lastResults = this.channel.posted;
  }
}

/** A copy of the arguments: a view would keep the whole message in memory. */
const unpackResource = (packed: PackedResource): Resource =>
  packed.kind === 'dataset' ? { ...packed, args: Buffer.from(packed.args) } : packed;
