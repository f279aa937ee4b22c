/**
 * The coordinator's end of a session, the time in which one node serves one run: how the node does
 * (`Contact`), the calls that it has (`NodeCalls`), and what is sent to it. The node's end is
 * node-session.ts.
 *
 * 1. A call in `#sent` is the node's until the node has sent its result, or gives it back.
 * 2. A call in `#givenUp`, all of which are in `#sent`, was returned to the queue while the
 *    node was away: the node may run it, and so may another worker. The first result counts.
 * 3. A suspect (`Call.isSuspect`) is alone in `#sent`: it may kill the node's process, and with it
 *    whatever runs on any thread there.
 * 4. While a session is away, all of its calls are given up. The channel stays as it is, so the
 *    session goes on with the node's next sign of life, without a new welcome.
 */

import { attachmentOf } from '../../coordinator/attachment.ts';
import { CancelledError } from '../../errors/errors.ts';
import type { NodeHealth } from '../../errors/phases.ts';
import type { Call, Work } from '../../pool/queue/call.ts';
import { freeOf, type InLine, type Placement } from '../../pool/queue/call-lines.ts';
import type { Outcome } from '../../pool/queue/call-queue.ts';
import type { Cancellation, ClusterHost, RunningCall } from '../../pool/queue/strategy.ts';
import { argumentError, type Fate, type Resource } from '../../pool/worker/messages.ts';
import {
  activityOf,
  inOrderOfReturn,
  type Sent,
  SentCalls,
  type Taker,
} from '../../pool/workers/feeding.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { packValue, passedAsBytes, unpackValue } from '../../values/value.ts';
import type { NodeInfo } from '../wire/control-messages.ts';
import {
  checkLength,
  ReliableChannel,
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

/** Nobody listens at the node's subject. */
export type Absence = {
  /** For how long, by probes. */
  readonly ms: number;
  readonly at: number;
  /** It is no node that may still have to reconnect, as we had to. */
  readonly isSure: boolean;
};

/** Whether one node replies to probes (probes.ts), and how it does. */
export class Contact {
  /** How many probes in a row had no reply. */
  missed = 0;
  absence: Absence | undefined;
  /** When (performance.now()) the node has given the last sign of life. */
  heardAt: number = performance.now();
  /**
   * When the last probe was sent that had a reply: the node lived then. What is heard of it may have
   * been on its way for long.
   */
  livedAt: number = performance.now();
  /** What the last reply to a probe has told. */
  health: NodeHealth | undefined;
  /** When the last probe was sent; 'out': it is on its way. */
  #probe: number | 'out' = 0;

  get isThere(): boolean {
    return this.missed === 0 && this.absence === undefined;
  }

  heard(): void {
    this.heardAt = performance.now();
    this.reconnected();
  }

  /** Our own connection is back: what was missed over the last one does not count. */
  reconnected(): void {
    this.missed = 0;
    this.absence = undefined;
  }

  /** @returns whether a probe is to be sent now, which counts as sent */
  probe(now: number, everyMs: number): boolean {
    if (this.#probe === 'out' || now - this.#probe < everyMs) return false;
    this.#probe = 'out';
    return true;
  }

  /** The probe that was sent then has its reply, or will have none. */
  probed(sentAt: number): void {
    this.#probe = sentAt;
  }

  replied(health: NodeHealth, sentAt: number): void {
    this.livedAt = sentAt;
    this.health = health;
  }

  /** @returns how many probes in a row had no reply */
  missedOne(): number {
    this.missed += 1;
    return this.missed;
  }

  /** A probe has found nobody. `stepMs`: as long as one probe may count. */
  foundNobody(stepMs: number, isSure: (ms: number) => boolean): Absence {
    const now = performance.now();
    const before = this.absence ?? { ms: 0, at: now, isSure: false };
    const ms = before.ms + Math.min(now - before.at, stepMs);
    this.absence = { ms, at: now, isSure: before.isSure || isSure(ms) };
    return this.absence;
  }
}

/** The calls that one node has. */
export class NodeCalls implements Taker {
  readonly index: number;
  readonly #host: ClusterHost;
  readonly #session: Session;
  readonly #sent = new SentCalls();
  /** By call: as what it was returned to the queue. */
  readonly #givenUp = new Map<Call, Fate>();
  #batch: SentCall[] = [];
  #batchBytes = 0;
  /** How many have ended here. */
  completed = 0;
  /** Calls were recalled, and none has been returned yet. */
  isRecalling = false;
  /**
   * By call id: when (performance.now()) each call that the node may have to end by force was
   * cancelled. The first entry is the oldest.
   */
  readonly #cancelled = new Map<number, number>();

  constructor(host: ClusterHost, session: Session) {
    this.#host = host;
    this.#session = session;
    this.index = session.task;
  }

  get running(): number {
    return this.#sent.size;
  }

  /** How long all are expected to run, in microseconds. */
  get expectedUs(): number {
    return this.#sent.expectedUs;
  }

  /** Whether one is a suspect, beside which nothing may run. */
  get hasSuspect(): boolean {
    return this.#sent.first?.call.isSuspect === true;
  }

  /** Whether one may not begin again. */
  get hasUnrepeatable(): boolean {
    return this.#sent.newestFirst().some(({ call }) => call.retries === 0);
  }

  /** When the oldest call that was cancelled and has not ended was cancelled; or undefined. */
  get cancelledAt(): number | undefined {
    return this.#cancelled.values().next().value;
  }

  get hasGivenUp(): boolean {
    return this.#givenUp.size > 0;
  }

  /** Whether the node has nothing any more that anybody waits for. */
  get isForgotten(): boolean {
    return [...this.#givenUp.keys()].every(({ life }) => life.at === 'out');
  }

  abilities(): (placement: Placement) => boolean {
    const { task, info } = this.#session;
    const used = this.#sent.newestFirst().map(({ call }) => call.placement);
    const free = freeOf(info.resources ?? {}, used);
    return (placement) => placement.fits(task, free);
  }

  lacks(item: InLine): boolean {
    return this.#session.lacks(item as Call);
  }

  /** Those that so many threads of the node take first. */
  first(threads: number): RunningCall[] {
    const first = this.#sent.newestFirst().toReversed().slice(0, threads);
    return first.map(({ call, sentAt }) => ({
      name: call.work.name,
      attempt: call.attempts + 1,
      startedAt: new Date(sentAt),
    }));
  }

  /** Whether the call of this id runs here, and has not been settled by another worker. */
  isRunning(id: number): boolean {
    const call = this.#sent.get({ id })?.call;
    if (call === undefined || call.life.at === 'out') return false;
    return call.decided === undefined;
  }

  /** Sends a call with the next `flush`. Fails it if its arguments cannot be packed. */
  add(call: Call, work: Work, expectedUs: number): void {
    let bytes: Uint8Array;
    try {
      bytes = checkLength(passedAsBytes(work.args));
    } catch (error) {
      this.#host.ended(call, {
        state: 'failed',
        value: argumentError(error, work.name, work.args as readonly unknown[], packValue),
      });
      return;
    }
    // The node may have it still, from before it was given up: the node then goes on with that.
    this.#sent.remove(call.id);
    this.#givenUp.delete(call);
    this.#sent.add({ call, expectedUs, sentAt: Date.now() });
    this.#batch.push({
      id: call.id,
      attempt: call.attempts + 1,
      name: work.name,
      bytes,
      ...(work.perWorker !== undefined && { perWorker: work.perWorker }),
      ...(call.context !== undefined && { context: call.context }),
      ...(work.hasVariables && { hasVariables: true }),
      ...(call.runTimeoutMs !== undefined && { runTimeoutMs: call.runTimeoutMs }),
      ...(work.isKeyed === true && { isKeyed: true }),
    });
    this.#batchBytes += bytes.byteLength;
    if (this.#batchBytes > LONG_BYTES) this.flush();
  }

  flush(): void {
    if (this.#batch.length === 0) return;
    this.#session.post({ kind: 'run', calls: this.#batch });
    this.#batch = [];
    this.#batchBytes = 0;
  }

  /** @returns false if the node does not have the call */
  cancel(call: Call, { reason, replace }: Cancellation): boolean {
    const { id } = call;
    if (this.#sent.get(call) === undefined) return false;
    this.flush(); // the call may still be in the batch
    this.#session.post({ kind: 'cancel', id, reason: encode(reason).bytes, replace });
    if (replace && !this.#cancelled.has(id)) this.#cancelled.set(id, performance.now());
    return true;
  }

  /**
   * Asks back all calls, or those of the last `count` that other nodes may run. The node returns
   * those that it has not started.
   */
  recall(count?: number): void {
    const all = this.#sent.newestFirst();
    const movable = (sent: Sent): boolean => sent.call.placement === undefined;
    const asked = count === undefined ? all : all.slice(0, count).filter(movable);
    if (asked.length === 0) return;
    this.isRecalling = true;
    this.#session.post({ kind: 'recall', ids: asked.map(({ call }) => call.id) });
  }

  /**
   * Returns all calls to the queue, in their old order, as the node counts as lost. Each may have
   * been running, those that were sent in advance, too: a thread takes several, and another thread
   * later ones. `lives`: the node has ended what it ran itself, so none has killed it.
   */
  giveUp(cause: Error, lives: boolean): void {
    this.#cancelled.clear();
    const fateOf = (): Fate => (lives ? 'ended' : 'running');
    for (const { call, fate } of inOrderOfReturn(this.#sent, fateOf)) {
      if (this.#givenUp.has(call)) continue;
      this.#givenUp.set(call, fate);
      this.#host.returned(call, fate, cause);
    }
  }

  /**
   * The node is back. What is still queued goes on there; what another worker has meanwhile is
   * recalled if the node has not started it; what has settled is cancelled.
   */
  takeBack(): void {
    if (this.#givenUp.size === 0) return;
    for (const call of this.#host.reclaim(this.#givenUp)) this.#givenUp.delete(call);
    const elsewhere: number[] = [];
    for (const call of this.#givenUp.keys()) {
      if (call.life.at === 'out') this.cancelDuplicate(call);
      else elsewhere.push(call.id);
    }
    if (elsewhere.length > 0) this.#session.post({ kind: 'recall', ids: elsewhere });
  }

  /** Ends the node's copy of a call that another worker has ended. */
  cancelDuplicate(call: Call): void {
    if (!this.#givenUp.has(call)) return;
    const reason = encode(new CancelledError('Another worker was first')).bytes;
    this.#session.post({ kind: 'cancel', id: call.id, reason, replace: true });
  }

  /** The node has ended a call, which `remove` has given. */
  takeResult(call: Call, result: SentResult): void {
    const outcome = outcomeOf(result);
    if (this.#givenUp.delete(call)) {
      if (this.#host.offered(call, outcome, result.us)) this.completed += 1;
      return;
    }
    this.completed += 1;
    this.#host.ended(call, outcome, result.us);
  }

  takeReturned({ id, fate, cause }: Extract<FromNode, { kind: 'returned' }>): void {
    const call = this.remove(id);
    if (call === undefined || this.#givenUp.delete(call)) return;
    this.#host.returned(call, fate, cause === null ? undefined : decode(cause).value);
  }

  /** The call of a message about an attempt; undefined: it was given up, and is another's. */
  ofAttempt({ id }: { readonly id: number }): Call | undefined {
    const call = this.#sent.get({ id })?.call;
    return call === undefined || this.#givenUp.has(call) ? undefined : call;
  }

  /** The node has the call no more. @returns undefined if it had no such call */
  remove(id: number): Call | undefined {
    this.#cancelled.delete(id);
    const sent = this.#sent.remove(id);
    if (sent !== undefined) this.isRecalling = false;
    return sent?.call;
  }
}

function outcomeOf({ state, bytes }: SentResult): Outcome {
  try {
    return state === 'ready'
      ? { state, value: unpackValue(bytes) }
      : { state, value: decode(bytes).value };
  } catch (error) {
    return { state: 'failed', value: error };
  }
}

type Present =
  /** No message of the node has come: it may not have had the welcome. */
  | { readonly is: 'welcomed' }
  /** It has never been ready. `hasFailedSetup`: no thread of it was ever set up; it goes on trying. */
  | { readonly is: 'starting'; readonly hasFailedSetup: boolean }
  | { readonly is: 'serving' }
  /** It takes no more calls. `isLetGo`: the session's end was sent to it. */
  | { readonly is: 'leaving'; readonly isLetGo: boolean };
type Life =
  | Present
  /** It counts as lost since then (performance.now()), but may come back. */
  | { readonly is: 'away'; readonly since: number; readonly before: Present }
  | { readonly is: 'over' };

/** What happens to a session. */
export type SessionEvent =
  | 'confirmed'
  | 'setup-failed'
  | 'ready'
  | 'leaving'
  | 'let-go'
  | 'away'
  | 'back'
  | 'over';

/** @returns undefined if the event changes nothing */
function after(life: Life, event: SessionEvent): Life | undefined {
  const { is } = life;
  if (is === 'over') return undefined;
  if (event === 'over') return { is: 'over' };
  if (is === 'away') return event === 'back' ? life.before : undefined;
  switch (event) {
    case 'confirmed':
      return is === 'welcomed' ? { is: 'starting', hasFailedSetup: false } : undefined;
    case 'setup-failed':
      return is === 'starting' ? { is, hasFailedSetup: true } : undefined;
    case 'ready':
      return is === 'starting' ? { is: 'serving' } : undefined;
    case 'leaving':
      return is === 'leaving' ? undefined : { is: 'leaving', isLetGo: false };
    case 'let-go':
      return is === 'leaving' && !life.isLetGo ? { is, isLetGo: true } : undefined;
    case 'away':
      return { is: 'away', since: performance.now(), before: life };
    default:
      return undefined;
  }
}

export type SessionOptions = ReliableChannelOptions & {
  /** Publishes a frame. @returns false without a connection */
  send(frame: Uint8Array): boolean;
  /** A message has come; undefined: one that no node of ours sends. */
  onMessage(message: FromNode | undefined): void;
  /** Whether another node of the run, which is there, has this export. */
  isElsewhere(name: string): boolean;
};

export class Session {
  readonly id: string;
  readonly info: NodeInfo;
  readonly task: number;
  readonly channel: ReliableChannel;
  readonly contact: Contact = new Contact();
  readonly calls: NodeCalls;
  readonly #options: SessionOptions;
  /** What `explain()` shows. */
  readonly #shown: Map<object, { describe?(): string | string[] }>;
  #life: Life = { is: 'welcomed' };
  status: NodeStatus = { phase: 'starting', capacity: 0, restarts: 0, stuck: 0 };
  /** The ids of the resources (data sets) that the node has; and how many were sent to it. */
  readonly #prepared = new Set<number>();
  #resources = 0;

  constructor(
    id: string,
    info: NodeInfo,
    task: number,
    host: ClusterHost,
    options: SessionOptions,
  ) {
    this.id = id;
    this.info = info;
    this.task = task;
    this.#options = options;
    this.calls = new NodeCalls(host, this);
    this.channel = new ReliableChannel(options, {
      send: options.send,
      onMessage: (bytes, attached) => this.#receive(bytes, attached),
      onImpostor: () => options.onMessage(undefined),
    });
    this.#shown = attachmentOf(host.coordinator).workers;
    this.#shown.set(this, this);
  }

  /** For `explain()`. */
  describe(): string {
    const { job, pid, host } = this.info;
    const activity = activityOf(this.calls.first(this.status.capacity), this.calls.running);
    return `${job}:${this.task} (process ${pid} on ${host})${activity}`;
  }

  /** @returns whether the event has changed anything */
  note(event: SessionEvent): boolean {
    const next = after(this.#life, event);
    if (next === undefined) return false;
    this.#life = next;
    return true;
  }

  /** What it is, or was before it went away. */
  get #present(): Present | undefined {
    if (this.#life.is === 'over') return undefined;
    return this.#life.is === 'away' ? this.#life.before : this.#life;
  }

  get isAway(): boolean {
    return this.#life.is === 'away';
  }

  get awaySince(): number | undefined {
    return this.#life.is === 'away' ? this.#life.since : undefined;
  }

  get isConfirmed(): boolean {
    return this.#present?.is !== 'welcomed';
  }

  get isLeaving(): boolean {
    return this.#present?.is === 'leaving';
  }

  get wasReady(): boolean {
    return this.#present?.is === 'serving' || this.isLeaving;
  }

  get hasFailedSetup(): boolean {
    return this.#present?.is === 'starting' && this.#present.hasFailedSetup;
  }

  /** The node is there: neither away, nor about to leave. */
  get isStaying(): boolean {
    return ['welcomed', 'starting', 'serving'].includes(this.#life.is);
  }

  get canTake(): boolean {
    return this.isStaying && this.contact.isThere && this.status.capacity > 0;
  }

  /**
   * Whether another node may have the task at once: nobody listens for this one any more, and it
   * has no calls, or its own host has a node that could connect.
   */
  isReplaceableBy({ host }: NodeInfo): boolean {
    const isGone = this.contact.absence?.isSure === true;
    return isGone && (this.calls.running === 0 || host === this.info.host);
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

  /** `Runner.lacks`: nodes with the same definition may have different module files. */
  lacks({ work }: Call): boolean {
    const { functions } = this.status;
    if (functions === undefined) return false;
    return !functions.includes(work.name) && this.#options.isElsewhere(work.name);
  }

  isRunning(id: number): boolean {
    return this.calls.isRunning(id);
  }

  post(message: ToNode): void {
    this.channel.post(...pack(message));
  }

  giveUp(cause: Error, lives: boolean): void {
    this.#shown.delete(this);
    this.calls.giveUp(cause, lives);
  }

  takeBack(): void {
    this.#shown.set(this, this);
    this.calls.takeBack();
  }

  close(): void {
    this.note('over');
    this.channel.close();
    this.#shown.delete(this);
  }

  #receive(bytes: Uint8Array, attached: readonly Uint8Array[]): void {
    const message = unpackFromNode(bytes, attached);
    // The node's first message. Frames that were sent before the node had subscribed are lost: ask
    // what it has, and send the missing ones.
    if (this.note('confirmed')) this.channel.resume();
    if (message?.kind === 'status') this.status = message.status;
    if (message?.kind === 'failed') this.status = { ...this.status, capacity: 0 };
    this.#options.onMessage(message);
  }
}
