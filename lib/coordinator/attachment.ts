/**
 * The attachment: this JavaScript thread's view of one coordinator, behind the public `Coordinator`.
 * It outlives that object while a wait is pending, a hook may have to run, or a `signal` that it has
 * handed out may still abort. The doorbell calls `check` when the state has changed.
 */

import {
  addAbortListener,
  allowManyListeners,
  removeAbortListener,
} from '../base/abort-listeners.ts';
import { reasonOfAbort } from '../base/abort-reason.ts';
import { invalidType } from '../base/arguments.ts';
import { now } from '../base/clock.ts';
import { outsideTasks } from '../base/task-context.ts';
import { attempt, isObject } from '../base/thrown-value.ts';
import { Timer } from '../base/timer.ts';
import { WeakById } from '../base/weak-by-id.ts';
import {
  type NativeAttachment,
  type NativeRecord,
  type NativeStop,
  type RequesterOptions,
  SLICE_MS,
  STOP_KINDS,
  STOP_OUTCOMES,
  type StopOutcome,
} from '../native/binding.ts';
import { drain, hold, listen, listenWeakly, release, unlisten } from '../native/doorbell.ts';
import { binding, hoistsReads } from '../native/native.ts';
import { decode, encode } from '../record/encoded-error.ts';
import { abortReason, asEcho, type Carried, echoes } from '../record/error-identity.ts';
import { RecentErrors } from '../record/recent-errors.ts';
import { Publishing } from './channels/publisher.ts';
import { logNativeStop, logReport } from './debug-log.ts';
import type { Link } from './link.ts';
import { isHeard, onNextUse } from './signal-users.ts';
import { type StopRecord, toStopRecord } from './stop-record.ts';
import type { ShownWorker } from './threads/busy-workers.ts';

/** Who requests a stop, and how. */
export type RequestOptions = RequesterOptions & {
  /** Whether an error that is refused (after a join) can be thrown to a caller; default true. */
  hasCaller?: boolean;
  /** Whether a thread threw the error: then it is written at the end if nobody was given it. */
  isThrown?: boolean;
};

type Encoded = { carried: Carried; bytes: Uint8Array; ids: string[]; abortIds: string[] };

const NOTHING: string[] = [];
const settled = Promise.resolve();
const outcomeOf = (code: number): StopOutcome => STOP_OUTCOMES[code] as StopOutcome;

// Captured on import, so that a fake that a test installs later does not affect the package.
const Controller = globalThis.AbortController;

/**
 * Keeps attachments alive whose public object, a Coordinator, has been collected while its signal
 * is in use and may still abort, because another thread or a link could stop the coordinator.
 */
const abandoned = new Set<Attachment>();
/** The attachments by their public object, a Coordinator. */
const attachments = new WeakMap<object, Attachment>();
/** Abandoned attachments whose signal nothing uses, by the signal: they live as long as it does. */
const bySignal = new WeakMap<AbortSignal, Attachment>();
const byCoordinator = new WeakById<Attachment>();
/** Publishes what happens at these coordinators on diagnostics channels of this thread. */
const publishing = new Publishing(() => byCoordinator.values());

let sweeping = false;

/** Lets go of abandoned attachments once for all objects that were collected in this turn. */
function sweepSoon(): void {
  if (sweeping) return;
  setImmediate(() => {
    sweeping = false;
    for (const attachment of abandoned) if (attachment.letGo()) abandoned.delete(attachment);
  }).unref();
  sweeping = true; // last: a stack overflow may throw above
}

export class Attachment {
  readonly native: NativeAttachment;
  readonly words: Int32Array;
  readonly wordIndex: number;

  /** The links that this thread has made and not undone. */
  readonly links: Set<Link> = new Set();
  /** The cluster workers that this thread has started. */
  readonly workers: Map<object, ShownWorker> = new Map();
  /** Since when the body of `Coordinator.run` runs; undefined: it has returned, or there is none. */
  bodySince: Date | undefined;
  /** Whether the program has read `signal`: then the reason of the signal gives it the error. */
  signalWasRead = false;
  /** The hooks of this thread, once it has had one; `serve` is called after each stop. */
  hooks: { readonly size: number; readonly isServing: boolean; serve(): void } | undefined;
  /** Publishes the events of the timeline on channels; undefined while nothing listens. */
  #publisher: { publish(): void } | undefined;
  #facade: WeakRef<object> | undefined; // the public object
  #interested = false; // whether native code rings for this attachment
  #seen = 0; // the generation at the last `check`
  #noted: number | undefined = 0; // the generation of the stop that the timeline has as seen here
  readonly #waits = new Set<() => void>(); // called after a stop
  readonly #stopListeners = new Set<() => void>(); // called after each stop, last
  readonly #errorListeners = new Set<() => void>(); // called when errors may have been recorded
  readonly #joins = new Set<() => void>(); // called when the join may have ended
  #controller: AbortController | undefined; // of `signal`
  #isAborted = false; // whether #controller has aborted
  #abortedAt = -1; // the generation of the stop that aborted #controller
  readonly #held = new RecentErrors();

  private constructor(native: NativeAttachment) {
    this.native = native;
    this.words = native.words;
    this.wordIndex = native.wordIndex;
    byCoordinator.set(native.id, this);
    publishing.add(this);
  }

  /** Creates a coordinator. */
  static create(name: string, cleanStopTypes: string[], stopGracePeriodMs: number): Attachment {
    return new Attachment(binding().createCoordinator(name, cleanStopTypes, stopGracePeriodMs));
  }

  /** The attachment of this thread around `native`, made if there is none. */
  static of(native: NativeAttachment): Attachment {
    return Attachment.find(native.id) ?? new Attachment(native);
  }

  static find(id: string): Attachment | undefined {
    return byCoordinator.get(id);
  }

  /** The public object, a Coordinator. Undefined before it is made and after it was collected. */
  get facade(): object | undefined {
    return this.#facade?.deref();
  }

  set facade(coord: object) {
    this.#facade = new WeakRef(coord);
    attachments.set(coord, this);
    abandoned.delete(this);
    if (this.#interested) listen(this.native.token, this);
    this.#unwatch();
  }

  shouldStop(): boolean {
    const { words, wordIndex } = this;
    if (!hoistsReads && words[wordIndex] === 0) return false;
    if (Atomics.load(words, wordIndex) === 0) return false;
    if (words[wordIndex + 1] !== this.#noted) {
      this.#noted = words[wordIndex + 1];
      this.native.noteSeen();
    }
    return true;
  }

  // ------------------------------------------------------------ requests

  /** Requests a stop without an error. */
  requestPlainStop(options: RequestOptions): StopOutcome {
    return this.#request(null, options, NOTHING, NOTHING);
  }

  /** Requests a stop with an error, which may be any value. */
  report(error: unknown, options: RequestOptions): StopOutcome {
    const { carried, bytes, ids, abortIds } = this.#encode(error);
    const outcome = this.#request(bytes, options, ids, abortIds);
    if (outcome === 'stopped' || outcome === 'suppressed') this.#held.hold(carried);
    return outcome;
  }

  /**
   * Records an error beside the stop, which it does not replace. `givenBefore`: the errors that the
   * program had been given when the function began that threw it.
   */
  reportBeside(error: unknown, from: RequesterOptions, givenBefore: number): void {
    const { carried, bytes, ids, abortIds } = this.#encode(error);
    const code = this.native.report(bytes, from, ids, abortIds, true, givenBefore);
    logReport(this, outcomeOf(code), from, bytes);
    this.#held.hold(carried);
    this.catchUp();
  }

  /** `ids`: of the error, and of those that it echoes. */
  #encode(error: unknown): Encoded {
    const { carried, bytes } = encode(error);
    const { ids, abortIds, bare } = echoes(error);
    if (bare.length > 0) {
      // Primitives have no id: a value equal to the recorded one is an echo.
      const record = this.native.stop();
      const recorded = record?.error ? this.errorOf(record.error) : undefined;
      if (record && recorded && bare.some((value) => Object.is(value, recorded.value))) {
        ids.push(record.id);
      }
    }
    return { carried, bytes, ids: [carried.id, ...ids], abortIds };
  }

  /** Requests the stop that another process has recorded, under the same record id. */
  relay(error: Uint8Array | null, options: RequestOptions, recordId: string): StopOutcome {
    const from = { ...options, hasCaller: false };
    if (error === null) return this.#request(null, from, NOTHING, NOTHING, recordId);
    const { id, value } = this.errorOf(error);
    const { ids, abortIds } = echoes(value);
    return this.#request(error, from, [id, ...ids], abortIds, recordId);
  }

  /** Records the error that another process has recorded beside its stop. */
  relayReport(error: Uint8Array, from: RequesterOptions, isThrown: boolean): void {
    const { id, value } = this.errorOf(error);
    const { ids, abortIds } = echoes(value);
    const code = this.native.report(error, from, [id, ...ids], abortIds, isThrown);
    logReport(this, outcomeOf(code), from, error);
    this.catchUp();
  }

  #request(
    bytes: Uint8Array | null,
    options: RequestOptions,
    echoIds: string[],
    abortEchoIds: string[],
    recordId?: string,
  ): StopOutcome {
    const { hasCaller = true, isThrown = false } = options;
    const code = this.native.requestStop(
      bytes,
      options,
      echoIds,
      abortEchoIds,
      hasCaller,
      isThrown,
      recordId,
    );
    const outcome = outcomeOf(code);
    if (bytes !== null) logReport(this, outcome, options, bytes);
    this.catchUp();
    return outcome;
  }

  /** Call it after a native call that may have changed the state. */
  catchUp(): void {
    drain();
    this.check(); // inside an abort listener an outer `drain` has taken the token, and is not done
  }

  clearStop(): boolean {
    drain(); // another thread's stop must abort this thread's signal before the stop is cleared
    this.check();
    const cleared = this.native.clearStop();
    if (cleared && this.#joins.size === 0) this.#held.clear();
    this.#unwatch(); // which watches for the hooks: they may have to run again
    drain();
    return cleared;
  }

  // ------------------------------------------------------------ records

  /** The value of an encoded error: the same value each time, also if it is decoded again. */
  errorOf(bytes: Uint8Array): Carried {
    const carried = decode(bytes);
    this.#held.hold(carried);
    return carried;
  }

  /** The value of an encoded error that the program is given now: it was not lost. */
  give(bytes: Uint8Array): unknown {
    const { id, value } = this.errorOf(bytes);
    binding().giveError(id);
    return value;
  }

  /** `isGiven`: whether the program is given the record, and with it the errors. */
  record(isGiven = true): StopRecord | undefined {
    const native = this.native.record();
    return native === null ? undefined : this.toRecord(native, isGiven);
  }

  toRecord(native: NativeRecord, isGiven: boolean): StopRecord {
    const valueOf = (bytes: Uint8Array): unknown =>
      isGiven ? this.give(bytes) : this.errorOf(bytes).value;
    return toStopRecord(native, this.native, valueOf);
  }

  // ------------------------------------------------------------ changes of the state

  #watch(): void {
    if (!this.#interested) this.#seen = this.native.setInterested(true) | 0; // the mirror has 32 bits
    this.#interested = true;
    listen(this.native.token, this); // also if it was weakly, for hooks that have run
  }

  /**
   * Ends what `#watch` has begun, if nothing needs it. Hooks that have run need it weakly: a hook, or
   * the stack of the reason of `signal`, may refer to the public object, which nothing would collect.
   */
  #unwatch(): void {
    if (this.#signalling || this.#waits.size > 0 || this.#joins.size > 0) return;
    if (!this.#interested || this.#stopListeners.size > 0 || this.#errorListeners.size > 0) return;
    if (this.#hasHooks) {
      const listenAgain = this.#needsHooks() ? listen : listenWeakly;
      listenAgain(this.native.token, this);
      return;
    }
    this.#interested = false;
    this.#unlisten();
    this.native.setInterested(false);
  }

  /**
   * Calls `listener` after each stop, in this thread: of a stop that this thread requests, before
   * the request returns. It must not throw.
   *
   * @returns a function that ends that
   */
  listenToStops(listener: () => void): () => void {
    this.check(); // the listener does not hear of an earlier stop
    this.#stopListeners.add(listener);
    this.#watch();
    return () => {
      this.#stopListeners.delete(listener);
      this.#unwatch();
    };
  }

  /** As `listenToStops`, for errors beside the stop; `listener` may be called without one. */
  listenToErrors(listener: () => void): () => void {
    this.#errorListeners.add(listener);
    this.#watch();
    return () => {
      this.#errorListeners.delete(listener);
      this.#unwatch();
    };
  }

  #unlisten(): void {
    if (this.#publisher === undefined) unlisten(this.native.token);
    else listenWeakly(this.native.token, this);
  }

  /**
   * Calls `publisher.publish()` in this thread after further events of the timeline, as long as
   * this attachment lives; `undefined` ends that.
   *
   * @returns the number of events so far
   */
  setPublisher(publisher: { publish(): void } | undefined): number {
    this.#publisher = publisher;
    if (!this.#interested) this.#unlisten();
    return this.native.watchEvents(publisher !== undefined);
  }

  /** Brings waits, joins and the AbortSignal up to date with the coordinator's state. */
  check(): void {
    this.#publisher?.publish();
    if (!this.#interested) return;
    const generation = Atomics.load(this.words, this.wordIndex + 1);
    if (generation !== this.#seen) {
      this.#seen = generation;
      for (const settle of this.#waits) settle();
      this.shouldStop(); // this thread has seen the stop
      if (this.#signalling) {
        // Only if there is a signal to abort: fetching the stop takes longer than all the rest.
        const stop = this.native.takeUnseen() ?? this.native.stop();
        if (stop !== null) this.#abort(stop);
      }
      for (const listener of this.#stopListeners) listener();
      this.hooks?.serve();
      logNativeStop(this);
    }
    for (const listener of this.#errorListeners) listener();
    for (const progress of this.#joins) progress();
    this.#unwatch();
  }

  // ------------------------------------------------------------ the signal

  get signal(): AbortSignal {
    this.check();
    this.#watch(); // before `stop` is read: a stop that comes after the reading rings
    if (!this.#signalling) this.native.takeUnseen(); // drops a stop from before there was a signal
    const stop = this.native.stop();
    const isPast = this.#isAborted && stop?.generation !== this.#abortedAt;
    if (this.#controller === undefined || isPast) {
      this.#controller = new Controller();
      this.#isAborted = false;
      allowManyListeners(this.#controller.signal);
      this.native.bindSignal(this.#controller.signal);
    }
    if (stop !== null) this.#abort(stop);
    this.#unwatch();
    return (this.#controller as AbortController).signal;
  }

  #abort(stop: NativeStop): void {
    const controller = this.#controller;
    if (controller === undefined || this.#isAborted) return;
    this.#isAborted = true;
    this.#abortedAt = stop.generation;
    if (stop.error !== null && this.signalWasRead) this.give(stop.error); // with the reason
    const reason = this.#reasonOf(stop);
    attempt(() => outsideTasks(() => controller.abort(reason))); // throws if the signal is frozen
  }

  #reasonOf(stop: NativeStop): unknown {
    const error = stop.error === null ? undefined : this.errorOf(stop.error).value;
    if (STOP_KINDS[stop.kind] === 'error' && error !== undefined) return error;
    return this.#abortReason(stop.id, error);
  }

  /**
   * Marks `error`, the rejection of a wait that the stop has interrupted, as an echo of the
   * stop, which may have been cleared since. Its `cause` becomes the reason of `signal`.
   */
  interrupted(error: Error): Error {
    const stop = this.native.stop();
    const id = stop?.id ?? this.native.pastStopId();
    if (id === '') return error;
    if (stop === null) return asEcho(error, id, this.#abortReason(id));
    const { signal } = this; // read now, so that a signal exists, which must have this reason later
    const isKnown = signal.aborted && this.#abortedAt === stop.generation;
    return asEcho(error, id, isKnown ? signal.reason : this.#reasonOf(stop));
  }

  #abortReason(stopId: string, cause?: unknown): Error {
    return abortReason(`The coordinator '${this.native.name}' was stopped`, stopId, cause);
  }

  /** Whether there is a signal that has not aborted. */
  get #signalling(): boolean {
    return this.#controller !== undefined && !this.#isAborted;
  }

  /**
   * Called when the public object has been collected. The signal that it gave out may still have
   * listeners, and has to abort if another thread or a link stops the coordinator.
   */
  abandon(): void {
    if (this.facade !== undefined) return; // a new public object was made meanwhile
    if (this.#signalling || this.#needsHooks()) abandoned.add(this);
    sweepSoon(); // the public object may have been the last that could stop another coordinator
  }

  /**
   * @returns true if neither hooks nor the signal are a reason to keep this attachment: no other
   *   owner could stop the coordinator; or there is no hook, and the signal has aborted, or nothing
   *   would notice. While the program still has a signal that has not aborted, the attachment lives
   *   as long as the signal, from which native code can take the coordinator, and is kept again
   *   when the program uses the signal.
   */
  letGo(): boolean {
    if (this.#waits.size > 0 || this.#joins.size > 0) return false;
    const signal = this.#signalling ? this.#controller?.signal : undefined;
    const heard = signal !== undefined && isHeard(signal);
    if ((heard || this.#needsHooks()) && this.native.hasOtherOwners()) return false;
    this.check(); // an owner of the coordinator may have requested a stop before it went
    if (signal === undefined || !this.#signalling) {
      if (this.#hasHooks) this.#unlisten();
      return true;
    }
    bySignal.set(signal, this);
    listenWeakly(this.native.token, this);
    if (heard) return true; // no other owner now: native code may get one, from the signal
    onNextUse(signal, () => {
      listen(this.native.token, this);
      abandoned.add(this);
      sweepSoon();
    });
    return true;
  }

  // ------------------------------------------------------------ waits

  /** The result of a wait that ends stopped: aborts the signal before the caller goes on. */
  #isStopped(): true {
    this.check();
    this.shouldStop(); // this thread has seen the stop
    return true;
  }

  /** `since`: a generation. A later stop ends the wait, even if that stop has been cleared. */
  waitForStop(
    timeoutMs: number,
    signal: AbortSignal | undefined,
    since?: number,
  ): Promise<boolean> {
    const wasStopped = (): boolean =>
      this.shouldStop() || (since !== undefined && this.native.generation() !== since);
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(reasonOfAbort(signal));
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
      this.check(); // serves an earlier stop: it was cleared, and must not end this wait
      const end = (): void => {
        if (!this.#waits.delete(onStop)) return; // `end` was called before
        timer.clear();
        if (signal) removeAbortListener(signal, onAbort);
        release();
        this.#unwatch();
      };
      const onStop = (): void => {
        resolve(true);
        void settled.then(end); // `end` takes time, so the code that awaits the wait goes on first
      };
      const onAbort = (): void => {
        reject(reasonOfAbort(signal as AbortSignal));
        end();
      };
      const timer = new Timer(timeoutMs, () => {
        resolve(this.shouldStop() && this.#isStopped());
        end();
      });
      if (signal) addAbortListener(signal, onAbort);
      this.#watch();
      hold();
      this.#waits.add(onStop); // after what may throw, if the stack is nearly full
      if (wasStopped() && this.#isStopped()) onStop(); // for a stop that came before `#watch`
    });
  }

  waitForStopSync(timeoutMs: number): boolean {
    const { native } = this;
    const generation = native.generation();
    if (this.shouldStop()) return this.#isStopped();
    const deadline = now() + timeoutMs;
    // Blocks in slices: after each, V8 checks whether this worker is being terminated.
    for (let left = timeoutMs; left > 0; left = deadline - now()) {
      if (native.waitSlice(generation, Math.min(left, SLICE_MS))) {
        drain();
        return this.#isStopped();
      }
    }
    return native.waitSlice(generation, 0) && this.#isStopped();
  }

  // ------------------------------------------------------------ hooks

  get #hasHooks(): boolean {
    return this.hooks !== undefined && this.hooks.size > 0;
  }

  /**
   * Whether a hook runs or may have to, without a call of this thread's program: not if all have run
   * for the stop, and nothing else could clear it.
   */
  #needsHooks(): boolean {
    const { hooks, words, wordIndex } = this;
    if (hooks === undefined || hooks.size === 0) return false;
    if (hooks.isServing || !Atomics.load(words, wordIndex) || this.native.isShared()) return true;
    // Read last: an owner that is gone may have cleared the stop before, and requested another one.
    return !Atomics.load(words, wordIndex) || Atomics.load(words, wordIndex + 1) !== this.#seen;
  }

  /** Called before a hook is registered: a stop that comes after that rings. */
  beginHook(): void {
    this.#watch();
  }

  /** Called when a hook was removed, and when the hooks have run for a stop. */
  endHooks(): void {
    this.#unwatch();
    if (abandoned.has(this) && this.letGo()) abandoned.delete(this);
  }

  // ------------------------------------------------------------ joins

  /** From now on calls `progress` when a join may have ended. Keeps the event loop alive. */
  beginJoin(progress: () => void): void {
    this.#watch();
    hold();
    this.#joins.add(progress);
  }

  endJoin(progress: () => void): void {
    if (!this.#joins.delete(progress)) return;
    release();
    this.#unwatch();
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
