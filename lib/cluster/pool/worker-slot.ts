/**
 * One place for a worker, in which one lives after the other: what was sent to it, what it
 * has answered, and what became of it.
 *
 * 1. A closure that was sent and not answered is in `#sent`, in the order in which the
 *    worker takes them; each has a claim of `words`, which nobody else has meanwhile.
 * 2. Whether a closure was started is what its claim says (protocol.ts): it cannot be taken
 *    back and run, too. A process shares no words: it is sent one at a time, and what was
 *    sent to it counts as started.
 * 3. A process gets arguments as bytes, and gives its results so: one that cannot be read
 *    spoils no message. A thread's result that cannot be read may be any's that was started:
 *    the worker is ended, and what it had is run again; whoever is run again announces its
 *    result, and fails if that cannot be read.
 * 4. What a worker says that is gone, or was given up, is not heard.
 */

import { hostname } from 'node:os';
import type { TransferListItem } from 'node:worker_threads';
import { messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import { CancelledError } from '../../errors/errors.ts';
import { localRemedy, type TaskPhase } from '../../errors/phases.ts';
import type { TaskReadiness } from '../../errors/readiness-report.ts';
import { decode, encode } from '../../record/error-record.ts';
import type { Call, Closure, ClosureOutcome } from '../closures/closure.ts';
import type { Cancellation, StrategyHost, WorkerInfo } from '../closures/strategy.ts';
import type { Resource } from '../worker/protocol.ts';
import {
  CANCELLED,
  CLAIMS,
  dataCloneError,
  FROM_WORKER,
  RESULT_LENGTH,
  RUN_LENGTH,
  STATE,
  TO_WORKER,
} from '../worker/protocol.ts';
import type { StopMessage } from '../worker/stop-relay.ts';
import { packValue, unpackValue } from '../worker/value.ts';
import {
  type Isolation,
  type Listener,
  startProcess,
  startThread,
  type WorkerChannel,
  type WorkerName,
} from './channel.ts';

/** A thread that has not ended so long after it was told to is blocked in native code. */
const STUCK_AFTER_MS = 1_000;

type Sent = { closure: Closure; claim: number; expectedUs: number };

export interface SlotListener {
  /** It can take closures, or more of them. */
  onFree(slot: WorkerSlot): void;
  onFunctions(names: string[]): void;
  /** The module cannot be imported. */
  onImportFailed(slot: WorkerSlot, error: unknown): void;
  /** `wasKilled`: by us. What it had has gone back. */
  onGone(slot: WorkerSlot, cause: Error, wasKilled: boolean): void;
  /** A process was stopped. */
  onStop(message: StopMessage): void;
  onResult(slot: WorkerSlot, name: string, us: number): void;
}

const isPacked = ({ work }: Closure): boolean =>
  work.kind === 'call' && work.args instanceof Uint8Array;

export class WorkerSlot {
  readonly index: number;
  readonly #name: WorkerName;
  readonly #host: StrategyHost;
  readonly #listener: SlotListener;
  readonly #start: (listener: Listener) => WorkerChannel;
  #channel: WorkerChannel | undefined;
  #sent = new Map<number, Sent>();
  #freeClaims: number[] = [];
  /** What is being prepared, before anything else. */
  readonly #preparing = new Set<number>();
  #batch: unknown[] = [];
  #transfers: TransferListItem[] = [];
  #expectedUs = 0;
  /** It has imported the module. */
  isLoaded = false;
  #phase: TaskPhase = 'starting';
  #since = new Date();
  #cause: unknown;
  /** Of the last worker that was here. Never 0, which for process.kill() is everybody. */
  #pid = Number.NaN;
  /** Whose result comes next, and how long it took. */
  #announced: { id: number; us: number } | undefined;
  completed = 0;
  restarts = 0;
  /** Ended by us: its death says nothing about it. */
  #wasKilled: Error | undefined;
  readonly #graceTimers = new Map<number, Timer>();
  #stuckTimer: Timer | undefined;
  #isReferenced = true;
  /** Threads that cannot be ended. */
  readonly stuck: { info: WorkerInfo; channel: WorkerChannel }[] = [];

  constructor(
    index: number,
    module: URL,
    isolation: Isolation,
    host: StrategyHost,
    listener: SlotListener,
    name: WorkerName = { job: 'worker', index },
  ) {
    this.index = index;
    this.#host = host;
    this.#listener = listener;
    this.#name = name;
    this.#start =
      isolation === 'thread'
        ? (own) => startThread(host.coordinator, module, name, own)
        : (own) => startProcess(module, name, own);
  }

  /** @throws what starting a thread or a process throws */
  start(): void {
    this.isLoaded = false;
    this.#wasKilled = undefined;
    this.#announced = undefined;
    this.#freeClaims = Array.from({ length: CLAIMS }, (_, claim) => CLAIMS - 1 - claim);
    this.#enter('starting');
    let isOurs = true;
    const channel = this.#start({
      onMessage: (message) => {
        if (isOurs && this.#channel === channel) this.#receive(message);
      },
      onUnreadable: (error) => isOurs && this.#channel === channel && this.#onUnreadable(error),
      onGone: (cause) => {
        isOurs = false;
        this.#onGone(channel, cause);
      },
    });
    this.#channel = channel;
    this.#pid = channel.pid;
    const { job, index } = this.#name;
    // Not registered as a thread: a join would wait for it, and it lives as long as the cluster.
    const { workers } = attachmentOf(this.#host.coordinator);
    workers.set(this, `${job}:${index} (${channel.place})`);
    channel.setReferenced(this.#isReferenced);
  }

  get isAlive(): boolean {
    return this.#channel !== undefined;
  }

  /** It has nothing to do, and can take something. */
  get isIdle(): boolean {
    return this.isReady && this.#sent.size === 0;
  }

  get isReady(): boolean {
    return this.isLoaded && this.#preparing.size === 0 && this.#wasKilled === undefined;
  }

  /** How long what it has is expected to take. */
  get expectedUs(): number {
    return this.#expectedUs;
  }

  get running(): number {
    return this.#sent.size;
  }

  /** Whether more can wait at the worker than what it runs. */
  get canQueue(): boolean {
    return this.#channel?.isShared === true && this.#freeClaims.length > 0;
  }

  /** Gives it a closure, with the next `flush`. */
  add(closure: Closure, call: Call, expectedUs: number): void {
    const channel = this.#channel as WorkerChannel;
    const { name, perWorker, transfer } = call;
    let { args } = call;
    try {
      if (!channel.isShared) args = packValue(args);
    } catch (error) {
      const value = dataCloneError(error); // a port, for example
      this.#host.ended(closure, { state: 'failed', value });
      return;
    }
    const claim = this.#freeClaims.pop() as number;
    this.#sent.set(closure.id, { closure, claim, expectedUs });
    this.#expectedUs += expectedUs;
    Atomics.store(channel.words, claim, closure.id);
    this.#batch.push(closure.id, claim, closure.attempts + 1, name, args, perWorker);
    if (transfer.length === 0 || !channel.isShared) return;
    closure.isMoved = true;
    this.#transfers.push(...transfer);
  }

  /** Has it make what it needs, before it takes closures. */
  prepare(closure: Closure, resource: Resource): void {
    this.#preparing.add(closure.id);
    this.#enter('building-dataset');
    try {
      const hasToBePacked = resource.kind === 'dataset' && this.#channel?.isShared === false;
      const sent = hasToBePacked ? { ...resource, args: packValue(resource.args) } : resource;
      this.#channel?.post([TO_WORKER.prepare, closure.id, sent]);
    } catch (error) {
      // It cannot be sent, and its users are to know: or the worker would wait for it for ever.
      const broken: Resource = { kind: 'broken', id: resource.id, record: encode(error).bytes };
      this.#post([TO_WORKER.prepare, closure.id, broken]);
    }
  }

  /** Sends what was added. */
  flush(): void {
    const batch = this.#batch;
    if (batch.length === 0) return;
    const transfers = this.#transfers;
    this.#batch = [];
    this.#transfers = [];
    try {
      this.#channel?.post([TO_WORKER.run, ...batch], transfers);
    } catch (error) {
      const value = dataCloneError(error);
      // It cannot be sent at all: its function has failed.
      for (let at = 0; at < batch.length; at += RUN_LENGTH) {
        const sent = this.#forget(batch[at] as number);
        if (sent !== undefined) this.#host.ended(sent.closure, { state: 'failed', value });
      }
    }
  }

  /** Whether it was not started, and now never will be. */
  recall(closure: Closure): boolean {
    const sent = this.#sent.get(closure.id);
    const channel = this.#channel;
    if (sent === undefined || channel === undefined || !channel.isShared) return false;
    const { id } = closure;
    if (Atomics.compareExchange(channel.words, sent.claim, id, 0) !== id) return false;
    this.#forget(id);
    return true;
  }

  /** Takes back what was not started, the last first; `few`: at most so many. */
  takeBack(few: number): Closure[] {
    const back: Closure[] = [];
    for (const { closure } of [...this.#sent.values()].toReversed()) {
      if (back.length === few) break;
      // Of what came packed, who sent it has a copy.
      const isOnlyHere = closure.isMoved && !isPacked(closure);
      if (!isOnlyHere && this.recall(closure)) back.push(closure);
    }
    return back;
  }

  /** Asks a closure to end. False: it is not here. */
  cancel(closure: Closure, { reason, replace }: Cancellation): boolean {
    const sent = this.#sent.get(closure.id);
    if (sent === undefined) return false;
    if (this.recall(closure)) {
      this.#host.returned(closure, false);
      return true;
    }
    const channel = this.#channel as WorkerChannel;
    Atomics.store(channel.words, CANCELLED, closure.id);
    this.#post([TO_WORKER.cancel, closure.id, encode(reason).bytes]);
    if (replace && !this.#graceTimers.has(closure.id)) {
      const { cancelGraceMs } = this.#host;
      const timer = new Timer(cancelGraceMs, () => {
        this.kill(new CancelledError(`A function did not end within ${cancelGraceMs} ms`));
      });
      this.#graceTimers.set(closure.id, timer);
    }
    return true;
  }

  /** Ends the worker by force; `onGone` follows, or it is abandoned as stuck. */
  kill(cause: Error): void {
    const channel = this.#channel;
    if (channel === undefined || this.#wasKilled !== undefined) return;
    this.#wasKilled = cause;
    this.#enter('stopping');
    channel.kill();
    this.#stuckTimer = new Timer(STUCK_AFTER_MS, () => this.#abandon(channel, cause));
  }

  setReferenced(referenced: boolean): void {
    this.#isReferenced = referenced;
    this.#channel?.setReferenced(referenced);
  }

  post(message: unknown[]): void {
    this.#post(message);
  }

  get info(): WorkerInfo {
    let state: WorkerInfo['state'] = 'lost';
    if (this.#channel !== undefined) {
      if (!this.isLoaded || this.#preparing.size > 0) state = 'starting';
      else state = this.#sent.size > 0 ? 'busy' : 'idle';
    }
    const { completed, restarts } = this;
    const pid = this.#pid;
    const running = this.#sent.size;
    const { job, index: task } = this.#name;
    return { job, task, state, host: hostname(), pid, running, completed, restarts };
  }

  get readiness(): TaskReadiness {
    const { job, index: task } = this.#name;
    const phase = this.isReady ? 'ready' : this.#phase;
    const ready = this.isReady;
    const report: TaskReadiness = { job, task, host: hostname(), ready, phase, since: this.#since };
    if (this.#channel !== undefined) report.pid = this.#pid;
    if (!ready && this.#cause !== undefined) {
      report.cause = messageOf(this.#cause);
      report.remedy = localRemedy(this.#phase);
    }
    return report;
  }

  #enter(phase: TaskPhase, cause?: unknown): void {
    this.#phase = phase;
    this.#cause = cause ?? this.#cause;
    this.#since = new Date();
    this.#host.changed();
  }

  #post(message: unknown[]): void {
    try {
      this.#channel?.post(message);
    } catch {
      // It is ending; `onGone` follows.
    }
  }

  #forget(id: number): Sent | undefined {
    const sent = this.#sent.get(id);
    if (sent === undefined) return undefined;
    this.#sent.delete(id);
    this.#expectedUs = this.#sent.size === 0 ? 0 : this.#expectedUs - sent.expectedUs;
    this.#freeClaims.push(sent.claim);
    this.#graceTimers.get(id)?.clear();
    this.#graceTimers.delete(id);
    return sent;
  }

  #receive(message: unknown[]): void {
    switch (message[0]) {
      case FROM_WORKER.announcing:
        this.#announced = { id: message[1] as number, us: message[2] as number };
        return;
      case FROM_WORKER.results:
        this.#announced = undefined;
        for (let at = 1; at < message.length; at += RESULT_LENGTH) this.#takeResult(message, at);
        this.#listener.onFree(this);
        return;
      case FROM_WORKER.ready:
        this.isLoaded = true;
        this.#cause = undefined;
        this.#listener.onFunctions(message[1] as string[]);
        this.#host.prepare(this.index);
        this.#listener.onFree(this); // what it has to make comes before it is ready
        if (this.#preparing.size === 0) this.#enter('ready');
        return;
      case FROM_WORKER.failed: {
        const { value } = decode(message[1] as Uint8Array);
        this.#enter('import-failed', value);
        this.#listener.onImportFailed(this, value);
        return;
      }
      case FROM_WORKER.prepared:
        this.#preparing.delete(message[1] as number);
        if (this.#preparing.size === 0) this.#enter('ready');
        this.#listener.onFree(this);
        return;
      case FROM_WORKER.stop:
        this.#listener.onStop(message[1] as StopMessage);
    }
  }

  #takeResult(message: unknown[], at: number): void {
    const sent = this.#forget(message[at] as number);
    if (sent === undefined) return;
    const { closure } = sent;
    this.completed += 1;
    if (closure.work.kind === 'call') {
      this.#listener.onResult(this, closure.work.name, message[at + 3] as number);
    }
    const outcome = this.#outcomeOf(message[at + 1] as number, message[at + 2]);
    this.#host.ended(closure, outcome, message[at + 3] as number);
  }

  #outcomeOf(state: number, value: unknown): ClosureOutcome {
    if (state !== STATE.ready) return { state: 'failed', value: decode(value as Uint8Array).value };
    if (this.#channel?.isShared !== false) return { state: 'ready', value };
    try {
      return { state: 'ready', value: unpackValue(value as Uint8Array) };
    } catch (error) {
      return { state: 'failed', value: error };
    }
  }

  #onUnreadable(error: unknown): boolean {
    if (this.#announced === undefined) return false;
    const { id, us } = this.#announced;
    const why = new DOMException(
      `A result cannot be read here: ${messageOf(error)}`,
      'DataCloneError',
    );
    this.#receive([FROM_WORKER.results, id, STATE.failed, encode(why).bytes, us]);
    return true;
  }

  #onGone(channel: WorkerChannel, cause: Error): void {
    const stuck = this.stuck.findIndex((each) => each.channel === channel);
    if (stuck !== -1) {
      this.stuck.splice(stuck, 1); // it came back from native code, and ended
      this.#host.changed();
    }
    if (this.#channel !== channel) return;
    this.#lose(this.#wasKilled ?? cause);
  }

  #abandon(channel: WorkerChannel, cause: Error): void {
    if (this.#channel !== channel) return;
    this.stuck.push({ info: { ...this.info, state: 'stuck', running: 0 }, channel });
    channel.setReferenced(false);
    this.#lose(cause);
  }

  /** What was sent goes back, in the order in which it was in line. */
  #lose(cause: Error): void {
    const channel = this.#channel as WorkerChannel;
    const wasKilled = this.#wasKilled !== undefined;
    this.#channel = undefined;
    attachmentOf(this.#host.coordinator).workers.delete(this);
    this.isLoaded = false;
    this.#stuckTimer?.clear();
    this.#preparing.clear();
    this.#batch = [];
    this.#transfers = [];
    this.#enter('lost', cause);
    for (const { closure, claim } of [...this.#sent.values()].toReversed()) {
      const wasStarted = channel.isShared
        ? Atomics.load(channel.words, claim) !== closure.id
        : true;
      this.#forget(closure.id);
      this.#host.returned(closure, wasStarted, cause);
    }
    this.#listener.onGone(this, cause, wasKilled);
  }
}
