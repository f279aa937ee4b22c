/**
 * A place for one worker. When its worker dies, the slot starts another.
 *
 * 1. `#sent` holds the closures that were sent to the worker and have not ended, in the order
 *    in which the worker takes them. Each has a claim (protocol.ts) of its own.
 * 2. The claim says whether the closure was started, and whether it has ended: a closure is never
 *    recalled and run, too. A process shares no claims with us: it is sent one closure at a time,
 *    which counts as running.
 * 3. A process receives arguments and sends results as bytes, each packed by itself: a value
 *    that cannot be read fails only its own function. A thread's message that cannot be read
 *    may contain the result of any started closure: the slot ends that worker, and the worker's
 *    closures run again. A second attempt announces its result, so that it is known which
 *    function has failed if that result cannot be read.
 * 4. A suspect (`Closure.isSuspect`) is alone in `#sent`.
 * 5. Messages of a worker that is gone or was given up as stuck are ignored.
 */

import { hostname } from 'node:os';
import type { TransferListItem } from 'node:worker_threads';
import { messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import { duration } from '../../coordinator/words.ts';
import { CancelledError } from '../../errors/errors.ts';
import { localRemedy, type TaskPhase } from '../../errors/phases.ts';
import type { TaskReadiness } from '../../errors/readiness-report.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import type { Call, Closure, ClosureOutcome } from '../closures/closure.ts';
import type { Cancellation, RunningTask, StrategyHost, WorkerInfo } from '../closures/strategy.ts';
import { passedAsBytes } from '../worker/packed-arguments.ts';
import type { Fate, Resource } from '../worker/protocol.ts';
import {
  argumentError,
  CANCELLED,
  CLAIMS,
  dataCloneError,
  ENDED,
  FROM_WORKER,
  RESULT_LENGTH,
  RUN_LENGTH,
  STATE,
  TO_WORKER,
} from '../worker/protocol.ts';
import type { StopMessage } from '../worker/stop-relay.ts';
import { packValue, unpackValue } from '../worker/value.ts';
import {
  type ChannelListener,
  type Isolation,
  startProcess,
  startThread,
  type WorkerChannel,
  type WorkerName,
} from './channel.ts';
import { type Sent, SentClosures } from './sent-closures.ts';

/** A thread that has not ended this long after `terminate()` is blocked in native code. */
const STUCK_AFTER_MS = 1_000;

type SentToWorker = Sent & {
  /** The index of its claim. */
  readonly claim: number;
};

export interface SlotListener {
  /** The worker can take more closures than before. */
  onFree(slot: WorkerSlot): void;
  /** The worker has imported the module and made its data sets. */
  onReady(slot: WorkerSlot): void;
  /** The worker, a thread, is blocked in native code and cannot be ended. `onGone` follows. */
  onStuck(stuck: WorkerInfo): void;
  onFunctions(names: string[]): void;
  /** The module cannot be imported. */
  onImportFailed(slot: WorkerSlot, error: unknown): void;
  /** The worker is gone. Its closures were given to `StrategyHost.returned` before. */
  onGone(slot: WorkerSlot, death: Death): void;
  /** A process has stopped its coordinator. */
  onStop(message: StopMessage): void;
  onResult(slot: WorkerSlot, name: string, us: number): void;
}

export type Death = {
  cause: Error;
  /** Whether `kill` has ended the worker. */
  wasKilled: boolean;
  /** Whether the worker had imported the module and made its data sets. */
  wasReady: boolean;
  /** The function that the worker was running. */
  running: string | undefined;
};

const isPacked = ({ work }: Closure): boolean =>
  work.kind === 'call' && work.args instanceof Uint8Array;

export class WorkerSlot {
  readonly index: number;
  readonly #name: WorkerName;
  readonly #host: StrategyHost;
  readonly #listener: SlotListener;
  readonly #start: (listener: ChannelListener) => WorkerChannel;
  #channel: WorkerChannel | undefined;
  readonly #sent = new SentClosures<SentToWorker>();
  #freeClaims: number[] = [];
  /** The ids of the resources that the worker is making. */
  readonly #preparing = new Set<number>();
  #batch: unknown[] = [];
  #transfers: TransferListItem[] = [];
  /** The worker has imported the module. */
  isLoaded = false;
  #phase: TaskPhase = 'starting';
  #since = new Date();
  #cause: unknown;
  /**
   * The pid of the current or last worker. Never 0, with which process.kill() signals our own
   * group.
   */
  #pid = Number.NaN;
  /** The closure whose result is the next message, and how long it ran. */
  #announced: { id: number; us: number } | undefined;
  /** Date.now() when the last function ended here. */
  #endedAt = 0;
  #hasSuspect = false;
  completed = 0;
  restarts = 0;
  /** Why `kill` was called. A death by `kill` is not counted as a failure of the worker. */
  #killedFor: Error | undefined;
  readonly #graceTimers = new Map<number, Timer>();
  #stuckTimer: Timer | undefined;
  #isReferenced = true;
  /** Threads of this slot that are blocked in native code and could not be ended. */
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

  /** @throws the error of starting a thread or process */
  start(): void {
    this.isLoaded = false;
    this.#killedFor = undefined;
    this.#announced = undefined;
    this.#freeClaims = Array.from({ length: CLAIMS }, (_, claim) => CLAIMS - 1 - claim);
    this.#enter('starting');
    let isOpen = true;
    const channel = this.#start({
      onMessage: (message) => {
        if (isOpen && this.#channel === channel) this.#receive(message);
      },
      onUnreadable: (error) => isOpen && this.#channel === channel && this.#onUnreadable(error),
      onGone: (cause) => {
        isOpen = false;
        this.#onGone(channel, cause);
      },
    });
    this.#channel = channel;
    this.#pid = channel.pid;
    const { job, index } = this.#name;
    // The worker is not registered as a thread of the coordinator: else the coordinator's `join`
    // would wait for the worker, which lives until the cluster is closed.
    const { workers } = attachmentOf(this.#host.coordinator);
    workers.set(this, () => `${job}:${index} (${channel.place})${this.#activity}`);
    channel.setReferenced(this.#isReferenced);
  }

  /** What the worker runs, and for how long, for `explain()`; '' if it is idle. */
  get #activity(): string {
    const { tasks } = this;
    const running = tasks.map(
      ({ name, startedAt }) => `'${name}' for ${duration(Date.now() - startedAt.getTime())}`,
    );
    const more = this.#sent.size - tasks.length;
    if (running.length === 0) return '';
    return `: runs ${running.join(', ')}${more === 0 ? '' : `, ${more} more sent`}`;
  }

  get isAlive(): boolean {
    return this.#channel !== undefined;
  }

  get isIdle(): boolean {
    return this.isReady && this.#sent.size === 0;
  }

  get isReady(): boolean {
    return this.isLoaded && this.#preparing.size === 0 && this.#killedFor === undefined;
  }

  /** How long the closures that were sent are expected to run, in microseconds. */
  get expectedUs(): number {
    return this.#sent.expectedUs;
  }

  /** The number of closures that were sent and have not ended. */
  get running(): number {
    return this.#sent.size;
  }

  /** Whether closures can be sent in advance, while the worker runs another. */
  get canQueue(): boolean {
    if (this.#hasSuspect) return false;
    return this.#channel?.isShared === true && this.#freeClaims.length > 0;
  }

  /** Sends a closure with the next `flush`. */
  add(closure: Closure, call: Call, expectedUs: number): void {
    const channel = this.#channel as WorkerChannel;
    const { name, perWorker, transfer } = call;
    let { args } = call;
    try {
      if (!channel.isShared) args = passedAsBytes(args);
    } catch (error) {
      // structuredClone has accepted the arguments, but the packing refuses them: it refuses a
      // MessagePort, for example.
      const value = argumentError(error, name, args as readonly unknown[], packValue);
      this.#host.ended(closure, { state: 'failed', value });
      return;
    }
    const claim = this.#freeClaims.pop() as number;
    this.#sent.add({ closure, claim, expectedUs, sentAt: Date.now() });
    if (closure.isSuspect) this.#hasSuspect = true;
    Atomics.store(channel.words, claim, closure.id);
    this.#batch.push(closure.id, claim, closure.attempts + 1, name, args, perWorker);
    if (transfer.length === 0 || !channel.isShared) return;
    closure.isMoved = true;
    this.#transfers.push(...transfer);
  }

  /** Has the worker make a resource. `isReady` is false until the worker reports it as made. */
  prepare(closure: Closure, resource: Resource): void {
    this.#preparing.add(closure.id);
    this.#enter('building-dataset');
    try {
      const hasToBePacked = resource.kind === 'dataset' && this.#channel?.isShared === false;
      const sent = hasToBePacked ? { ...resource, args: passedAsBytes(resource.args) } : resource;
      this.#channel?.post([TO_WORKER.prepare, closure.id, sent]);
    } catch (error) {
      // The resource cannot be sent. Functions that use it fail with this error instead.
      const broken: Resource = { kind: 'broken', id: resource.id, record: encode(error).bytes };
      this.#post([TO_WORKER.prepare, closure.id, broken]);
    }
  }

  /** Sends the closures that were passed to `add` as one message. */
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
      // The message cannot be sent: all its functions have failed.
      for (let at = 0; at < batch.length; at += RUN_LENGTH) {
        const sent = this.#forget(batch[at] as number);
        if (sent !== undefined) this.#host.ended(sent.closure, { state: 'failed', value });
      }
    }
  }

  /** @returns whether the closure was recalled: it was here, and the worker had not started it */
  recall(closure: Closure): boolean {
    const sent = this.#sent.get(closure);
    const channel = this.#channel;
    if (sent === undefined || channel === undefined || !channel.isShared) return false;
    const { id } = closure;
    if (Atomics.compareExchange(channel.words, sent.claim, id, 0) !== id) return false;
    this.#forget(id);
    return true;
  }

  /** Recalls at most `count` closures that were not started, the last one first. */
  recallSome(count: number): Closure[] {
    const back: Closure[] = [];
    for (const { closure } of this.#sent.newestFirst()) {
      if (back.length === count) break;
      // Packed arguments came from a coordinator on NATS, which has a copy of them.
      const isOnlyHere = closure.isMoved && !isPacked(closure);
      if (!isOnlyHere && this.recall(closure)) back.push(closure);
    }
    return back;
  }

  /**
   * Asks a closure to end, or recalls it if it was not started. @returns false if it is not here
   */
  cancel(closure: Closure, { reason, replace }: Cancellation): boolean {
    if (this.#sent.get(closure) === undefined) return false;
    if (this.recall(closure)) {
      this.#host.returned(closure, 'sent');
      return true;
    }
    const channel = this.#channel as WorkerChannel;
    Atomics.store(channel.words, CANCELLED, closure.id);
    this.#post([TO_WORKER.cancel, closure.id, encode(reason).bytes]);
    if (replace && !this.#graceTimers.has(closure.id)) {
      const { cancelGraceMs } = this.#host;
      const timer = new Timer(cancelGraceMs, () => {
        const { name } = closure.work as Call;
        const text = `'${name}' was cancelled and did not end within ${cancelGraceMs} ms`;
        this.kill(new CancelledError(text));
      });
      this.#graceTimers.set(closure.id, timer);
    }
    return true;
  }

  /** Ends the worker by force. `onGone` follows, also for a thread that is stuck. */
  kill(cause: Error): void {
    const channel = this.#channel;
    if (channel === undefined || this.#killedFor !== undefined) return;
    this.#killedFor = cause;
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
    const { tasks } = this;
    return { job, task, state, host: hostname(), pid, running, completed, restarts, tasks };
  }

  /** The functions that the worker runs. */
  get tasks(): RunningTask[] {
    const isRunning = (sent: SentToWorker): boolean => this.#fateOf(sent) === 'running';
    return this.#sent
      .newestFirst()
      .filter(isRunning)
      .map(({ closure, sentAt }) => ({
        name: (closure.work as Call).name,
        attempt: closure.attempts + 1,
        startedAt: new Date(Math.max(sentAt, this.#endedAt)),
      }));
  }

  /** Whether the worker has begun the closure, and has ended it. */
  #fateOf({ closure, claim }: SentToWorker): Fate {
    const channel = this.#channel;
    if (channel?.isShared !== true) return 'running';
    const word = Atomics.load(channel.words, claim);
    if (word === closure.id) return 'sent';
    return word === ENDED ? 'ended' : 'running';
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
      // The worker is ending; `onGone` follows.
    }
  }

  #forget(id: number): SentToWorker | undefined {
    const sent = this.#sent.remove(id);
    if (sent === undefined) return undefined;
    this.#freeClaims.push(sent.claim);
    if (this.#sent.size === 0) this.#hasSuspect = false;
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
        this.#listener.onFree(this); // sends the resources to make before it is ready
        this.#checkReady();
        return;
      case FROM_WORKER.failed: {
        const { value } = decode(message[1] as Uint8Array);
        this.#enter('import-failed', value);
        this.#listener.onImportFailed(this, value);
        return;
      }
      case FROM_WORKER.prepared:
        this.#preparing.delete(message[1] as number);
        this.#checkReady();
        this.#listener.onFree(this);
        return;
      case FROM_WORKER.stop:
        this.#listener.onStop(message[1] as StopMessage);
    }
  }

  #checkReady(): void {
    if (this.#preparing.size > 0) return;
    this.#enter('ready');
    this.#listener.onReady(this);
  }

  #takeResult(message: unknown[], at: number): void {
    const sent = this.#forget(message[at] as number);
    if (sent === undefined) return;
    const { closure } = sent;
    this.completed += 1;
    this.#endedAt = Date.now();
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
      this.stuck.splice(stuck, 1); // the thread has returned from native code and ended
      this.#host.changed();
    }
    if (this.#channel !== channel) return;
    this.#lose(this.#killedFor ?? cause);
  }

  #abandon(channel: WorkerChannel, cause: Error): void {
    if (this.#channel !== channel) return;
    const info: WorkerInfo = { ...this.info, state: 'stuck', running: 0 };
    this.stuck.push({ info, channel });
    channel.setReferenced(false);
    this.#listener.onStuck(info);
    this.#lose(cause);
  }

  /** Returns all closures of the lost worker, the newest first: so they get their old order. */
  #lose(cause: Error): void {
    const wasKilled = this.#killedFor !== undefined;
    const wasReady = this.isLoaded && this.#preparing.size === 0;
    const lost = this.#sent.newestFirst().map((sent) => ({ ...sent, fate: this.#fateOf(sent) }));
    this.#channel = undefined;
    attachmentOf(this.#host.coordinator).workers.delete(this);
    this.isLoaded = false;
    this.#stuckTimer?.clear();
    this.#preparing.clear();
    this.#batch = [];
    this.#transfers = [];
    this.#enter('lost', cause);
    for (const timer of this.#graceTimers.values()) timer.clear();
    this.#graceTimers.clear();
    // All closures are removed before any is returned: if one fails, the rules cancel the others,
    // and must not find them here.
    this.#sent.takeAll();
    this.#hasSuspect = false;
    for (const { closure, fate } of lost) this.#host.returned(closure, fate, cause);
    const running = lost.find(({ fate }) => fate === 'running');
    const name = (running?.closure.work as Call | undefined)?.name;
    this.#listener.onGone(this, { cause, wasKilled, wasReady, running: name });
  }
}
