/**
 * The coordinator's end of a session, the time in which one node serves one run: sends closures
 * to the node, and takes their results. The node's end is node-session.ts.
 *
 * 1. A closure in `#sent` is the node's until the node has sent its result, or gives it back.
 * 2. A closure in `#givenUp`, all of which are in `#sent`, was returned to the queue while the
 *    node was away: the node may run it, and so may another worker. The first result counts.
 * 3. A suspect (`Closure.isSuspect`) is alone in `#sent`: it may kill the node's process, and with it
 *    whatever runs on any thread there.
 * 4. While the session is away (`isAway`), all of `#sent` is given up. The channel stays as it
 *    is, so the session goes on with the node's next sign of life, without a new welcome.
 */

import { attachmentOf } from '../../coordinator/attachment.ts';
import type { StopMessage } from '../../coordinator/stop-relay.ts';
import { CancelledError } from '../../errors/errors.ts';
import type { NodeHealth } from '../../errors/readiness-report.ts';
import type { Call, Closure, ClosureOutcome } from '../../pool/queue/closure.ts';
import type { InLine } from '../../pool/queue/lines/closure-lines.ts';
import { freeOf, type Placement } from '../../pool/queue/lines/placement.ts';
import type { Cancellation, ClusterHost, RunningCall } from '../../pool/queue/strategy.ts';
import type { Fate, Resource } from '../../pool/worker/protocol.ts';
import { argumentError } from '../../pool/worker/protocol.ts';
import { inOrderOfReturn, type Sent, SentClosures } from '../../pool/workers/sent-closures.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { passedAsBytes } from '../../values/packed-arguments.ts';
import { packValue, unpackValue } from '../../values/value.ts';
import type { ParameterServers } from '../variables/parameter-servers.ts';
import type { NodeInfo, Welcome } from '../wire/control-messages.ts';
import {
  checkLength,
  ReliableChannel,
  type ReliableChannelListener,
  type ReliableChannelOptions,
} from '../wire/reliable-channel.ts';
import {
  type FromNode,
  LONG_BYTES,
  type NodeStatus,
  pack,
  type SentCall,
  type SentResult,
  type ToNode,
  unpackFromNode,
} from '../wire/session-messages.ts';

export interface SessionListener {
  /** The node's status has changed, or the node wants to leave. */
  onStatus(session: Session, status: NodeStatus): void;
  /** The node has fewer closures than before. */
  onFree(session: Session): void;
  onResult(closure: Closure, name: string, us: number): void;
  onStop(session: Session, stop: StopMessage): void;
  /** A thread of the node has died of `error`; undefined: it is blocked and cannot be ended. */
  onThread(session: Session, error: unknown): void;
  /** No thread of the node was ever set up. The node starts them again. */
  onSetupFailed(session: Session, error: unknown): void;
  /** The node has reported that none of its worker threads lives. */
  onFailed(session: Session, error: unknown): void;
  readonly variables: Pick<ParameterServers, 'operate' | 'answered'>;
  onMalformed(session: Session): void;
  /** Whether another node of the run, which is there, has this export. */
  isElsewhere(name: string): boolean;
}

export class Session {
  readonly id: string;
  readonly info: NodeInfo;
  readonly task: number;
  readonly channel: ReliableChannel;
  readonly #host: ClusterHost;
  readonly #listener: SessionListener;
  readonly #sent = new SentClosures();
  /** By closure: as what it was returned to the queue. */
  readonly #givenUp = new Map<Closure, Fate>();
  /** The ids of the resources that were sent to the node. */
  readonly #prepared = new Set<number>();
  #batch: SentCall[] = [];
  #batchBytes = 0;
  status: NodeStatus = { phase: 'starting', capacity: 0, restarts: 0, stuck: 0 };
  /** How many resources (data sets) were sent to the node. */
  #resources = 0;
  /** A message of the node has come, so the node has had the welcome. */
  isConfirmed = false;
  isLeaving = false;
  /** The session's end was sent to the node, which is leaving. */
  isLetGo = false;
  completed = 0;
  /** The host was told that the worker has started. */
  hasStarted = false;
  /** The node counts as lost, but may come back: its task is free, and its closures are queued. */
  isAway = false;
  /** Since when (performance.now()) the session is away. */
  awaySince = 0;
  /** The node has been ready for functions. */
  wasReady = false;
  /** The node has said that no thread of it was ever set up; it is kept when one is later. */
  hasFailedSetup = false;
  /** Probes without a reply, in a row. */
  missed = 0;
  /** The task's phase is 'silent'. */
  isSilent = false;
  /** Nobody has listened at the node's subject for ABSENT_MS (probes.ts). */
  isAbsent = false;
  /** For how long nobody has listened at the node's subject, by probes; undefined: somebody does. */
  absent: { ms: number; at: number } | undefined;
  heardAt: number = performance.now();
  /** What the last answer to a probe has told. */
  health: NodeHealth | undefined;
  /** A probe is on its way. */
  isProbed = false;
  probedAt = 0;
  /** Closures were recalled, and none has been returned yet. */
  isRecalling = false;
  /**
   * By closure id: when (performance.now()) each closure that the node may have to end by force was
   * cancelled. The first entry is the oldest.
   */
  readonly #cancelled = new Map<number, number>();

  constructor(
    id: string,
    info: NodeInfo,
    task: number,
    host: ClusterHost,
    channel: ReliableChannelOptions & Pick<ReliableChannelListener, 'send'>,
    listener: SessionListener,
  ) {
    this.id = id;
    this.info = info;
    this.task = task;
    this.#host = host;
    this.#listener = listener;
    this.channel = new ReliableChannel(channel, {
      send: channel.send,
      onMessage: (bytes, attached) => this.#receive(bytes, attached),
      onImpostor: () => listener.onMalformed(this),
    });
    this.#show();
  }

  /** The message that begins the session at the node. */
  welcome(from: Omit<Welcome, 'kind' | 'session' | 'task' | 'cancelGraceMs' | 'retries'>): object {
    const { cancelGraceMs, retries } = this.#host;
    return { kind: 'welcome', ...from, session: this.id, task: this.task, cancelGraceMs, retries };
  }

  /** Shows the node in `explain()`. */
  #show(): void {
    const { job, pid, host } = this.info;
    const { workers } = attachmentOf(this.#host.coordinator);
    workers.set(this, { describe: () => `${job}:${this.task} (process ${pid} on ${host})` });
  }

  #hide(): void {
    attachmentOf(this.#host.coordinator).workers.delete(this);
  }

  /** Called for each sign that the node is alive. */
  heard(): void {
    this.forgetMissed();
    this.heardAt = performance.now();
  }

  /**
   * Whether another node may have the task at once: nobody listens for this one any more, and it
   * has nothing to lose, or its own host has a node that could connect.
   */
  isReplaceableBy({ host }: NodeInfo): boolean {
    return this.isAbsent && (this.running === 0 || host === this.info.host);
  }

  /** Forgets the probes that were missed: the node, or our own connection, is back. */
  forgetMissed(): void {
    this.missed = 0;
    this.absent = undefined;
    this.isAbsent = false;
  }

  get running(): number {
    return this.#sent.size;
  }

  /** The closures that the node's threads take first. */
  get calls(): RunningCall[] {
    const first = this.#sent.newestFirst().toReversed().slice(0, this.status.capacity);
    return first.map(({ closure, sentAt }) => ({
      name: (closure.work as Call).name,
      attempt: closure.attempts + 1,
      startedAt: new Date(sentAt),
    }));
  }

  /** How long each thread of the node is expected to be busy with the closures that were sent. */
  get expectedUs(): number {
    return this.#sent.expectedUs / Math.max(1, this.status.capacity);
  }

  get canTake(): boolean {
    const isThere = !this.isAway && this.missed === 0 && this.absent === undefined;
    return isThere && !this.isLeaving && this.status.capacity > 0;
  }

  /** Whether it has a suspect, beside which nothing may run. */
  get hasSuspect(): boolean {
    return this.#sent.first?.closure.isSuspect === true;
  }

  has(closure: Closure): boolean {
    return this.#sent.get(closure) !== undefined;
  }

  /** Whether the closure of this id runs here, and has not been settled by another worker. */
  isRunning(id: number): boolean {
    const closure = this.#sent.get({ id })?.closure;
    if (closure === undefined || closure.place === 'out') return false;
    return closure.decided === undefined;
  }

  /** Sends a closure with the next `flush`. Fails it if its arguments cannot be packed. */
  add(closure: Closure, call: Call, expectedUs: number): void {
    let bytes: Uint8Array;
    try {
      bytes = checkLength(passedAsBytes(call.args));
    } catch (error) {
      this.#host.ended(closure, {
        state: 'failed',
        value: argumentError(error, call.name, call.args as readonly unknown[], packValue),
      });
      return;
    }
    // The node may have it still, from before it was given up: the node then goes on with that.
    this.#sent.remove(closure.id);
    this.#givenUp.delete(closure);
    this.#sent.add({ closure, expectedUs, sentAt: Date.now() });
    this.#batch.push({
      id: closure.id,
      attempt: closure.attempts + 1,
      name: call.name,
      bytes,
      ...(call.perWorker !== undefined && { perWorker: call.perWorker }),
      ...(closure.context !== undefined && { context: closure.context }),
      ...(call.hasVariables && { hasVariables: true }),
      ...(closure.runTimeoutMs !== undefined && { runTimeoutMs: closure.runTimeoutMs }),
      ...(call.isKeyed === true && { isKeyed: true }),
    });
    this.#batchBytes += bytes.byteLength;
    if (this.#batchBytes > LONG_BYTES) this.flush();
  }

  flush(): void {
    if (this.#batch.length === 0) return;
    this.post({ kind: 'run', calls: this.#batch });
    this.#batch = [];
    this.#batchBytes = 0;
  }

  /** Whether the node's status already counts the last resource that it was sent. */
  get isPrepared(): boolean {
    return (this.status.resources ?? Number.POSITIVE_INFINITY) >= this.#resources;
  }

  prepare(resource: Resource): void {
    if (this.#prepared.has(resource.id)) return; // the node was away, and has it
    this.#prepared.add(resource.id);
    this.#resources += 1;
    try {
      const packed =
        resource.kind === 'dataset'
          ? { ...resource, args: checkLength(passedAsBytes(resource.args)) }
          : resource;
      this.post({ kind: 'resource', resource: packed });
    } catch (error) {
      // The arguments cannot be packed: functions that use the data set fail with this error.
      const record = encode(error).bytes;
      this.post({ kind: 'resource', resource: { kind: 'broken', id: resource.id, record } });
    }
  }

  forget(id: number): void {
    if (this.#prepared.delete(id)) this.post({ kind: 'forget', id });
  }

  cancel(closure: Closure, { reason, replace }: Cancellation): void {
    this.flush(); // the closure may still be in the batch
    this.post({ kind: 'cancel', id: closure.id, reason: encode(reason).bytes, replace });
    if (replace && !this.#cancelled.has(closure.id))
      this.#cancelled.set(closure.id, performance.now());
  }

  /** When the oldest closure that was cancelled and has not ended was cancelled; or undefined. */
  get cancelledAt(): number | undefined {
    return this.#cancelled.values().next().value;
  }

  /** Asks back all closures; the node returns those that it has not started. */
  recallAll(): void {
    this.#recall(this.#sent.newestFirst());
  }

  /** Asks back those of the last `count` closures that other nodes may run. */
  recallSome(count: number): void {
    const newest = this.#sent.newestFirst().slice(0, count);
    this.#recall(newest.filter(({ closure }) => closure.placement === undefined));
  }

  #recall(sent: readonly Sent[]): void {
    if (sent.length === 0) return;
    this.isRecalling = true;
    this.post({ kind: 'recall', ids: sent.map(({ closure }) => closure.id) });
  }

  /** Nodes with the same definition may have different module files. */
  lacks(item: InLine): boolean {
    const { functions } = this.status;
    const { work } = item as Closure;
    if (functions === undefined || work.kind !== 'call') return false;
    return !functions.includes(work.name) && this.#listener.isElsewhere(work.name);
  }

  /** Whether the node may run closures with this placement now. */
  canRun(placement: Placement): boolean {
    const sent = this.#sent.newestFirst();
    const used = sent.map(({ closure }) => closure.placement);
    return placement.fits(this.task, freeOf(this.info.resources ?? {}, used));
  }

  post(message: ToNode): void {
    this.channel.post(...pack(message));
  }

  /**
   * Returns all closures to the queue, in their old order, as the node counts as lost. The first
   * closures, one for each thread of the node, count as running. Of those that were sent in advance
   * nobody can tell: a thread takes several, and another thread later ones.
   */
  giveUp(cause: Error): void {
    this.#hide();
    this.#cancelled.clear();
    const first = new Set(this.#sent.newestFirst().slice(-this.info.slots));
    const fateOf = (sent: Sent): Fate => (first.has(sent) ? 'running' : 'unsure');
    for (const { closure, fate } of inOrderOfReturn(this.#sent, fateOf)) {
      if (this.#givenUp.has(closure)) continue;
      this.#givenUp.set(closure, fate);
      this.#host.returned(closure, fate, cause);
    }
  }

  /**
   * The node is back. What is still queued goes on there; what another worker has meanwhile is
   * recalled if the node has not started it; what has settled is cancelled.
   */
  takeBack(): void {
    this.#show();
    if (this.#givenUp.size === 0) return;
    for (const closure of this.#host.reclaim(this.#givenUp)) this.#givenUp.delete(closure);
    const elsewhere: number[] = [];
    for (const closure of this.#givenUp.keys()) {
      if (closure.place === 'out') this.cancelDuplicate(closure);
      else elsewhere.push(closure.id);
    }
    if (elsewhere.length > 0) this.post({ kind: 'recall', ids: elsewhere });
  }

  /** Ends the node's copy of a closure that another worker has ended. */
  cancelDuplicate(closure: Closure): void {
    if (!this.#givenUp.has(closure)) return;
    const reason = new CancelledError('Another worker was first');
    this.post({ kind: 'cancel', id: closure.id, reason: encode(reason).bytes, replace: true });
  }

  get hasGivenUp(): boolean {
    return this.#givenUp.size > 0;
  }

  /** Whether the node has nothing any more that anybody waits for. */
  get isForgotten(): boolean {
    return [...this.#givenUp.keys()].every(({ place }) => place === 'out');
  }

  close(): void {
    this.channel.close();
    this.#hide();
  }

  #receive(bytes: Uint8Array, attached: readonly Uint8Array[]): void {
    const message = unpackFromNode(bytes, attached);
    // The node's first message. Frames that were sent before the node had subscribed are lost: ask
    // what it has, and send the missing ones.
    if (!this.isConfirmed) this.channel.resume();
    this.isConfirmed = true;
    if (message === undefined) this.#listener.onMalformed(this);
    else this.#onMessage(message);
  }

  #onMessage(message: FromNode): void {
    switch (message.kind) {
      case 'results':
        for (const result of message.results) this.#takeResult(result);
        this.#listener.onFree(this);
        return;
      case 'progress': {
        const closure = this.#sent.get(message)?.closure;
        // Of a closure that was given up another node reports.
        if (closure !== undefined && !this.#givenUp.has(closure)) {
          this.#host.progressed(closure, message.values);
        }
        return;
      }
      case 'returned': {
        const { id, fate, cause } = message;
        const sent = this.#forget(id);
        if (sent === undefined) return;
        this.isRecalling = false;
        if (!this.#givenUp.delete(sent.closure)) {
          const why = cause === null ? undefined : decode(cause).value;
          this.#host.returned(sent.closure, fate, why);
        }
        this.#listener.onFree(this);
        return;
      }
      case 'overdue': {
        const closure = this.#sent.get(message)?.closure;
        if (closure !== undefined && !this.#givenUp.has(closure)) this.#host.overdue(closure);
        return;
      }
      case 'status':
        this.status = message.status;
        this.#listener.onStatus(this, this.status);
        return;
      case 'stop':
        this.#listener.onStop(this, message.stop);
        return;
      case 'thread': {
        const { cause } = message;
        this.#listener.onThread(this, cause === null ? undefined : decode(cause).value);
        return;
      }
      case 'operate':
        this.#listener.variables.operate(this, message.id, message.request);
        return;
      case 'answer':
        this.#listener.variables.answered(this, message.id, message.answer);
        return;
      case 'leaving':
        this.isLeaving = true;
        // Closures that the node has not begun can begin on another node.
        this.recallAll();
        this.#listener.onStatus(this, this.status);
        return;
      case 'setup-failed':
        this.hasFailedSetup = true;
        this.#listener.onSetupFailed(this, decode(message.cause).value);
        return;
      case 'failed':
        this.#listener.onFailed(this, decode(message.cause).value);
    }
  }

  #takeResult(result: SentResult): void {
    const { us } = result;
    const sent = this.#forget(result.id);
    if (sent === undefined) return;
    this.isRecalling = false;
    const { closure } = sent;
    if (closure.work.kind === 'call') this.#listener.onResult(closure, closure.work.name, us);
    const outcome = outcomeOf(result);
    if (this.#givenUp.delete(closure)) {
      if (this.#host.offered(closure, outcome, us)) this.completed += 1;
      return;
    }
    this.completed += 1;
    this.#host.ended(closure, outcome, us);
  }

  #forget(id: number): Sent | undefined {
    this.#cancelled.delete(id);
    return this.#sent.remove(id);
  }
}

function outcomeOf({ state, bytes }: SentResult): ClosureOutcome {
  try {
    return state === 'ready'
      ? { state, value: unpackValue(bytes) }
      : { state, value: decode(bytes).value };
  } catch (error) {
    return { state: 'failed', value: error };
  }
}
