/** The links to signals of the process (`stopOnSignals`). */

import { checkString, didYouMean, invalidType, isList, outOfRange } from '../base/arguments.ts';
import { builtin, workerThreads } from '../base/builtins.ts';
import { attempt, codeOf, define } from '../base/thrown-value.ts';
import { Timer } from '../base/timer.ts';
import { FailedPreconditionError } from '../errors/errors.ts';
import { binding } from '../native/native.ts';
import type { Attachment } from './attachment.ts';
import { describedLink, Link } from './link.ts';
import { requestPlainStop } from './requests.ts';
import { PATIENCE_MS } from './unseen-errors.ts';

/** Signals that no handler can catch, or that the process cannot survive. */
const UNLINKABLE = new Set([
  'SIGKILL',
  'SIGSTOP',
  'SIGSEGV',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGABRT',
  'SIGIOT', // SIGABRT by another name
]);

/** The signals that programs link come first: of equally near names a message suggests the first. */
const linkable = (): string[] => {
  const all = Object.keys(builtin('node:os').constants.signals);
  return ['SIGTERM', 'SIGQUIT', 'SIGINT', ...all].filter((name) => !UNLINKABLE.has(name));
};

/** `where`: the name of the argument. */
export function checkSignals(
  where: string,
  signals: unknown,
): asserts signals is readonly NodeJS.Signals[] {
  if (!isList(signals)) throw invalidType(where, 'an array of signal names', signals);
  for (const signal of signals) {
    checkString(`${where}[]`, signal);
    if (!Object.hasOwn(builtin('node:os').constants.signals, signal) || UNLINKABLE.has(signal)) {
      const error = outOfRange(`${where}[]`, 'the name of a signal that can be handled', signal);
      const meant = UNLINKABLE.has(signal) ? '' : didYouMean(signal, linkable());
      if (meant !== '') error.message += `.${meant}`;
      throw error;
    }
  }
}

type SignalListener = (signal: NodeJS.Signals) => void;

const signalListeners = new Map<NodeJS.Signals, Set<SignalListener>>();

function dispatch(signal: NodeJS.Signals): void {
  for (const listener of signalListeners.get(signal) ?? []) listener(signal);
}

/** Adds one listener per signal to `process`, for all links: Node warns about the eleventh. */
function listenToSignal(signal: NodeJS.Signals): void {
  if (!process.listeners(signal).includes(dispatch)) process.on(signal, dispatch);
  if (!(process as NodeJS.EventEmitter).listeners('removeListener').includes(listenAgain)) {
    process.on('removeListener', listenAgain);
  }
}

/**
 * Undoes what `process.removeAllListeners()` does to a link that is still wanted: the runtime has
 * removed its own signal handler, and with it the addon's. Restores both at once, since a signal
 * may come now, and again in a microtask: until then the caller may go on and remove this
 * 'removeListener' listener and the restored one.
 */
function listenAgain(event: string | symbol, listener: unknown): void {
  const signal = event as NodeJS.Signals;
  const isWanted = (): boolean => (signalListeners.get(signal)?.size ?? 0) > 0;
  if (listener !== dispatch || !isWanted()) return;
  const restore = (): void => {
    if (!isWanted()) return;
    listenToSignal(signal);
    binding().reinstallSignals();
  };
  restore();
  queueMicrotask(restore);
}

function addSignalListener(signal: NodeJS.Signals, listener: SignalListener): void {
  const all = signalListeners.get(signal) ?? new Set();
  signalListeners.set(signal, all.add(listener));
  listenToSignal(signal);
}

/** Whether a coordinator stops at `signal`. False in a worker, which cannot link signals. */
export function isLinked(signal: NodeJS.Signals): boolean {
  return signalListeners.has(signal);
}

/** The signals at which a coordinator of this thread stops. */
export const linkedSignals = (): NodeJS.Signals[] => [...signalListeners.keys()];

function removeSignalListener(signal: NodeJS.Signals, listener: SignalListener): void {
  const all = signalListeners.get(signal);
  if (!all?.delete(listener) || all.size > 0) return;
  signalListeners.delete(signal);
  process.off(signal, dispatch);
  if (signalListeners.size === 0) process.off('removeListener', listenAgain);
}

/** The signal that has stopped the coordinator; undefined if none has. */
export function signalOfStop({ native }: Attachment): NodeJS.Signals | undefined {
  const requester = native.record()?.requester;
  return requester?.via === 'signal' && requester.signal !== '' ? requester.signal : undefined;
}

/** As kOnePressNs in native/binding/signals.cc, for where there is no native link. */
export const ONE_PRESS_MS = 500;

export function stopOnSignals(
  attachment: Attachment,
  signals: readonly NodeJS.Signals[],
  stack: string,
): Disposable {
  if (!workerThreads().isMainThread) {
    throw new FailedPreconditionError(
      'stopOnSignals() works in the main thread only: a process has one set of signal handlers',
    );
  }
  const names = [...new Set(signals)];
  if (names.length === 0) return new Link('no process signals (stopOnSignals)');
  // The JavaScript listener is added first: because of it the runtime does not exit on the
  // signal, and still calls the program's own listeners. Native code requests the stop, as this
  // thread may be busy; the listener does so only where there is no native link (`native` is 0).
  let first: { at: number; generation: number } | undefined;
  const listen = (signal: NodeJS.Signals): void => {
    if (native !== 0) return;
    const generation = attachment.native.generation();
    if (first?.generation !== generation || !attachment.shouldStop()) {
      requestPlainStop(attachment, { via: 'signal', signal, stack, hasCaller: false });
      first = { at: performance.now(), generation: attachment.native.generation() };
    } else if (performance.now() - first.at >= ONE_PRESS_MS) {
      listenNoMore();
      process.removeAllListeners(signal); // it ends the process, whoever listens
      process.kill(process.pid, process.platform === 'win32' ? 'SIGKILL' : signal);
    }
  };
  const listenNoMore = (): void => {
    for (const name of names) removeSignalListener(name, listen);
  };
  const signalOf = (): string | undefined => signalOfStop(attachment);
  for (const name of names) addSignalListener(name, listen);
  const numbers = names.map((name) => builtin('node:os').constants.signals[name]);
  const native = attachment.native.linkSignals(names, numbers, stack);
  const link = describedLink(
    attachment,
    `the process signals ${names.join(', ')} (stopOnSignals)`,
    (isAsked) => {
      const pressEnds = first === undefined || isAsked ? 0 : first.at + ONE_PRESS_MS;
      const restMs = pressEnds - performance.now();
      if (restMs > 0) new Timer(restMs, listenNoMore).unref();
      else listenNoMore();
      attachment.native.unlinkSignals(native, isAsked);
      unwatchOutput(signalOf, !isAsked);
    },
  );
  watchOutput(signalOf);
  return link;
}

// Standard output and standard error whose reader has died of the signal that stops the program, as
// at Ctrl-C in `node app | pretty`. What is written there then is lost, and one line says so. Node
// makes an uncaught error of each write, which would end the program inside its hooks, or stop it
// with that error, and take the place of the signal's exit code.
//
// An `error` listener would not do: `console.log` ignores such errors only while there is none.

/**
 * A terminal sends Ctrl-C to all processes of a job at once. The program may see what that has done
 * to another, a child that has died or a pipe without a reader, so much earlier than its own stop.
 */
export const SAME_SIGNAL_MS = 250;

/** The signal that has stopped a coordinator; undefined if none has. */
type SignalOf = () => string | undefined;

const links = new Set<SignalOf>();
/** The signal that had stopped the coordinator of a link when the link ended: the program ends. */
let last: string | undefined;
let isTold = false;
/** Undoes what `watchOutput` has done to the streams. */
let restore: (() => void)[] = [];

/** From now on a reader that dies of the signal that has stopped a coordinator causes no error. */
function watchOutput(signalOf: SignalOf): void {
  last = undefined;
  links.add(signalOf);
  if (restore.length > 0) return;
  // In a program of Windows that has no console, reading them throws.
  for (const name of ['stdout', 'stderr'] as const) attempt(() => holdErrors(process[name]));
}

/** @param isEnd the link ends with its coordinator: what the program writes at its end counts, too */
function unwatchOutput(signalOf: SignalOf, isEnd: boolean): void {
  links.delete(signalOf);
  if (isEnd) last ??= signalOf();
  if (links.size > 0 || last !== undefined) return;
  for (const undo of restore) undo();
  restore = [];
}

const signalled = (): string | undefined =>
  [...links].map((signalOf) => signalOf()).find((signal) => signal !== undefined) ?? last;

/** Keeps from `stream` the errors that nobody listens to and that the signal explains. */
function holdErrors(stream: NodeJS.WriteStream): void {
  const { emit } = stream;
  const isOwn = Object.hasOwn(stream, 'emit');
  const ours = (event: string, ...args: unknown[]): boolean => {
    const isBroken = event === 'error' && codeOf(args[0]) === 'EPIPE';
    if (!isBroken || stream.listenerCount('error') > 0)
      return Reflect.apply(emit, stream, [event, ...args]);
    afterSignal((signal) => {
      if (signal === undefined) Reflect.apply(emit, stream, [event, ...args]);
      else tell(signal);
    });
    return true;
  };
  define(stream, 'emit', ours, false);
  restore.push(() => {
    if (stream.emit !== ours) return; // another has replaced it, and calls it
    if (isOwn) define(stream, 'emit', emit, false);
    else Reflect.deleteProperty(stream, 'emit');
  });
}

/** Calls `then` now, if a signal has stopped a coordinator, or SAME_SIGNAL_MS later. */
function afterSignal(then: (signal: string | undefined) => void): void {
  const signal = signalled();
  if (signal === undefined) new Timer(SAME_SIGNAL_MS, () => then(signalled()));
  else then(signal);
}

function tell(signal: string): void {
  if (isTold) return;
  isTold = true;
  const text = `allstop: nobody reads the output of this process any more: what it writes after ${signal} is lost\n`;
  binding().writeToStandardError(text, PATIENCE_MS);
}
