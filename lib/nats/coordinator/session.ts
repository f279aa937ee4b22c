/**
 * The coordinator's end of a session, the time in which one node serves one run. The node's end is
 * node-session.ts.
 *
 * While a session is away, all of its calls are given up (node-calls.ts). The channel stays as it is,
 * so the session goes on with the node's next sign of life, without a new welcome.
 */

import { attachmentOf } from '../../coordinator/attachment.ts';
import type { Call } from '../../pool/queue/call.ts';
import { freeOf, type InLine } from '../../pool/queue/call-lines.ts';
import type { ClusterHost } from '../../pool/queue/strategy.ts';
import type { Resource } from '../../pool/worker/messages.ts';
import { activityOf } from '../../pool/workers/slot-report.ts';
import { encode } from '../../record/encoded-error.ts';
import { passedAsBytes } from '../../values/packed-arguments.ts';
import type { NodeInfo, Welcome } from '../wire/control-messages.ts';
import {
  checkLength,
  ReliableChannel,
  type ReliableChannelListener,
  type ReliableChannelOptions,
} from '../wire/reliable-channel.ts';
import {
  type FromNode,
  type NodeStatus,
  pack,
  type ToNode,
  unpackFromNode,
} from '../wire/session-messages.ts';
import { Contact } from './contact.ts';
import { NodeCalls } from './node-calls.ts';

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

export interface SessionListener {
  /** A message has come; undefined: one that no node of ours sends. */
  onMessage(session: Session, message: FromNode | undefined): void;
  /** Whether another node of the run, which is there, has this export. */
  isElsewhere(name: string): boolean;
}

export class Session {
  readonly id: string;
  readonly info: NodeInfo;
  readonly task: number;
  readonly channel: ReliableChannel;
  readonly contact: Contact = new Contact();
  readonly calls: NodeCalls;
  readonly #host: ClusterHost;
  readonly #listener: SessionListener;
  #life: Life = { is: 'welcomed' };
  #status: NodeStatus = { phase: 'starting', capacity: 0, restarts: 0, stuck: 0 };
  /** The ids of the resources (data sets) that the node has; and how many were sent to it. */
  readonly #prepared = new Set<number>();
  #resources = 0;

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
    this.calls = new NodeCalls(host, {
      index: task,
      post: (message) => this.post(message),
      fits: (placement, used) => placement.fits(task, freeOf(info.resources ?? {}, used)),
      lacks: (item) => this.#lacks(item),
    });
    this.channel = new ReliableChannel(channel, {
      send: channel.send,
      onMessage: (bytes, attached) => this.#receive(bytes, attached),
      onImpostor: () => listener.onMessage(this, undefined),
    });
    this.#show(true);
  }

  /** The message that begins the session at the node. */
  welcome(from: Omit<Welcome, 'kind' | 'session' | 'task' | 'cancelGraceMs' | 'retries'>): object {
    const { cancelGraceMs, retries } = this.#host;
    return { kind: 'welcome', ...from, session: this.id, task: this.task, cancelGraceMs, retries };
  }

  /** Whether `explain()` shows the node. */
  #show(isShown: boolean): void {
    const { job, pid, host } = this.info;
    const { workers } = attachmentOf(this.#host.coordinator);
    if (!isShown) workers.delete(this);
    else {
      const who = `${job}:${this.task} (process ${pid} on ${host})`;
      workers.set(this, {
        describe: () =>
          `${who}${activityOf(this.calls.first(this.status.capacity), this.calls.running)}`,
      });
    }
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

  get status(): NodeStatus {
    return this.#status;
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

  /** Nodes with the same definition may have different module files. */
  #lacks(item: InLine): boolean {
    const { functions } = this.status;
    const { work } = item as Call;
    if (functions === undefined) return false;
    return !functions.includes(work.name) && this.#listener.isElsewhere(work.name);
  }

  isRunning(id: number): boolean {
    return this.calls.isRunning(id);
  }

  post(message: ToNode): void {
    this.channel.post(...pack(message));
  }

  giveUp(cause: Error, lives: boolean): void {
    this.#show(false);
    this.calls.giveUp(cause, lives);
  }

  takeBack(): void {
    this.#show(true);
    this.calls.takeBack();
  }

  close(): void {
    this.note('over');
    this.channel.close();
    this.#show(false);
  }

  #receive(bytes: Uint8Array, attached: readonly Uint8Array[]): void {
    const message = unpackFromNode(bytes, attached);
    // The node's first message. Frames that were sent before the node had subscribed are lost: ask
    // what it has, and send the missing ones.
    if (this.note('confirmed')) this.channel.resume();
    if (message?.kind === 'status') this.#status = message.status;
    if (message?.kind === 'failed') this.#status = { ...this.#status, capacity: 0 };
    this.#listener.onMessage(this, message);
  }
}
