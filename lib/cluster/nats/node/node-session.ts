/**
 * A node's part in one run: it runs what it is sent on threads of its own, and tells what has
 * become of it. The threads are those of the local strategy, with its rules about their
 * death; this is what feeds them.
 *
 * The threads begin with the session and end with it: a run finds nothing of another's.
 */

import { hostname } from 'node:os';
import { Timer } from '../../../base/timer.ts';
import type { Coordinator } from '../../../coordinator/coordinator.ts';
import type { TaskReadiness } from '../../../errors/readiness-report.ts';
import { decode, encode } from '../../../record/error-record.ts';
import { type Call, Closure, type ClosureOutcome } from '../../closures/closure.ts';
import type { StrategyHost } from '../../closures/strategy.ts';
import { WorkerPool } from '../../pool/worker-pool.ts';
import { clusterCoordinator } from '../../worker/coordinator-of-cluster.ts';
import type { Resource } from '../../worker/protocol.ts';
import { STATE } from '../../worker/protocol.ts';
import {
  answerNone,
  answerStop,
  applyStop,
  LateErrors,
  type StopMessage,
  stopMessage,
} from '../../worker/stop-relay.ts';
import { toPost, transferListOf } from '../../worker/transfer.ts';
import { checkLength, ReliableChannel } from '../wire/reliable-channel.ts';
import {
  BUILDING,
  type FromNode,
  LONG_BYTES,
  type NodeStatus,
  type PackedResource,
  pack,
  RUN_LENGTH,
  unpackToNode,
} from '../wire/session-messages.ts';

/** A coordinator that has heard a broadcast has said so by then. */
const UNHEARD_MS = 1_000;

export type NodeSessionOptions = {
  module: URL;
  job: 'worker' | 'ps';
  task: number;
  slots: number;
  cancelGraceMs: number;
  /** How long a stop is provisional that the coordinator says nothing of. */
  unavailableAfterMs: number;
  maxFrameBytes: number;
  send(frame: Uint8Array): boolean;
  /** It has stopped the run, or tells who has: to everybody, ahead of the coordinator. */
  broadcast(stop: StopMessage): void;
  /** A message that is none. */
  onMalformed(): void;
  /** The coordinator has ended it. */
  onEnd(): void;
  /** No thread will live here; the coordinator is being told. */
  onFailed(error: Error): void;
};

export class NodeSession implements StrategyHost {
  readonly coordinator: Coordinator;
  readonly cancelGraceMs: number;
  readonly channel: ReliableChannel;
  readonly #options: NodeSessionOptions;
  /** Undefined on a parameter server. */
  readonly #pool: WorkerPool | undefined;
  #inbox: Closure[] = [];
  /** What has come and is not answered, by the coordinator's id. */
  readonly #closures = new Map<number, Closure>();
  readonly #ids = new Map<Closure, number>();
  readonly #resources: Resource[] = [];
  /** What each thread has to make before anything else. */
  readonly #lines = new Map<number, Closure[]>();
  #results: unknown[] = [];
  #resultsBytes = 0;
  #told = '';
  #isStatusDue = false;
  #isFlushDue = false;
  #isStopTold = false;
  /** It has asked for a stop, and has no answer. */
  #unheardStop: StopMessage | undefined;
  #isAnswered = false;
  readonly #late: LateErrors;
  /** Until our record stands. */
  #unanswered: Timer | undefined;
  /** Until we tell the coordinator of another's stop. */
  #unheard: Timer | undefined;
  #isOver = false;
  /** No thread will live here. */
  hasFailed = false;

  constructor(options: NodeSessionOptions) {
    this.#options = options;
    const { module, job, task, slots, maxFrameBytes, send } = options;
    this.cancelGraceMs = options.cancelGraceMs;
    this.channel = new ReliableChannel({
      maxFrameBytes,
      send,
      onMessage: (bytes) => this.#receive(bytes),
      onImpostor: () => options.onMalformed(),
    });
    const coordinator = clusterCoordinator({ job, index: task });
    this.coordinator = coordinator;
    this.#late = new LateErrors(coordinator);
    coordinator.signal.addEventListener('abort', () => this.#onStop());
    if (job === 'worker') {
      const name = { job, index: task };
      this.#pool = new WorkerPool(this, {
        module,
        workers: slots,
        isolation: 'thread',
        task: name,
      });
    }
    this.changed();
  }

  /** What it has, and has not answered. */
  get running(): number {
    return this.#closures.size;
  }

  get unheardStop(): StopMessage | undefined {
    return this.#unheardStop;
  }

  /** It takes nothing more; the coordinator ends it when all is done. */
  leave(): void {
    this.#post(['leaving']);
  }

  /** Another node, or the coordinator, has stopped the run; its record is not yet certain. */
  onBroadcast(stop: StopMessage): void {
    if (this.coordinator.shouldStop()) return;
    this.#isStopTold = true;
    this.#late.skip(stop);
    applyStop(this.coordinator, stop);
    // Who has stopped the run may be gone, and the coordinator have heard nothing.
    this.#unheard = new Timer(UNHEARD_MS, () => this.#post(['stop', stop]));
  }

  /** Ends the threads. Resolves when they have ended, or cannot be ended. */
  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.channel.close();
    this.#onAnswered();
    answerNone(this.coordinator); // who joins would wait for ever
    await this.#pool?.close();
    this.coordinator.requestStop();
  }

  // ---------------------------------------------------------------- what the threads ask

  take(): Closure | undefined {
    if (this.coordinator.shouldStop()) return undefined; // the coordinator will cancel them
    return this.#inbox.shift();
  }

  takeTagged(worker: number): Closure | undefined {
    return this.#lines.get(worker)?.shift();
  }

  hasTagged(): boolean {
    return [...this.#lines.values()].some((line) => line.length > 0);
  }

  prepare(worker: number): void {
    this.#lines.set(
      worker,
      this.#resources.map((resource) => new Closure(resource)),
    );
  }

  ended(closure: Closure, { state, value }: ClosureOutcome, microseconds = 0): void {
    let result: [state: number, bytes: Uint8Array];
    try {
      // The thread has packed it.
      if (state === 'ready') result = [STATE.ready, checkLength(value as Uint8Array)];
      else result = [STATE.failed, checkLength(encode(value).bytes)];
    } catch (error) {
      result = [STATE.failed, encode(error).bytes];
    }
    const id = this.#forget(closure);
    if (id === undefined) return;
    this.#tellStops();
    this.#results.push(id, ...result, microseconds);
    this.#resultsBytes += result[1].byteLength;
    if (this.#resultsBytes > LONG_BYTES) this.#flush();
    else if (!this.#isFlushDue) {
      this.#isFlushDue = true;
      queueMicrotask(() => this.#flush());
    }
  }

  returned(closure: Closure, wasStarted: boolean, cause?: unknown): void {
    const id = this.#ids.get(closure);
    if (id === undefined) return;
    // One thread has given it up for another, and its arguments are still here.
    if (cause === undefined && closure.decided === undefined && !closure.isMoved) {
      this.#inbox.unshift(closure);
      return;
    }
    this.#forget(closure);
    this.#flush();
    this.#tellStatus(); // or it would come back here
    this.#post(['returned', id, wasStarted, cause === undefined ? null : encode(cause).bytes]);
  }

  changed(): void {
    if (this.#isStatusDue) return;
    this.#isStatusDue = true;
    queueMicrotask(() => {
      this.#isStatusDue = false;
      this.#tellStatus();
    });
  }

  failed(error: Error): void {
    this.hasFailed = true;
    queueMicrotask(() => {
      this.#post(['failed', encode(error).bytes]);
      this.#options.onFailed(error);
    });
  }

  // ---------------------------------------------------------------- what the coordinator says

  #receive(bytes: Uint8Array): void {
    const message = unpackToNode(bytes);
    if (message === undefined) {
      this.#options.onMalformed();
      return;
    }
    switch (message[0]) {
      case 'run':
        this.#run(message);
        return;
      case 'cancel':
        this.#cancel(message[1], decode(message[2]).value, message[3]);
        return;
      case 'recall':
        for (const id of message.slice(1)) this.#giveBack(id as number);
        return;
      case 'resource': {
        const resource = unpackResource(message[1]);
        this.#resources.push(resource);
        for (const worker of this.#pool?.indexes ?? []) {
          this.#lines.get(worker)?.push(new Closure(resource));
        }
        this.#pool?.wake();
        this.changed();
        return;
      }
      case 'stopped':
        // A thread may have been quicker, and its news be on its way.
        if (this.coordinator.shouldStop()) this.#onStop();
        this.#isStopTold = true;
        answerStop(this.coordinator, message[1]);
        this.#onAnswered();
        return;
      case 'end':
        this.#tellStops();
        this.#options.onEnd();
    }
  }

  #run(message: unknown[]): void {
    for (let at = 1; at < message.length; at += RUN_LENGTH) {
      const [id, attempt, name, bytes, perWorker] = message.slice(at, at + RUN_LENGTH) as [
        number,
        number,
        string,
        Uint8Array,
        number[] | undefined,
      ];
      if (this.#closures.has(id)) continue;
      const args = toPost(bytes);
      const call: Call = { kind: 'call', name, args, perWorker, transfer: transferListOf([args]) };
      const closure = new Closure(call);
      closure.attempts = attempt - 1;
      this.#closures.set(id, closure);
      this.#ids.set(closure, id);
      this.#inbox.push(closure);
    }
    this.#pool?.wake();
  }

  #cancel(id: number, reason: unknown, replace: boolean): void {
    const closure = this.#closures.get(id);
    if (closure === undefined) return; // its result is on its way
    closure.decided = { state: 'cancelled', value: reason };
    if (!this.#takeFromInbox(closure)) this.#pool?.cancel(closure, { reason, replace });
    else this.returned(closure, false);
  }

  #giveBack(id: number): void {
    const closure = this.#closures.get(id);
    if (closure === undefined) return;
    if (!this.#takeFromInbox(closure) && this.#pool?.recall(closure) !== true) return; // it runs
    this.#forget(closure);
    this.#post(['returned', id, false, null]);
  }

  #takeFromInbox(closure: Closure): boolean {
    const at = this.#inbox.indexOf(closure);
    if (at === -1) return false;
    this.#inbox.splice(at, 1);
    return true;
  }

  #forget(closure: Closure): number | undefined {
    const id = this.#ids.get(closure);
    this.#ids.delete(closure);
    if (id !== undefined) this.#closures.delete(id);
    return id;
  }

  // ---------------------------------------------------------------- what the coordinator is told

  #onStop(): void {
    if (this.#isOver) return;
    if (!this.#isAnswered) {
      const { unavailableAfterMs } = this.#options;
      this.#unanswered ??= new Timer(unavailableAfterMs, () => answerNone(this.coordinator));
    }
    if (this.#isStopTold) return;
    this.#isStopTold = true;
    const stop = this.#here(stopMessage(this.coordinator) as StopMessage);
    this.#unheardStop = stop;
    this.#late.skip(stop);
    this.#options.broadcast(stop);
    this.#post(['stop', stop]);
  }

  /** Before what functions come to because of them: a stop, and errors that came after it. */
  #tellStops(): void {
    if (!this.coordinator.shouldStop()) return;
    this.#onStop();
    for (const late of this.#late.take()) this.#post(['stop', this.#here(late)]);
  }

  #onAnswered(): void {
    this.#isAnswered = true;
    this.#unanswered?.clear();
    this.#unheard?.clear();
    this.#unheardStop = undefined;
  }

  #here(stop: StopMessage): StopMessage {
    const { job, task } = this.#options;
    return {
      ...stop,
      requester: { ...stop.requester, worker: `${job}:${task}`, host: hostname() },
    };
  }

  #tellStatus(): void {
    const status = this.#status();
    const text = JSON.stringify(status);
    if (text === this.#told) return;
    this.#told = text;
    this.#post(['status', status]);
  }

  #status(): NodeStatus {
    const pool = this.#pool;
    if (pool === undefined) return { phase: 'ready', capacity: 0, restarts: 0, stuck: 0 };
    const { tasks } = pool.report();
    const isWhy = ({ ready, cause }: TaskReadiness): boolean => !ready && cause !== undefined;
    const blocking = tasks.find(isWhy) ?? tasks.find(({ ready }) => !ready);
    const { workers, functions } = pool;
    return {
      // Threads that are about to be told are not ready any more.
      phase: blocking?.phase ?? (this.hasTagged() ? BUILDING : 'ready'),
      ...(blocking?.cause !== undefined && { cause: blocking.cause }),
      capacity: tasks.filter(({ ready }) => ready).length,
      ...(functions !== undefined && { functions: [...functions] }),
      restarts: workers.reduce((sum, { restarts }) => sum + restarts, 0),
      stuck: workers.filter(({ state }) => state === 'stuck').length,
      resources: this.#resources.length,
    };
  }

  #flush(): void {
    this.#isFlushDue = false;
    const results = this.#results;
    if (results.length === 0) return;
    this.#results = [];
    this.#resultsBytes = 0;
    this.#post(['results', ...results]);
  }

  #post(message: FromNode): void {
    if (!this.#isOver) this.channel.post(pack(message));
  }
}

/** Without the message that it is a part of. */
const unpackResource = (packed: PackedResource): Resource =>
  packed.kind === 'dataset' ? { ...packed, args: Buffer.from(packed.args) } : packed;
