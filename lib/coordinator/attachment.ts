/**
 * One coordinator in this JavaScript thread: what the public `Coordinator` object
 * and everything else here share. It outlives that object while a wait is pending
 * or a signal is handed out.
 * News arrives by doorbell.ts.
 */

import { setMaxListeners } from 'node:events';
import { addAbortListener, removeAbortListener } from '../base/abort-listeners.ts';
import { invalidType } from '../base/arguments.ts';
import { now } from '../base/clock.ts';
import { define } from '../base/define.ts';
import { isObject } from '../base/thrown-value.ts';
import { Timer } from '../base/timer.ts';
import { WeakById } from '../base/weak-by-id.ts';
import { SelfJoinError } from '../errors/errors.ts';
import {
  type NativeAttachment,
  type NativeJoinResult,
  type NativeRecord,
  type RequesterOptions,
  SLICE_MS,
  STOP_KINDS,
  STOP_OUTCOMES,
  type StopOutcome,
} from '../native/binding.ts';
import { drain, hold, listen, release, unlisten } from '../native/doorbell.ts';
import { binding } from '../native/native.ts';
import { abortReason, type Carried, echoes, markEcho } from '../record/error-identity.ts';
import { decode, encode } from '../record/error-record.ts';
import { type StopRecord, type SuppressedError, toRequester } from './stop-record.ts';

/** How a request came about. */
export type RequestOptions = RequesterOptions & {
  /** Whether somebody can be thrown at; default true. */
  hasCaller?: boolean;
};

const NOTHING: string[] = [];
const settled = Promise.resolve();

// Captured on import, so that a fake that a test installs later does not affect the package.
const Controller = globalThis.AbortController;

const MAX_HELD = 64;

/** Those who listen though their public object is gone, as others could still stop them. */
const abandoned = new Set<Attachment>();
/** By their public object. */
const attachments = new WeakMap<object, Attachment>();
const byCoordinator = new WeakById<Attachment>();

let sweeping = false;

/** In a turn of its own: that many may have been collected at once. */
function sweepSoon(): void {
  if (sweeping) return;
  sweeping = true;
  setImmediate(() => {
    sweeping = false;
    for (const attachment of abandoned) if (attachment.letGo()) abandoned.delete(attachment);
  }).unref();
}

export class Attachment {
  readonly native: NativeAttachment;
  readonly words: Int32Array;
  readonly wordIndex: number;

  /** The links that this thread has made and that stand. */
  readonly links: Set<Disposable> = new Set();
  /** Descriptions of a cluster's workers for `explain()`: that of the program only. */
  readonly workers: Map<object, string> = new Map();
  /** Why this coordinator cannot be cleared. */
  refuseClear: string | undefined;
  #facade: WeakRef<object> | undefined;
  #interested = false; // whether news is asked for
  #seen = 0; // the generation up to which news has been delivered
  readonly #waits = new Set<() => void>(); // call: a stop was requested
  readonly #joins = new Set<() => void>(); // call: it may have got further
  #controller: AbortController | undefined;
  #abortedAt = -1; // the generation of the stop that aborted it
  readonly #held = new Map<string, Carried>(); // so that errors keep their identity

  private constructor(native: NativeAttachment) {
    this.native = native;
    this.words = native.words;
    this.wordIndex = native.wordIndex;
    byCoordinator.set(native.id, this);
  }

  /** The attachment of a coordinator that was just created. */
  static create(name: string, cleanStopTypes: string[], stopGracePeriodMs: number): Attachment {
    return new Attachment(binding().createCoordinator(name, cleanStopTypes, stopGracePeriodMs));
  }

  static of(native: NativeAttachment): Attachment {
    return Attachment.find(native.id) ?? new Attachment(native);
  }

  static find(id: string): Attachment | undefined {
    return byCoordinator.get(id);
  }

  /** The public object, while there is one. */
  get facade(): object | undefined {
    return this.#facade?.deref();
  }

  set facade(coord: object) {
    this.#facade = new WeakRef(coord);
    attachments.set(coord, this);
    abandoned.delete(this);
    if (this.#interested) listen(this.native.token, this);
  }

  shouldStop(): boolean {
    return this.words[this.wordIndex] !== 0 && Atomics.load(this.words, this.wordIndex) !== 0;
  }

  // ------------------------------------------------------------ requests

  /** A request without an error. */
  requestPlainStop(options: RequestOptions): StopOutcome {
    return this.#request(null, options, NOTHING, NOTHING);
  }

  /** A request with an error, which may be any value. */
  report(error: unknown, options: RequestOptions): StopOutcome {
    const { carried, bytes } = encode(error);
    const { ids, abortIds, bare } = echoes(error);
    if (bare.length > 0) {
      // Primitives have no identity: the recorded value itself is the echo.
      const record = this.native.record();
      const recorded = record?.error ? this.errorOf(record.error) : undefined;
      if (record && recorded && bare.some((value) => Object.is(value, recorded.value))) {
        ids.push(record.id);
      }
    }
    const outcome = this.#request(bytes, options, [carried.id, ...ids], abortIds);
    if (outcome === 'stopped' || outcome === 'suppressed') this.#hold(carried);
    return outcome;
  }

  /** A request that another process has recorded, under this id. Nobody can be thrown at. */
  relay(error: Uint8Array | null, options: RequesterOptions, recordId: string): StopOutcome {
    const from = { ...options, hasCaller: false };
    if (error === null) return this.#request(null, from, NOTHING, NOTHING, recordId);
    const { id, value } = this.errorOf(error);
    const { ids, abortIds } = echoes(value);
    return this.#request(error, from, [id, ...ids], abortIds, recordId);
  }

  #request(
    bytes: Uint8Array | null,
    options: RequestOptions,
    echoIds: string[],
    abortEchoIds: string[],
    recordId?: string,
  ): StopOutcome {
    const hasCaller = options.hasCaller !== false;
    const { native } = this;
    const outcome = native.requestStop(bytes, options, echoIds, abortEchoIds, hasCaller, recordId);
    this.#catchUp();
    return STOP_OUTCOMES[outcome] as StopOutcome;
  }

  #catchUp(): void {
    drain();
    this.check(); // even if we are called from a listener that an outer drain runs
  }

  /** The arbiter's record: it stands from now on. */
  answerStop(error: Uint8Array | null, from: RequesterOptions, recordId: string): void {
    this.native.answerStop(error, from, recordId);
    this.#catchUp();
  }

  /** There will be no answer: what stands is the record. */
  answerNone(): void {
    this.native.answerNone();
    this.#catchUp();
  }

  clearStop(): boolean {
    drain(); // the signal of a stop that came from elsewhere aborts with that stop
    this.check();
    const cleared = this.native.clearStop();
    if (cleared && this.#joins.size === 0) this.#held.clear();
    drain();
    return cleared;
  }

  // ------------------------------------------------------------ records

  /** The error of a record, the same value each time. */
  errorOf(bytes: Uint8Array): Carried {
    const carried = decode(bytes);
    this.#hold(carried);
    return carried;
  }

  #hold(carried: Carried): void {
    this.#held.delete(carried.id);
    this.#held.set(carried.id, carried);
    if (this.#held.size > MAX_HELD) {
      for (const oldest of this.#held.keys()) {
        this.#held.delete(oldest);
        break;
      }
    }
  }

  record(): StopRecord | undefined {
    const native = this.native.record();
    if (native === null) return undefined;
    const record: StopRecord = {
      id: native.id,
      kind: STOP_KINDS[native.kind] ?? 'plain',
      requestedAt: new Date(native.requester.at),
      requester: toRequester(native.requester),
      suppressed: this.suppressed(),
      suppressedCount: this.native.suppressedCount(),
    };
    if (native.error !== null) record.error = this.errorOf(native.error).value;
    return record;
  }

  suppressed(): SuppressedError[] {
    return this.native.suppressed().map(({ error, requester }) => ({
      error: this.errorOf(error).value,
      requester: toRequester(requester),
      at: new Date(requester.at),
    }));
  }

  // ------------------------------------------------------------ news

  #watch(): void {
    if (this.#interested) return;
    this.#interested = true;
    this.#seen = this.native.setInterested(true) | 0; // as in the mirror
    listen(this.native.token, this);
  }

  #unwatch(): void {
    if (this.#signalling || this.#waits.size > 0 || this.#joins.size > 0) return;
    if (!this.#interested) return;
    this.#interested = false;
    unlisten(this.native.token);
    this.native.setInterested(false);
  }

  /** Brings waits, joins and the signal up to date with the state. */
  check(): void {
    if (!this.#interested) return;
    const generation = Atomics.load(this.words, this.wordIndex + 1);
    if (generation !== this.#seen) {
      this.#seen = generation;
      for (const settle of this.#waits) settle();
      if (this.#signalling) {
        // For the signal only, as a record takes longer to fetch than all the rest.
        const stop = this.native.takeUnseen() ?? this.native.record();
        if (stop !== null) this.#abort(stop);
      }
    }
    for (const progress of this.#joins) progress();
    this.#unwatch();
  }

  // ------------------------------------------------------------ the signal

  get signal(): AbortSignal {
    this.check();
    this.#watch(); // first, so that a stop from now on is news, if it is not in the record
    if (!this.#signalling) this.native.takeUnseen(); // of an earlier stop, which nobody fetched
    const stop = this.native.record();
    const old = this.#controller?.signal;
    if (old === undefined || (old.aborted && stop?.generation !== this.#abortedAt)) {
      this.#controller = new Controller();
      setMaxListeners(0, this.#controller.signal);
    }
    if (stop !== null) this.#abort(stop);
    this.#unwatch();
    return (this.#controller as AbortController).signal;
  }

  #abort(stop: NativeRecord): void {
    const controller = this.#controller;
    if (controller === undefined || controller.signal.aborted) return;
    this.#abortedAt = stop.generation;
    controller.abort(this.#reasonOf(stop));
  }

  #reasonOf(stop: NativeRecord): unknown {
    const error = stop.error === null ? undefined : this.errorOf(stop.error).value;
    if (STOP_KINDS[stop.kind] === 'error' && error !== undefined) return error;
    const message = `The coordinator '${this.native.name}' was asked to stop`;
    return abortReason(message, stop.id, error);
  }

  /**
   * `error`, which tells that somebody was interrupted, as the echo of the stop that
   * stands: its cause is what `signal` has aborted with.
   */
  interrupted(error: Error): Error {
    const stop = this.native.record();
    if (stop === null) return error;
    const { signal } = this; // made now, if need be: who looks at it later finds the same reason
    const isKnown = signal.aborted && this.#abortedAt === stop.generation;
    const cause = isKnown ? signal.reason : this.#reasonOf(stop);
    define(error, 'cause', cause, false);
    markEcho(error, stop.id);
    return error;
  }

  /** Whether there is a signal that could still abort. */
  get #signalling(): boolean {
    return this.#controller !== undefined && !this.#controller.signal.aborted;
  }

  /**
   * The public object is gone. Its signal may have listeners yet, and they are
   * owed the abort as long as anybody can still request a stop.
   */
  abandon(): void {
    if (this.facade !== undefined) return; // it has another one
    if (this.#signalling) abandoned.add(this);
    sweepSoon(); // others may have let go of those before
  }

  /**
   * Whether nothing holds this any longer on account of its signal. What holds it
   * otherwise, such as a link, may still stop it: that is then heard at once.
   */
  letGo(): boolean {
    if (!this.#signalling) return true;
    if (this.#waits.size > 0 || this.#joins.size > 0 || this.native.hasOtherOwners()) return false;
    this.check(); // the last of them may have stopped it before: that news is on its way
    unlisten(this.native.token);
    return true;
  }

  // ------------------------------------------------------------ waits

  /** Whoever is told of a stop finds the signal aborted, too. */
  #isStopped(): true {
    this.check();
    return true;
  }

  /** `since`: the generation from which on a stop counts, even if it is cleared already. */
  waitForStop(
    timeoutMs: number,
    signal: AbortSignal | undefined,
    since?: number,
  ): Promise<boolean> {
    const wasStopped = (): boolean =>
      this.shouldStop() || (since !== undefined && this.native.generation() !== since);
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      if (wasStopped()) {
        resolve(this.#isStopped());
        return;
      }
      if (timeoutMs === 0) {
        resolve(false);
        return;
      }
      this.check(); // what happened before this wait began is none of its news
      const end = (): void => {
        if (!this.#waits.delete(onStop)) return; // it has ended before
        timer.clear();
        if (signal) removeAbortListener(signal, onAbort);
        release();
        this.#unwatch();
      };
      const onStop = (): void => {
        resolve(true);
        void settled.then(end); // when whoever was waiting has gone on, as this takes longer
      };
      const onAbort = (): void => {
        reject(signal?.reason);
        end();
      };
      const timer = new Timer(timeoutMs, () => {
        resolve(this.shouldStop() && this.#isStopped());
        end();
      });
      if (signal) addAbortListener(signal, onAbort);
      this.#watch();
      this.#waits.add(onStop);
      hold();
      if (wasStopped() && this.#isStopped()) onStop(); // it came before we watched
    });
  }

  waitForStopSync(timeoutMs: number): boolean {
    const { native } = this;
    const generation = native.generation();
    if (this.shouldStop()) return this.#isStopped();
    const deadline = now() + timeoutMs;
    // Between slices V8 looks whether the worker is to be terminated.
    for (let left = timeoutMs; left > 0; left = deadline - now()) {
      if (native.waitSlice(generation, Math.min(left, SLICE_MS))) {
        drain();
        return true;
      }
    }
    return native.waitSlice(generation, 0) && this.#isStopped();
  }

  /** @throws SelfJoinError */
  refuseSelfJoin(tasks: number[]): void {
    if (!this.native.wouldJoinItself(tasks)) return;
    throw new SelfJoinError('A thread cannot join itself: it would wait for its own end');
  }

  /** Runs a join to its end. `tasks`: the registered tasks that the caller runs in. */
  async join(
    gracePeriodMs: number,
    tasks: number[],
    signal: AbortSignal | undefined,
  ): Promise<NativeJoinResult> {
    if (signal?.aborted) throw signal.reason;
    const { native } = this;
    const join = native.beginJoin(tasks);
    if (join === null) throw new SelfJoinError('A thread cannot join itself');
    this.#watch();
    hold();
    try {
      return await new Promise<NativeJoinResult>((resolve, reject) => {
        let timer: Timer | undefined;
        const end = (): void => {
          timer?.clear();
          clearImmediate(turn);
          if (signal) removeAbortListener(signal, onAbort);
          this.#joins.delete(progress);
        };
        const progress = (): void => {
          const left = native.joinRemainingMs(join, gracePeriodMs);
          timer?.clear();
          if (left > 0) {
            timer = new Timer(left, progress);
            return;
          }
          const result = native.finishJoin(join);
          if (result === null) return;
          end();
          resolve(result);
        };
        const onAbort = (): void => {
          end();
          native.abandonJoin(join);
          reject(signal?.reason);
        };
        if (signal) addAbortListener(signal, onAbort);
        this.#joins.add(progress);
        // A promise that was settled already has ended, but we hear of it only
        // after this turn: time enough is given, even if no grace is.
        const turn = setImmediate(progress);
        if (native.joinHasEnded(join)) progress();
      });
    } finally {
      release();
      this.#unwatch();
    }
  }
}

/** The attachment of a `Coordinator`. */
export function attachmentOf(coord: object): Attachment {
  return attachments.get(coord) as Attachment;
}

/**
 * The attachment of a `Coordinator` that a caller passed as the argument `name`.
 *
 * @throws TypeError: `coord` is not a Coordinator
 */
export function checkCoordinator(name: string, coord: unknown): Attachment {
  const attachment = isObject(coord) ? attachments.get(coord) : undefined;
  if (attachment === undefined) throw invalidType(name, 'an instance of Coordinator', coord);
  return attachment;
}
