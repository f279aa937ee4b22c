/** The AbortSignal of one coordinator in this JavaScript thread. */

import { getEventListeners } from 'node:events';
import { allowManyListeners } from '../base/abort.ts';
import { isNode } from '../base/builtins.ts';
import { attempt, define } from '../base/thrown-value.ts';
import { type NativeAttachment, type NativeStop, STOP_KINDS } from '../native/binding.ts';
import { abortReason, asEcho } from '../record/error-identity.ts';
import type { ErrorsHere } from '../record/stop-record.ts';
import { outsideTasks } from './threads/task-context.ts';

// Captured on import, so that a fake that a test installs later does not affect the package.
const Controller = globalThis.AbortController;

type State =
  | { phase: 'none' }
  | { phase: 'live'; controller: AbortController }
  /** `generation`: of the stop that has aborted it. A later stop needs a new signal. */
  | { phase: 'aborted'; controller: AbortController; generation: number };

/** What this needs of an Attachment. */
type AttachmentLike = {
  readonly native: NativeAttachment;
  readonly errors: ErrorsHere;
  check(): void;
  listen(cause: 'signal', listener: () => void): () => boolean;
};

export class StopSignal {
  readonly #attachment: AttachmentLike;
  #state: State = { phase: 'none' };
  /** Whether the program has it: then its reason gives the program the error. */
  #isGiven = false;
  #unlisten: (() => unknown) | undefined;

  constructor(attachment: AttachmentLike) {
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

// Finds out whether anything uses an AbortSignal that the program has got: a signal that nothing
// uses need not live as long as the threads and links that could abort it.

/** The signals that `AbortSignal.any` has made of `signal`. Node keeps them under a symbol. */
function followersOf(signal: AbortSignal): Iterable<WeakRef<AbortSignal>> {
  const symbols = Object.getOwnPropertySymbols(signal);
  const key = symbols.find(({ description }) => description === 'kDependantSignals');
  const bySymbol = signal as unknown as Record<symbol, Iterable<WeakRef<AbortSignal>> | undefined>;
  return (key && bySymbol[key]) ?? [];
}

/** Whether `signal` has listeners. Those of jsdom's signals are not known: true. */
function hasListeners(signal: AbortSignal): boolean {
  try {
    return getEventListeners(signal, 'abort').length > 0;
  } catch {
    return true;
  }
}

/** Whether `signal` has listeners, or signals that `AbortSignal.any` has made of it. */
export function isHeard(signal: AbortSignal): boolean {
  // Bun and Deno do not tell which signals `AbortSignal.any` has made of one.
  if (!isNode || hasListeners(signal)) return true;
  return [...followersOf(signal)].some((follower) => follower.deref() !== undefined);
}

const ON_USE = Symbol('allstop:onUse');
type Watched = AbortSignal & { [ON_USE]?: () => void };

/**
 * The prototype of a signal that nothing uses. (Not properties of the signal itself, of which each
 * server's request would make anew.)
 */
const watched: object = Object.create(AbortSignal.prototype, {
  addEventListener: {
    value(this: Watched, ...args: Parameters<AbortSignal['addEventListener']>): void {
      use(this);
      this.addEventListener(...args);
    },
  },
  onabort: {
    get: () => null, // no handler is set
    set(this: Watched, listener: AbortSignal['onabort']) {
      use(this);
      Reflect.set(this, 'onabort', listener);
    },
  },
  aborted: {
    get(this: Watched): boolean {
      use(this);
      return this.aborted;
    },
  },
});

function use(signal: Watched): void {
  Object.setPrototypeOf(signal, AbortSignal.prototype);
  const onUse = signal[ON_USE];
  Reflect.deleteProperty(signal, ON_USE);
  onUse?.();
}

/**
 * Calls `onUse` once, when the program next adds a listener to `signal`, or reads `aborted`, as
 * `AbortSignal.any` does: from then on the program may be using the signal. The signal keeps `onUse`.
 */
export function onNextUse(signal: AbortSignal, onUse: () => void): void {
  define(signal, ON_USE, onUse, false);
  Object.setPrototypeOf(signal, watched);
}
