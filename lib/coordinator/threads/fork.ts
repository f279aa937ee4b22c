/**
 * Starts child processes that find their coordinator with `Coordinator.current()`. The stop reaches
 * the child by native threads (native/binding/fork_line.h). What the child says arrives here, as
 * frames of a stream: this thread relays it to the coordinator, whose record is the answer.
 */

import type { ChildProcess, ForkOptions } from 'node:child_process';
import type { Readable } from 'node:stream';
import {
  type Checks,
  checkBoolean,
  checkOneOf,
  checkOptions,
  checkString,
  invalidType,
  ofNode,
} from '../../base/arguments.ts';
import { builtin, workerThreads } from '../../base/builtins.ts';
import { moduleFileOrPath } from '../../base/module-file.ts';
import { attempt, fieldOf, messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { FORK_FRAMES, type NativeForkFrame } from '../../native/binding.ts';
import { binding, onFirstUse } from '../../native/native.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { activeText, inheritAs } from '../../telemetry/spans.ts';
import { Attachment } from '../attachment.ts';
import { relay, relayReport } from '../requests.ts';
import { linkedSignals, stopOnSignals } from '../signal-links.ts';
import { ownExitCode } from '../unseen-errors.ts';
import { handlesUncaught, lastWords, register } from './watch.ts';
import { setCurrent } from './workers.ts';

// The parent's end of the line to a child process (native/binding/fork_line.h): opens it before the
// child is started, so that the child hears this coordinator's stop on a native thread, and cuts
// what the child sends into frames.

/** The bytes of a frame's length, before it. */
const LENGTH_BYTES = 4;

/** What the start of the child needs of the line. */
type LineEnd = {
  readonly id: number;
  /** The descriptors that the child inherits, as entries of `stdio`: none on Windows. */
  readonly inherited: readonly number[];
  /** Where the child finds its end, if the first of `inherited` is its descriptor `at`. */
  down(at: number): number | string;
};

function open(attachment: Attachment): { id: number; end: number | string } {
  try {
    return binding().openForkLine(attachment.native);
  } catch (error) {
    const text = `The process cannot be started: ${messageOf(error)}`;
    throw new UnavailableError(text, { cause: error });
  }
}

/**
 * Calls `start`, which starts the child. If it throws, the line is closed. If this thread is
 * terminated here, no `finally` runs: the line ends with the thread, and closes its descriptors.
 *
 * @throws UnavailableError: the system has no descriptor or thread for the line; what `start` throws
 */
export function openLine<T>(attachment: Attachment, start: (line: LineEnd) => T): T {
  const native = binding();
  const { id, end } = open(attachment);
  const inherited = typeof end === 'number' ? [end] : [];
  try {
    return start({ id, inherited, down: (at) => (typeof end === 'number' ? at : end) });
  } catch (error) {
    native.closeForkLine(id);
    throw error;
  } finally {
    native.closeForkDescriptor(id);
  }
}

/** Cuts what arrives on a stream into frames (native/binding/fork_frame.h). */
class FrameReader {
  #pieces: Buffer[] = [];
  #length = 0;
  /** How long the pieces have to be until a frame, or its length, is whole. */
  #needed = LENGTH_BYTES;

  /** @returns the frames that `bytes` has made whole, without their lengths */
  add(bytes: Buffer): Buffer[] {
    this.#pieces.push(bytes);
    this.#length += bytes.length;
    const frames: Buffer[] = [];
    // The pieces of a long frame are joined when its length is known, and when it is whole.
    if (this.#length >= this.#needed) {
      const all = Buffer.concat(this.#pieces);
      let at = 0;
      let needed = LENGTH_BYTES;
      while (all.length - at >= LENGTH_BYTES) {
        needed = LENGTH_BYTES + all.readUInt32LE(at);
        if (all.length - at < needed) break;
        frames.push(all.subarray(at + LENGTH_BYTES, at + needed));
        at += needed;
        needed = LENGTH_BYTES;
      }
      this.#pieces = [all.subarray(at)];
      this.#length = all.length - at;
      this.#needed = needed;
    }
    return frames;
  }
}

// The child's end of `coord.fork()`: on the first use of the package this process makes the
// coordinator that `Coordinator.current()` finds, and attaches it to its parent.

/**
 * The environment variable that has the ForkSettings as JSON. The child deletes it, so that its own
 * children do not take the line for theirs.
 */
const FORK_VARIABLE = 'ALLSTOP_FORK';

type ForkSettings = {
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

function attach(settings: ForkSettings): void {
  const { parent, down, up, thread = `process-${process.pid}` } = settings;
  ours = Attachment.create(settings.coordinator, settings.types, settings.graceMs);
  setCurrent(ours, thread);
  inheritAs(settings.context);
  const native = binding();
  native.attachToParent(ours.native, down, up, parent);
  // A terminal sends Ctrl-C to this process, too: it would die before the parent's hooks are done.
  stopOnSignals(ours, settings.signals, '');
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    if (!handlesUncaught()) native.sendToParent(encode(error).bytes);
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
  return mayBeChild && binding().identityOfDescriptor(Number(down)) === pipe;
}

/** @returns undefined: `text` is for another process, or `fork()` has not written it */
function settingsOf(text: string): ForkSettings | undefined {
  return attempt(() => {
    const settings: ForkSettings = JSON.parse(text);
    return isForThisProcess(settings) ? settings : undefined;
  });
}

onFirstUse.push(() => {
  const text = process.env[FORK_VARIABLE];
  if (!workerThreads().isMainThread || text === undefined) return;
  delete process.env[FORK_VARIABLE];
  const settings = settingsOf(text);
  if (settings !== undefined) attach(settings);
});

/** The options of `fork`: those of Node's, and two of ours. */
export type CoordinatorForkOptions = ForkOptions & {
  /** The name of the thread; by default `process-` and the pid. */
  name?: string | undefined;
  /** As the option `daemon` of `start`. Default: false. */
  daemon?: boolean | undefined;
};

/** Of Node's `fork`, and two of ours. */
const FORK_OPTIONS: Checks = {
  name: checkString,
  daemon: checkBoolean,
  ...ofNode('cwd detached env execArgv execPath gid killSignal serialization signal silent stdio'),
  ...ofNode('timeout uid windowsHide windowsVerbatimArguments'),
};

/** The exit code that allstop sets for errors. */
const FAILED = 1;

/** How long after the exit of a child its last frames are waited for, if its pipe stays open. */
const CLOSE_TIMEOUT_MS = 500;

/** Starts a child process and registers it as a thread. */
export function fork(
  attachment: Attachment,
  module: URL | string,
  args: readonly string[] | undefined,
  options: CoordinatorForkOptions | undefined,
): ChildProcess {
  if (typeof module !== 'string' && !(module instanceof URL))
    throw invalidType('module', 'of type string or an instance of URL', module);
  if (args !== undefined && !Array.isArray(args))
    throw invalidType('args', 'an array of strings', args);
  for (const arg of args ?? []) checkString('args[]', arg);
  const { name, daemon, ...rest } = checkOptions(
    'options',
    options,
    FORK_OPTIONS,
  ) as CoordinatorForkOptions;
  const stdio = stdioOf(rest);
  const context = activeText();
  return openLine(attachment, ({ id, inherited, down }) => {
    const up = stdio.length + inherited.length;
    const [pipe] = inherited.map((end) => binding().identityOfDescriptor(end));
    const settings: ForkSettings = {
      parent: process.pid,
      down: down(stdio.length),
      pipe,
      up,
      coordinator: attachment.native.name,
      types: attachment.native.cleanStopTypes(),
      graceMs: attachment.native.stopGracePeriodMs,
      signals: linkedSignals(),
      ...(name !== undefined && { thread: name }),
      ...(context !== undefined && { context }),
    };
    const child = builtin('node:child_process').fork(moduleFileOrPath(module), args ?? [], {
      ...rest,
      stdio: [...stdio, ...inherited, 'pipe'],
      env: { ...(rest.env ?? process.env), [FORK_VARIABLE]: JSON.stringify(settings) },
    });
    // Without a free descriptor Node makes no streams: 'error' says so.
    const streams: ChildProcess['stdio'] | undefined = child.stdio;
    listen(attachment, child, streams?.[up] as Readable | null | undefined, id);
    register(attachment, child, name, daemon);
    binding().keepForkLine(id);
    return child;
  });
}

type Stdio = Exclude<NonNullable<ForkOptions['stdio']>, string>;

/**
 * The stdio that Node's `fork` would give the child, at least its first three descriptors: the line
 * must not be one of them. What is wrong in it, Node refuses.
 */
function stdioOf({ stdio, silent }: ForkOptions): Stdio {
  if (Array.isArray(stdio)) {
    const hasChannel = stdio.includes('ipc');
    const missing = Math.max(0, 3 - stdio.length);
    if (hasChannel) return [...stdio, ...Array.from({ length: missing }, () => 'pipe' as const)];
    const error = new TypeError(
      "Forked processes must have an IPC channel, missing value 'ipc' in options.stdio",
    );
    throw Object.assign(error, { code: 'ERR_CHILD_PROCESS_IPC_REQUIRED' });
  }
  const each = stdio ?? (silent ? 'pipe' : 'inherit');
  checkOneOf('options.stdio', ['pipe', 'inherit', 'ignore', 'overlapped'], each);
  return [each, each, each, 'ipc'];
}

/** Relays what the child says until it has ended. */
function listen(
  attachment: Attachment,
  child: ChildProcess,
  stream: (Readable & { ref?(): void; unref?(): void }) | null | undefined,
  line: number,
): void {
  const native = binding();
  let cause: { value: unknown } | undefined;
  let exitCode: number | undefined;
  let hasToldError = false;
  const serve = ({ frame, error, requester, id }: NativeForkFrame): void => {
    const kind = FORK_FRAMES[frame];
    if (kind === 'unknown') return;
    if (kind === 'exiting') {
      exitCode = Number(id);
    } else if (kind === 'dying') {
      if (error !== null) cause = { value: decode(error).value };
    } else {
      if (error !== null) hasToldError = true;
      if (kind === 'reported') {
        if (error !== null) relayReport(attachment, error, requester, true);
        return;
      }
      // A plain stop that crossed with this coordinator's: it must not stop one that was cleared.
      const isPast = error === null && native.forkLineHasStopped(line);
      if (!isPast) relay(attachment, error, { ...requester, isThrown: true }, id);
      if (!attachment.shouldStop()) native.refuseForkAnswer(line);
    }
  };
  let isRead = stream === null || stream === undefined;
  const waiting = new Set<() => void>();
  const read = (): void => {
    isRead = true;
    stream?.destroy();
    for (const then of waiting) then();
    waiting.clear();
  };
  const frames = new FrameReader();
  stream?.on('data', (bytes: Buffer) => {
    for (const bytesOfFrame of frames.add(bytes)) {
      const frame = native.readForkFrame(bytesOfFrame);
      if (frame !== null) serve(frame);
    }
  });
  stream?.once('end', read);
  stream?.once('error', read);
  stream?.unref?.(); // the child keeps this event loop alive, unless the program unrefs it
  child.once('exit', () => {
    stream?.ref?.();
    native.closeForkLine(line);
  });
  child.once('error', () => {
    if (child.pid === undefined) native.closeForkLine(line);
  });
  lastWords.set(child, (then) => {
    const told = (): void =>
      then({ cause, exitCode: exitCode === FAILED && !hasToldError ? undefined : exitCode });
    if (isRead) {
      told();
      return;
    }
    const timer = new Timer(CLOSE_TIMEOUT_MS, read);
    waiting.add(() => {
      timer.clear();
      told();
    });
  });
}
