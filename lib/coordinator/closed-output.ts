/**
 * Standard output and standard error whose reader has died of the signal that stops the program, as
 * at Ctrl-C in `node app | pretty`. What is written there then is lost, and one line says so. Node
 * makes an uncaught error of each write, which would end the program inside its hooks, or stop it
 * with that error, and take the place of the signal's exit code.
 *
 * An `error` listener would not do: `console.log` ignores such errors only while there is none.
 */

import { attempt, codeOf, define } from '../base/thrown-value.ts';
import { Timer } from '../base/timer.ts';
import { binding } from '../native/native.ts';
import { PATIENCE_MS } from './unseen-errors.ts';

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
export function watchOutput(signalOf: SignalOf): void {
  last = undefined;
  links.add(signalOf);
  if (restore.length > 0) return;
  // In a program of Windows that has no console, reading them throws.
  for (const name of ['stdout', 'stderr'] as const) attempt(() => holdErrors(process[name]));
}

/** @param isEnd the link ends with its coordinator: what the program writes at its end counts, too */
export function unwatchOutput(signalOf: SignalOf, isEnd: boolean): void {
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
