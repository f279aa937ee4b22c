/** The coordinator's end of a node's part in a run: what was sent there, and what came back. */

import { Attachment } from '../../../coordinator/attachment.ts';
import { describedLink } from '../../../coordinator/links.ts';
import { decode, encode } from '../../../record/error-record.ts';
import type { Call, Closure, ClosureOutcome } from '../../closures/closure.ts';
import type { Cancellation, StrategyHost } from '../../closures/strategy.ts';
import { type Sent, SentClosures } from '../../pool/sent-closures.ts';
import type { Resource } from '../../worker/protocol.ts';
import { argumentError, STATE } from '../../worker/protocol.ts';
import type { StopMessage } from '../../worker/stop-relay.ts';
import { packValue, unpackValue } from '../../worker/value.ts';
import { type NodeInfo } from '../wire/control-messages.ts';
import { checkLength, ReliableChannel } from '../wire/reliable-channel.ts';
import {
  type FromNode,
  LONG_BYTES,
  type NodeStatus,
  pack,
  RESULT_LENGTH,
  type ToNode,
  unpackFromNode,
} from '../wire/session-messages.ts';

export interface SessionListener {
  /** It can take closures, or more of them; or it cannot any more. */
  onStatus(session: Session, status: NodeStatus): void;
  onFree(session: Session): void;
  onResult(name: string, us: number): void;
  onStop(session: Session, stop: StopMessage): void;
  onFailed(session: Session, error: unknown): void;
  onMalformed(session: Session): void;
}

export class Session {
  readonly id: string;
  readonly info: NodeInfo;
  readonly task: number;
  readonly channel: ReliableChannel;
  readonly #host: StrategyHost;
  readonly #listener: SessionListener;
  /** What `explain()` of the coordinator says of it. */
  readonly #mention: Disposable;
  readonly #sent = new SentClosures();
  #batch: unknown[] = [];
  #batchBytes = 0;
  status: NodeStatus = { phase: 'starting', capacity: 0, restarts: 0, stuck: 0 };
  /** So many resources it was told of. */
  #resources = 0;
  /** The node has answered. */
  isConfirmed = false;
  isLeaving = false;
  /** It was told that it can go. */
  isLetGo = false;
  completed = 0;
  /** Probes without an answer, in a row. */
  missed = 0;
  /** Its task says so. */
  isSilent = false;
  /** Nobody listens there, since then. */
  absentSince: number | undefined;
  heardAt: number = performance.now();
  isProbed = false;
  probedAt = 0;
  /** What is asked back, until it has come. */
  isRecalling = false;
  /** When that was told to end, and its worker to be replaced if it does not. */
  readonly #told = new Map<number, number>();

  constructor(
    id: string,
    info: NodeInfo,
    task: number,
    host: StrategyHost,
    channel: { maxFrameBytes: number; send(frame: Uint8Array): boolean },
    listener: SessionListener,
  ) {
    this.id = id;
    this.info = info;
    this.task = task;
    this.#host = host;
    this.#listener = listener;
    this.channel = new ReliableChannel({
      ...channel,
      onMessage: (bytes) => this.#receive(bytes),
      onImpostor: () => listener.onMalformed(this),
    });
    const { job, pid, host: machine } = info;
    this.#mention = describedLink(
      Attachment.behind(host.coordinator) as Attachment,
      `the worker ${job}:${task} (process ${pid} on ${machine})`,
      () => {},
    );
  }

  /** It is there. */
  heard(): void {
    this.missed = 0;
    this.absentSince = undefined;
    this.heardAt = performance.now();
  }

  get running(): number {
    return this.#sent.size;
  }

  /** How long what it has is expected to take, by each of its threads. */
  get expectedUs(): number {
    return this.#sent.expectedUs / Math.max(1, this.status.capacity);
  }

  get canTake(): boolean {
    return !this.isLeaving && this.status.capacity > 0;
  }

  has(closure: Closure): boolean {
    return this.#sent.get(closure) !== undefined;
  }

  /** Gives it a closure, with the next `flush`. */
  add(closure: Closure, call: Call, expectedUs: number): void {
    let bytes: Uint8Array;
    try {
      bytes = checkLength(packValue(call.args));
    } catch (error) {
      this.#host.ended(closure, {
        state: 'failed',
        value: argumentError(error, call.name, call.args, packValue),
      });
      return;
    }
    this.#sent.add({ closure, expectedUs });
    this.#batch.push(closure.id, closure.attempts + 1, call.name, bytes, call.perWorker);
    this.#batchBytes += bytes.byteLength;
    if (this.#batchBytes > LONG_BYTES) this.flush();
  }

  flush(): void {
    if (this.#batch.length === 0) return;
    this.post(['run', ...this.#batch]);
    this.#batch = [];
    this.#batchBytes = 0;
  }

  /** Its status is of after the last resource that it was told of. */
  get isPrepared(): boolean {
    return (this.status.resources ?? Number.POSITIVE_INFINITY) >= this.#resources;
  }

  prepare(resource: Resource): void {
    this.#resources += 1;
    try {
      const packed =
        resource.kind === 'dataset'
          ? { ...resource, args: checkLength(packValue(resource.args)) }
          : resource;
      this.post(['resource', packed]);
    } catch (error) {
      // It cannot be sent, and its users are to know.
      this.post(['resource', { kind: 'broken', id: resource.id, record: encode(error).bytes }]);
    }
  }

  cancel(closure: Closure, { reason, replace }: Cancellation): void {
    this.flush(); // it may not have been sent yet
    this.post(['cancel', closure.id, encode(reason).bytes, replace]);
    if (replace && !this.#told.has(closure.id)) this.#told.set(closure.id, performance.now());
  }

  /** The oldest that was told to end, and has not; undefined: there is none. */
  get toldAt(): number | undefined {
    return this.#told.values().next().value;
  }

  /** Asks for the last of what it has not started. */
  recall(count: number): void {
    this.isRecalling = true;
    const newest = this.#sent.newestFirst().slice(0, count);
    const ids = newest.map(({ closure }) => closure.id);
    this.post(['recall', ...ids]);
  }

  post(message: ToNode): void {
    this.channel.post(pack(message));
  }

  /**
   * It is over: what was sent goes back, in the order in which it was in line. As many as the
   * node has threads may have been started.
   */
  lose(cause: Error): void {
    this.close();
    const all = this.#sent.takeAll();
    this.#told.clear();
    for (const [at, { closure }] of all.entries()) {
      this.#host.returned(closure, all.length - at <= this.info.slots, cause);
    }
  }

  close(): void {
    this.channel.close();
    this.#mention[Symbol.dispose]();
  }

  #receive(bytes: Uint8Array): void {
    const message = unpackFromNode(bytes);
    // What was sent before it listened was heard by nobody.
    if (!this.isConfirmed) this.channel.resume();
    this.isConfirmed = true;
    if (message === undefined) this.#listener.onMalformed(this);
    else this.#onMessage(message);
  }

  #onMessage(message: FromNode): void {
    switch (message[0]) {
      case 'results':
        for (let at = 1; at < message.length; at += RESULT_LENGTH) this.#takeResult(message, at);
        this.#listener.onFree(this);
        return;
      case 'returned': {
        const [, id, wasStarted, cause] = message;
        const sent = this.#forget(id);
        if (sent === undefined) return;
        this.isRecalling = false;
        this.#host.returned(
          sent.closure,
          wasStarted,
          cause === null ? undefined : decode(cause).value,
        );
        this.#listener.onFree(this);
        return;
      }
      case 'status':
        this.status = message[1];
        this.#listener.onStatus(this, this.status);
        return;
      case 'stop':
        this.#listener.onStop(this, message[1]);
        return;
      case 'leaving':
        this.isLeaving = true;
        if (this.running > 0) this.recall(this.running); // what it has not started need not wait
        this.#listener.onStatus(this, this.status);
        return;
      case 'failed':
        this.#listener.onFailed(this, decode(message[1]).value);
    }
  }

  #takeResult(message: unknown[], at: number): void {
    const [id, state, bytes, us] = message.slice(at, at + RESULT_LENGTH) as [
      number,
      number,
      Uint8Array,
      number,
    ];
    const sent = this.#forget(id);
    if (sent === undefined) return;
    this.completed += 1;
    this.isRecalling = false;
    const { closure } = sent;
    if (closure.work.kind === 'call') this.#listener.onResult(closure.work.name, us);
    this.#host.ended(closure, outcomeOf(state, bytes));
  }

  #forget(id: number): Sent | undefined {
    this.#told.delete(id);
    return this.#sent.remove(id);
  }
}

function outcomeOf(state: number, bytes: Uint8Array): ClosureOutcome {
  try {
    if (state !== STATE.ready) return { state: 'failed', value: decode(bytes).value };
    return { state: 'ready', value: unpackValue(bytes) };
  } catch (error) {
    return { state: 'failed', value: error };
  }
}
