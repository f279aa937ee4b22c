/**
 * The attachment: this JavaScript thread's view of one coordinator, behind the public `Coordinator`.
 * It outlives that object while a wait is pending, a hook may have to run, or a `signal` that it has
 * handed out may still abort. The doorbell calls `check` when the state has changed.
 */

import { allowManyListeners, isHeard, onNextUse } from '../base/abort.ts';
import { invalidType } from '../base/arguments.ts';
import { attempt, isObject } from '../base/thrown-value.ts';
import { setImmediate } from '../base/timer.ts';
import { WeakById } from '../base/weak-by-id.ts';
import { type Teller, watch } from '../events/channels.ts';
import { logNativeStop } from '../events/spine.ts';
import { type NativeAttachment, type NativeStop, STOP_KINDS } from '../native/binding.ts';
import { binding, drain, forget, hoistsReads, listen, unlisten } from '../native/native.ts';
import { abortReason, asEcho } from '../record/error-identity.ts';
import { ErrorsHere } from '../record/stop-record.ts';
import { outsideTasks } from './threads/task-context.ts';

/**
 * What a listener hears of: 'wait' and 'stop' of each stop, first and last; 'signal' of each stop,
 * between them; 'error' when errors may have been recorded; 'join' when a join may have ended.
 */
export type Cause = 'wait' | 'signal' | 'stop' | 'error' | 'join';

/**
 * How this thread hears of the coordinator. Each phase may follow each other one (`#become`).
 *
 * - 'deaf': native code does not ring, except for the teller
 * - 'faint': it rings, but an attachment to which nothing else refers is collected
 * - 'keen': it rings, and the doorbell keeps the attachment
 */
type Hearing = 'deaf' | 'faint' | 'keen';

/**
 * What keeps an attachment that is needed though its public object may be gone.
 *
 * - 'coordinator': the public object, or nothing needs it
 * - 'itself': the object was collected; the signal or a hook may still have to hear of a stop
 * - 'signal': the object was collected, and only the signal could still lead to a stop
 */
type Keeper = 'coordinator' | 'itself' | 'signal';

/** The hooks of this thread, as `Hooks` of hooks.ts. */
type HooksHere = { readonly size: number; readonly isServing: boolean; serve(): void };

/** A function that a worker of this process runs. */
export type BusyWorker = {
  /** "worker:0 (thread 5) runs 'resize'" */
  text: string;
  startedAt: Date;
  /** Of the process that it runs in. */
  pid: number;
  /** Undefined: it runs in another process, in its main thread. */
  threadId: number | undefined;
};

/** For `explain()`: a worker that this thread has started, or a pool that brings calls to workers. */
export type ShownWorker = {
  /** The worker, and what it runs. */
  describe?(): string | string[];
  /** Which calls wait, and for what; which functions fail. */
  work?(): string[];
  /** What it runs; left out by a worker of another machine. */
  busy?(): BusyWorker[];
};

/** Those that keep themselves. */
const abandoned = new Set<Attachment>();
/** Those that their signal keeps, which has listeners: they live as long as it does. */
const bySignal = new WeakMap<AbortSignal, Attachment>();
const byCoordinator = new WeakById<Attachment>(forget);

let sweeping = false;

/** Lets go of abandoned attachments once for all objects that were collected in this turn. */
function sweepSoon(): void {
  if (sweeping) return;
  setImmediate(() => {
    sweeping = false;
    for (const attachment of abandoned) attachment.letGo();
  }).unref();
  sweeping = true; // last: a stack overflow may throw above
}

export class Attachment {
  readonly native: NativeAttachment;
  readonly words: Int32Array;
  readonly wordIndex: number;
  readonly errors: ErrorsHere;
  readonly signal: StopSignal;
  /** For what has to find the attachment as long as something else keeps it. */
  readonly ref: WeakRef<Attachment>;
  readonly #token: number;
  // A server makes a coordinator for each request: what most have not is made when it is asked for.
  #links: Set<Disposable> | undefined;
  #workers: Map<object, ShownWorker> | undefined;
  /** Tells of the events of the timeline; undefined while nobody hears. */
  #teller: Teller | undefined;
  #coordinator: WeakRef<object> | undefined; // the public object
  #hooks: HooksHere | undefined;
  #hearing: Hearing = 'deaf';
  #keeper: Keeper = 'coordinator';
  #seen = 0; // the generation at the last `check`
  #noted: number | undefined = 0; // the generation of the stop that the timeline has as seen here
  readonly #listeners: { [cause in Cause]?: Set<() => void> } = {};

  private constructor(native: NativeAttachment) {
    this.native = native;
    this.words = native.words;
    this.wordIndex = native.wordIndex;
    this.errors = new ErrorsHere(native);
    this.signal = new StopSignal(this);
    this.#token = native.token;
    this.ref = byCoordinator.set(native.id, this, this.#token);
    watch(this, () => byCoordinator.values());
  }

  /** The links that this thread has made and not undone. */
  get links(): Set<Disposable> {
    this.#links ??= new Set();
    return this.#links;
  }

  /** The pools and cluster workers that this thread has started. */
  get workers(): Map<object, ShownWorker> {
    this.#workers ??= new Map();
    return this.#workers;
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
  get coordinator(): object | undefined {
    return this.#coordinator?.deref();
  }

  /** From now on `coord` is the public object. */
  belongTo(coord: object): void {
    this.#coordinator = new WeakRef(coord);
    this.#keepBy('coordinator');
  }

  /**
   * From now on `serve()` of `hooks` is called after each stop. Called before a hook is added; when
   * one has ended or was removed, `endHooks` is.
   */
  beginHooks(hooks: HooksHere): void {
    this.#hooks = hooks;
    this.#become('keen');
  }

  endHooks(): void {
    this.attune();
    this.letGo();
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

  clearStop(): boolean {
    drain(); // another thread's stop must abort this thread's signal before the stop is cleared
    this.check();
    const cleared = this.native.clearStop();
    if (cleared && !this.#isHeardBy('join')) this.errors.forget();
    this.attune(); // for the hooks: they may have to run again
    drain();
    return cleared;
  }

  // ------------------------------------------------------------ changes of the state

  /**
   * From now on `listener` is called when `cause` says; it must not throw. Of a stop that this thread
   * requests, it hears before the request returns; of an earlier stop it does not hear.
   *
   * @returns a function that ends that, and tells whether it did
   */
  listen(cause: Cause, listener: () => void): () => boolean {
    if (cause === 'wait' || cause === 'stop') this.check();
    this.#become('keen');
    const listeners = this.#listeners[cause] ?? new Set();
    this.#listeners[cause] = listeners;
    listeners.add(listener);
    return () => {
      const hasEnded = listeners.delete(listener);
      if (hasEnded) this.attune();
      return hasEnded;
    };
  }

  #isHeardBy(cause: Cause): boolean {
    return (this.#listeners[cause]?.size ?? 0) > 0;
  }

  #tell(cause: Cause): void {
    for (const listener of this.#listeners[cause] ?? []) listener();
  }

  /** Call it after a native call that may have changed the state. */
  catchUp(): void {
    drain();
    this.check(); // inside an abort listener an outer `drain` has taken the token, and is not done
  }

  /** Brings waits, joins, hooks and the signal up to date with the coordinator's state. */
  check(): void {
    this.#teller?.tell();
    if (this.#hearing === 'deaf') return;
    const generation = Atomics.load(this.words, this.wordIndex + 1);
    if (generation !== this.#seen) {
      this.#seen = generation;
      this.#tell('wait');
      this.shouldStop(); // this thread has seen the stop
      this.#tell('signal');
      this.#tell('stop');
      this.#hooks?.serve();
      logNativeStop(this);
    }
    this.#tell('error');
    this.#tell('join');
    this.attune();
  }

  /** Ends what nothing needs any more of what `listen` has begun. */
  attune(): void {
    if (this.#hearing !== 'deaf') this.#become(this.#needed());
  }

  #needed(): Hearing {
    for (const cause of ['wait', 'join', 'stop', 'error'] as const) {
      if (this.#isHeardBy(cause)) return 'keen';
    }
    if (this.#isHeardBy('signal')) return this.#keeper === 'signal' ? 'faint' : 'keen';
    if (this.#hooks === undefined || this.#hooks.size === 0) return 'deaf';
    // A hook, or the stack of the reason of the signal, may refer to the public object, which nothing
    // would collect while the doorbell keeps this attachment.
    return this.#keeper !== 'signal' && this.#needsHooks() ? 'keen' : 'faint';
  }

  #become(hearing: Hearing): void {
    const { native } = this;
    if (hearing === 'deaf') {
      this.#hearing = 'deaf';
      this.#listenToEvents();
      native.setInterested(false);
      return;
    }
    if (this.#hearing === 'deaf') this.#seen = native.setInterested(true) | 0; // the mirror has 32 bits
    if (hearing === this.#hearing) return;
    if (hearing === 'keen') listen(this.#token, this);
    else listen(this.#token, this.ref);
    this.#hearing = hearing; // last: a stack overflow may throw above
  }

  /** Of a deaf attachment. */
  #listenToEvents(): void {
    if (this.#teller === undefined) unlisten(this.#token);
    else listen(this.#token, this.ref);
  }

  /**
   * Calls `teller.tell()` in this thread after further events of the timeline, as long as this
   * attachment lives; `undefined` ends that.
   *
   * @returns the number of events so far
   */
  setTeller(teller: Teller | undefined): number {
    this.#teller = teller;
    if (this.#hearing === 'deaf') this.#listenToEvents();
    return this.native.watchEvents(teller !== undefined);
  }

  /**
   * Whether a hook runs or may have to, without a call of this thread's program: not if all have run
   * for the stop, and nothing else could clear it.
   */
  #needsHooks(): boolean {
    const { words, wordIndex } = this;
    const hooks = this.#hooks;
    if (hooks === undefined || hooks.size === 0) return false;
    if (hooks.isServing || !Atomics.load(words, wordIndex) || this.native.isShared()) return true;
    // Read last: an owner that is gone may have cleared the stop before, and requested another one.
    return !Atomics.load(words, wordIndex) || Atomics.load(words, wordIndex + 1) !== this.#seen;
  }

  // ------------------------------------------------------------ without the public object

  #keepBy(keeper: Keeper): void {
    this.#keeper = keeper;
    if (keeper === 'itself') abandoned.add(this);
    else abandoned.delete(this);
    this.attune();
  }

  /**
   * Called when the public object has been collected. The signal that it gave out may still have
   * listeners, and has to abort if another thread or a link stops the coordinator.
   */
  abandon(): void {
    if (this.coordinator !== undefined) return; // a new public object was made meanwhile
    if (this.signal.live !== undefined || this.#needsHooks()) this.#keepBy('itself');
    sweepSoon(); // the public object may have been the last that could stop another coordinator
  }

  /**
   * Of an attachment that keeps itself: ends that if neither hooks nor the signal are a reason. No
   * other owner could stop the coordinator; or there is no hook, and the signal has aborted, or
   * nothing would notice. While the program still has a signal that has not aborted, the signal keeps
   * the attachment, since native code can take the coordinator from it.
   */
  letGo(): void {
    if (this.#keeper !== 'itself' || this.#isHeardBy('wait') || this.#isHeardBy('join')) return;
    const before = this.signal.live;
    const heard = before !== undefined && isHeard(before);
    if ((heard || this.#needsHooks()) && this.native.hasOtherOwners()) return;
    this.check(); // an owner of the coordinator may have requested a stop before it went
    const signal = this.signal.live;
    this.#keepBy('signal');
    if (signal === undefined) return;
    if (heard) {
      bySignal.set(signal, this); // no other owner now: native code may get one, from the signal
      return;
    }
    onNextUse(signal, () => {
      if (this.#keeper !== 'signal') return;
      this.#keepBy('itself');
      sweepSoon();
    });
  }
}

// Captured on import, so that a fake that a test installs later does not affect the package.
const Controller = globalThis.AbortController;

type State =
  | { phase: 'none' }
  | { phase: 'live'; controller: AbortController }
  /** `generation`: of the stop that has aborted it. A later stop needs a new signal. */
  | { phase: 'aborted'; controller: AbortController; generation: number };

/** The AbortSignal of one coordinator in this JavaScript thread. */
class StopSignal {
  readonly #attachment: Attachment;
  #state: State = { phase: 'none' };
  /** Whether the program has it: then its reason gives the program the error. */
  #isGiven = false;
  #unlisten: (() => unknown) | undefined;

  constructor(attachment: Attachment) {
    this.#attachment = attachment;
  }

  /** The signal, if there is one that has not aborted. */
  get live(): AbortSignal | undefined {
    return this.#state.phase === 'live' ? this.#state.controller.signal : undefined;
  }

  /**
   * `isGiven`: whether the program gets it, not only the package. From then on the program is given
   * the error of a stop with the signal's reason.
   */
  read(isGiven: boolean): AbortSignal {
    if (isGiven) this.#isGiven = true;
    const { native } = this.#attachment;
    this.#attachment.check();
    if (this.#state.phase !== 'live') {
      // Before `stop` is read: a stop that comes after the reading rings.
      this.#unlisten = this.#attachment.listen('signal', () => this.#onStop());
      native.takeUnseen(); // drops a stop from before there was a signal
    }
    try {
      const stop = native.stop();
      const controller = this.#controllerFor(stop);
      if (stop !== null) this.#abort(stop);
      return controller.signal;
    } finally {
      if (this.#isOver()) this.#unlisten?.();
    }
  }

  #isOver(): boolean {
    return this.#state.phase !== 'live';
  }

  #controllerFor(stop: NativeStop | null): AbortController {
    const state = this.#state;
    if (state.phase === 'live') return state.controller;
    if (state.phase === 'aborted' && stop?.generation === state.generation) return state.controller;
    const controller = new Controller();
    allowManyListeners(controller.signal);
    this.#attachment.native.bindSignal(controller.signal);
    this.#state = { phase: 'live', controller };
    return controller;
  }

  #onStop(): void {
    if (this.#state.phase !== 'live') return;
    const stop = this.#attachment.native.takeUnseen() ?? this.#attachment.native.stop();
    if (stop !== null) this.#abort(stop);
  }

  #abort(stop: NativeStop): void {
    if (this.#state.phase !== 'live') return;
    const { controller } = this.#state;
    this.#state = { phase: 'aborted', controller, generation: stop.generation };
    if (stop.error !== null && this.#isGiven) this.#attachment.errors.give(stop.error); // with the reason
    const reason = this.#reasonOf(stop);
    attempt(() => outsideTasks(() => controller.abort(reason))); // throws if the signal is frozen
    // A listener may have cleared the stop, and read a signal that is live.
    if (this.#isOver()) this.#unlisten?.();
  }

  #reasonOf(stop: NativeStop): unknown {
    const error = stop.error === null ? undefined : this.#attachment.errors.of(stop.error).value;
    if (STOP_KINDS[stop.kind] === 'error' && error !== undefined) return error;
    return this.#abortReason(stop.id, error);
  }

  #abortReason(stopId: string, cause?: unknown): Error {
    const { name } = this.#attachment.native;
    return abortReason(`The coordinator '${name}' was stopped`, stopId, cause);
  }

  /**
   * Marks `error`, the rejection of a wait that the stop has interrupted, as an echo of the
   * stop, which may have been cleared since. Its `cause` becomes the reason of the signal.
   */
  interrupted(error: Error): Error {
    const { native } = this.#attachment;
    const stop = native.stop();
    const id = stop?.id ?? native.pastStopId();
    if (id === '') return error;
    if (stop === null) return asEcho(error, id, this.#abortReason(id));
    const signal = this.read(false); // now, so that a signal exists, which must have this reason later
    const state = this.#state;
    const isKnown = state.phase === 'aborted' && state.generation === stop.generation;
    return asEcho(error, id, isKnown ? signal.reason : this.#reasonOf(stop));
  }
}

let find: (coord: object) => Attachment | undefined = () => undefined;

/** From now on `how` finds the attachment of a Coordinator, whose class has it. */
export function findAttachmentsBy(how: typeof find): void {
  find = how;
}

/** The attachment of a `Coordinator`. */
export function attachmentOf(coord: object): Attachment {
  return checkCoordinator('coordinator', coord);
}

/**
 * The attachment of a `Coordinator` that a caller passed as the argument `name`.
 *
 * @throws TypeError: `coord` is not a Coordinator
 */
export function checkCoordinator(name: string, coord: unknown): Attachment {
  const attachment = isObject(coord) ? find(coord) : undefined;
  if (attachment === undefined) throw invalidType(name, 'an instance of Coordinator', coord);
  return attachment;
}
