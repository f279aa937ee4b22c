/**
 * The child's end of `coord.fork()`: on the first use of the package this process makes the
 * coordinator that `Coordinator.current()` finds, and attaches it to its parent.
 */

import { isMainThread } from 'node:worker_threads';
import { fieldOf } from '../../base/thrown-value.ts';
import { onFirstUse } from '../../native/doorbell.ts';
import { binding } from '../../native/native.ts';
import { encode } from '../../record/encoded-error.ts';
import { inheritAs } from '../../telemetry/context.ts';
import { Attachment } from '../attachment.ts';
import { stopOnSignals } from '../signal-links.ts';
import { ownExitCode } from '../unseen-errors.ts';
import { setCurrent } from './workers.ts';

/**
 * The environment variable that has the ForkSettings as JSON. The child deletes it, so that its own
 * children do not take the line for theirs.
 */
export const FORK_VARIABLE = 'ALLSTOP_FORK';

export type ForkSettings = {
  /** The pid of the parent. */
  parent: number;
  /** The child's descriptor of the parent's frames; on Windows the name of their pipe. */
  down: number | string;
  /** `identityOfDescriptor` of `down`; undefined if that is a name. */
  pipe?: string | undefined;
  /** The child's descriptor for its own frames. It has inherited this one with `down`. */
  up: number;
  coordinator: string;
  types: string[];
  graceMs: number;
  thread?: string;
  /** The signals at which the parent stops. */
  signals: NodeJS.Signals[];
  /** The context of OpenTelemetry in which the process was forked. */
  context?: string;
};

/** Keeps the attachment, which `Coordinator.current()` finds. */
let ours: Attachment | undefined;

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return fieldOf(error, 'code') === 'ESRCH';
  }
}

function attach({
  parent,
  down,
  up,
  coordinator,
  types,
  graceMs,
  thread,
  signals,
  context,
}: ForkSettings): void {
  ours = Attachment.create(coordinator, types, graceMs);
  setCurrent(ours, thread ?? `process-${process.pid}`);
  inheritAs(context);
  const native = binding();
  native.attachToParent(ours.native, down, up, parent);
  // A terminal sends Ctrl-C to this process, too: it would die before the parent's hooks are done.
  stopOnSignals(ours, signals, '');
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    const isHandled =
      process.listenerCount('uncaughtException') > 0 ||
      process.hasUncaughtExceptionCaptureCallback();
    if (!isHandled) native.sendToParent(encode(error).bytes);
  });
  // Before the listener that writes the errors that nobody was given: the parent has them then.
  process.prependListener('exit', () => native.sendToParent(null));
  // After that listener, which may set the exit code.
  process.on('exit', () => {
    const code = ownExitCode();
    if (code !== undefined) native.sendExitCode(code);
  });
}

/**
 * Whether this process is the child that has the line. A child that does not use the package leaves
 * the variable to its own children, which may outlive the parent, and have other files as the
 * descriptors.
 */
function isForThisProcess({ parent, down, pipe }: ForkSettings): boolean {
  // On Windows `ppid` stays the pid of a parent that has ended.
  if (process.platform === 'win32') return parent === process.ppid;
  const mayBeChild = parent === process.ppid || isGone(parent);
  return mayBeChild && binding().identityOfDescriptor(down as number) === pipe;
}

/** @returns undefined: `text` is for another process, or `fork()` has not written it */
function settingsOf(text: string): ForkSettings | undefined {
  try {
    const settings = JSON.parse(text) as ForkSettings;
    return isForThisProcess(settings) ? settings : undefined;
  } catch {
    return undefined;
  }
}

onFirstUse.push(() => {
  const text = process.env[FORK_VARIABLE];
  if (!isMainThread || text === undefined) return;
  delete process.env[FORK_VARIABLE];
  const settings = settingsOf(text);
  if (settings !== undefined) attach(settings);
});
