/**
 * Nothing fails silently: an error that a thread has thrown, and that the program was not given
 * until the process ends, is written to standard error, and the exit code becomes 1: that of the
 * worker, if the main thread does not use the package. The core keeps such errors
 * (native/core/unseen_errors.h), since the JavaScript thread of a coordinator may end before the
 * process does.
 */

import { workerThreads } from '../base/builtins.ts';
import { shown } from '../base/thrown-value.ts';
import type { NativeUnseen } from '../native/binding.ts';
import { binding, onFirstUse } from '../native/native.ts';
import { decode } from '../record/encoded-error.ts';

/** The exit code of this process, in a Worker of that worker, that `failWith` has set. */
let own: number | undefined;

/** Sets the exit code, unless one is set that is not 0. @returns whether it has */
export function failWith(exitCode: number): boolean {
  const isFree = Number(process.exitCode ?? 0) === 0;
  if (isFree) {
    process.exitCode = exitCode;
    own = exitCode;
  }
  return isFree;
}

/** The exit code that `failWith` has set; undefined if it has set none, or another one is set. */
export function ownExitCode(): number | undefined {
  return own === process.exitCode ? own : undefined;
}

/** A reader of standard error that reads nothing for so long does not keep the process. */
export const PATIENCE_MS = 5_000;

let isLeftToParent = false;

/** From now on this process writes no error: it has relayed its errors to the process above it. */
export function leaveErrorsToParent(): void {
  isLeftToParent = true;
}

/** `isOurs`: nothing had set an exit code before the errors did. */
function report({ errors, dropped }: NativeUnseen, isOurs: boolean): string {
  const lines = errors.map(({ error, source, threadName }) => {
    const thrower = threadName === '' ? '' : `, thrown by '${threadName}'`;
    return `allstop: unhandled error of ${source}${thrower}:\n${shown(decode(error).value)}\n`;
  });
  if (dropped > 0) lines.push(`allstop: and ${dropped} older errors\n`);
  const exitCode = workerThreads().isMainThread ? 'the exit code' : 'the exit code of this worker';
  lines.push(
    `allstop: ${isOurs ? `so ${exitCode} is` : `${exitCode} stays`} ${process.exitCode}. ` +
      'To handle errors: join() and Coordinator.run() throw the error of the stop; ' +
      'stopRecord.suppressed has those that came after it; fetch() throws those of functions; ' +
      'exceptionsRaised has those of a QueueRunner without a coordinator\n',
  );
  return lines.join('');
}

let isExiting = false;

/** Writes the errors that the program was not given, once the process ends. */
export function tellUnseenAtExit(): void {
  if (!isExiting || isLeftToParent) return;
  const unseen = binding().takeUnseen();
  if (unseen === null || (!unseen.hasFailed && unseen.errors.length === 0)) return;
  const isOurs = failWith(1);
  if (unseen.errors.length === 0) return;
  // Not process.stderr, which on Windows writes to pipes later. Not writeSync(), which fails
  // where a pipe that does not block is full.
  binding().writeToStandardError(report(unseen, isOurs), PATIENCE_MS);
}

onFirstUse.push(() => {
  process.on('exit', () => {
    isExiting = true;
    tellUnseenAtExit();
  });
});
