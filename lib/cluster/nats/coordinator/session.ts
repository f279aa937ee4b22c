/** The coordinator's end of a node's part in a run: what was sent there, and what came back. */

import { attachmentOf } from '../../../coordinator/attachment.ts';
import { decode, encode } from '../../../record/error-record.ts';
import type { Call, Closure, ClosureOutcome } from '../../closures/closure.ts';
import type { Cancellation, StrategyHost } from '../../closures/strategy.ts';
import type { Resource } from '../../worker/protocol.ts';
import { dataCloneError, STATE } from '../../worker/protocol.ts';
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

type Sent = { closure: Closure; expectedUs: number };

export class Session {
  readonly id: string;
  readonly info: NodeInfo;
  readonly task: number;
  readonly channel: ReliableChannel;
  readonly #host: StrategyHost;
  readonly #listener: SessionListener;
  readonly #sent = new Map<number, Sent>();
  #batch: unknown[] = [];
  #batchBytes = 0;
  #expectedUs = 0;
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
    const { workers } = attachmentOf(host.coordinator);
    workers.set(this, `${job}:${task} (process ${pid} on ${machine})`);
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
    return this.#expectedUs / Math.max(1, this.status.capacity);
  }

  get canTake(): boolean {
    return !this.isLeaving && this.status.capacity > 0;
  }

  has(closure: Closure): boolean {
    return this.#sent.has(closure.id);
  }

  /** Gives it a closure, with the next `flush`. */
  add(closure: Closure, call: Call, expectedUs: number): void {
    let bytes: Uint8Array;
    try {
      bytes = checkLength(packValue(call.args));
    } catch (error) {
      this.#host.ended(closure, { state: 'failed', value: dataCloneError(error) });
      return;
    }
    this.#sent.set(closure.id, { closure, expectedUs });
    this.#expectedUs += expectedUs;
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
    const ids = [...this.#sent.keys()].slice(-count).toReversed();
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
    const all = [...this.#sent.values()];
    this.#sent.clear();
    this.#told.clear();
    this.#expectedUs = 0;
    for (const [at, { closure }] of [...all.entries()].toReversed()) {
      this.#host.returned(closure, at < this.info.slots, cause);
    }
  }

  close(): void {
    this.channel.close();
    attachmentOf(this.#host.coordinator).workers.delete(this);
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
    const sent = this.#sent.get(id);
    if (sent === undefined) return undefined;
    this.#sent.delete(id);
    this.#told.delete(id);
    this.#expectedUs = this.#sent.size === 0 ? 0 : this.#expectedUs - sent.expectedUs;
    return sent;
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
