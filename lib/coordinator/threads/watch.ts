/**
 * Registers threads and watches them: Workers, child processes, promises and objects with a
 * `join()`. The JavaScript thread that registers an object watches it. The core knows only the
 * name of a thread and whether it is alive.
 */

import type { ChildProcess } from 'node:child_process';
import type { Worker } from 'node:worker_threads';
import { holds, invalidType, nameOf } from '../../base/arguments.ts';
import { builtin, workerThreads } from '../../base/builtins.ts';
import { fieldOf, isThenable } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { SelfJoinError, UnavailableError } from '../../errors/errors.ts';
import { THREAD_KINDS, type ThreadKind } from '../../native/binding.ts';
import { binding, drain, onFirstUse } from '../../native/native.ts';
import { decode, encode, restoreClass } from '../../record/encoded-error.ts';
import type { Attachment } from '../attachment.ts';
import { type RequestOptions, report } from '../requests.ts';
import { isLinked, SAME_SIGNAL_MS, signalOfStop } from '../signal-links.ts';

// What a child process says after its exit was seen, and before it counts as ended.

type LastWords = {
  /** The error that the child has died of, if it has said so. */
  cause: { value: unknown } | undefined;
  /**
   * The exit code that allstop has set in the child, by its own account: 128 + n for a signal, 1 for
   * errors. Undefined if it has set none, or if it was for errors of which the child has told none.
   */
  exitCode: number | undefined;
};

/** Of children that may speak: calls `then` when all that the child has written was read. */
export const lastWords: WeakMap<ChildProcess, (then: (words: LastWords) => void) => void> =
  new WeakMap();

export { type ThreadInfo, toThreadInfo } from '../../events/spine.ts';

/** A Worker, a child process, a promise, or an object with a `join()`, such as a LooperThread. */
export type JoinableThread =
  | Worker
  | ChildProcess
  | PromiseLike<unknown>
  | { readonly name?: string; join(): PromiseLike<unknown> };

type WatchOptions = {
  threadId?: number | undefined;
  started?: boolean;
  /** Undefined: not said. */
  daemon?: boolean | undefined;
};

/** One registered thread of one coordinator, and its state. */
export class Watch {
  readonly attachment: Attachment;
  readonly kind: ThreadKind;
  readonly name: string;
  #threadId: number | undefined;
  #generation: number;
  #id: number;
  readonly #daemon: boolean | undefined;
  #state: 'not started' | 'running' | 'ended';

  /** With `started: false` no join waits for the thread until `start` is called. */
  constructor(
    attachment: Attachment,
    kind: ThreadKind,
    name: string,
    { threadId, started = true, daemon }: WatchOptions = {},
  ) {
    this.attachment = attachment;
    this.kind = kind;
    this.name = name;
    this.#threadId = threadId;
    this.#daemon = daemon;
    this.#state = started ? 'running' : 'not started';
    this.#generation = attachment.native.generation();
    this.#id = this.#register();
  }

  get id(): number {
    return this.#id;
  }

  get state(): 'not started' | 'running' | 'ended' {
    return this.#state;
  }

  /** The generation when the thread was started. The stops of later generations concern it. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * From now on joins wait for the thread. Called a second time, with a `threadId`, when the
   * worker that runs the thread has been started.
   */
  start(threadId?: number): void {
    const { native } = this.attachment;
    this.#threadId = threadId;
    const isFirst = this.#state === 'not started';
    if (isFirst) {
      this.#state = 'running';
      this.#generation = native.generation();
    }
    const isRegistered = native.startThread(this.#id, threadId);
    if (!isRegistered && isFirst) this.#id = this.#register(); // a join had forgotten it
  }

  #register(): number {
    const kind = THREAD_KINDS.indexOf(this.kind);
    const isStarted = this.#state !== 'not started';
    const { native } = this.attachment;
    return native.registerThread(kind, this.name, this.#threadId, isStarted, this.#daemon);
  }

  /** Registers the thread again if a join has forgotten it since its registration. */
  again(): void {
    if (this.#state === 'ended' || this.attachment.native.readmitThread(this.#id)) return;
    this.#id = this.#register();
  }

  /** Whether a stop was requested since the thread was started: the thread is expected to end. */
  get stopWasRequested(): boolean {
    const { attachment } = this;
    return attachment.shouldStop() || attachment.native.generation() !== this.#generation;
  }

  /** Reports an error of the thread. Call it before `end`. */
  fail(error: unknown, options: Omit<RequestOptions, 'hasCaller' | 'threadName'>): void {
    if (this.#state === 'ended') return;
    const from = { threadName: this.name, hasCaller: false, isThrown: true };
    report(this.attachment, error, { ...options, ...from });
  }

  /** Call it after `fail`, so that a join that waited for this thread finds the error. */
  end(): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.attachment.native.endThread(this.#id);
    drain();
  }
}

const watches = new WeakMap<Attachment, WeakMap<object, Watch>>();

/** The watches of a coordinator by the program's objects for its threads. */
export function watchesOf(attachment: Attachment): WeakMap<object, Watch> {
  let known = watches.get(attachment);
  if (known === undefined) {
    known = new WeakMap();
    watches.set(attachment, known);
  }
  return known;
}

function isProcess(thread: object): thread is ChildProcess {
  return thread instanceof builtin('node:child_process').ChildProcess;
}

function isWorker(thread: object): thread is Worker {
  return thread instanceof workerThreads().Worker;
}

/** Whether `thread` can be registered. Only reads properties. */
export function isThread(thread: unknown): thread is JoinableThread {
  return holds(() => {
    if (typeof thread === 'function') return isThenable(thread);
    if (typeof thread !== 'object' || thread === null) return false;
    // Object.create(Worker.prototype) or the like is no thread: it lacks the fields tested here.
    if (isWorker(thread)) return typeof thread.threadId === 'number';
    if (isProcess(thread)) return thread.exitCode !== undefined;
    if (isThenable(thread)) return true;
    // An array has a join(), which makes a string.
    const isArray = Array.isArray(thread) || ArrayBuffer.isView(thread);
    return !isArray && isCustom(thread);
  });
}

/** @throws TypeError; SelfJoinError: `thread` is the Coordinator of `attachment` */
export function checkThread(
  attachment: Attachment,
  name: string,
  thread: unknown,
): asserts thread is JoinableThread {
  if (!isThread(thread)) {
    const expected = 'a Worker, a ChildProcess, a promise, or an object with a join() method';
    throw invalidType(name, expected, thread);
  }
  if (thread === attachment.coordinator) {
    throw new SelfJoinError(
      `The coordinator '${attachment.native.name}' cannot be a thread of itself: its join() would ` +
        'wait for itself',
    );
  }
}

/**
 * Registers a thread and begins to watch it. A thread that is registered already keeps its name;
 * if a join has forgotten it, it is registered again.
 */
export function register(
  attachment: Attachment,
  thread: JoinableThread,
  name?: string,
  daemon?: boolean,
): void {
  const known = watchesOf(attachment);
  const earlier = known.get(thread);
  if (earlier !== undefined) earlier.again();
  else known.set(thread, beginWatch(attachment, thread, name, daemon));
}

function isCustom(thread: object): thread is { join(): PromiseLike<unknown> } {
  return typeof fieldOf(thread, 'join') === 'function';
}

function beginWatch(
  attachment: Attachment,
  thread: JoinableThread,
  name?: string,
  daemon?: boolean,
): Watch {
  if (isWorker(thread)) return watchWorker(attachment, thread, name, daemon);
  if (isProcess(thread)) return watchProcess(attachment, thread, name, daemon);
  // Before the check for a join(): an object with a `then` and a `join` is watched as a promise.
  if (holds(() => isThenable(thread))) {
    const promise = thread as PromiseLike<unknown>;
    return watchPromise(new Watch(attachment, 'task', name ?? 'promise'), promise);
  }
  const custom = thread as { join(): PromiseLike<unknown> };
  const watch = new Watch(attachment, 'custom', name ?? nameOf(custom) ?? 'thread');
  watchesOf(attachment).set(thread, watch); // first: its join() may pass the object to us again
  let joined: PromiseLike<unknown>;
  try {
    joined = custom.join();
  } catch (error) {
    joined = Promise.reject(error);
  }
  return watchPromise(watch, joined);
}

function watchPromise(watch: Watch, promise: PromiseLike<unknown>): Watch {
  // Not Promise.resolve(promise), which may return `promise` itself, with a `then` of its own.
  new Promise((resolve) => resolve(promise)).then(
    () => watch.end(),
    (error: unknown) => {
      watch.fail(error, { via: 'exception' });
      watch.end();
    },
  );
  return watch;
}

// The error that a worker died of. Node's `error` event in the parent loses the class of the error, so
// the worker's own thread encodes it before it dies.

/**
 * The errors of dying workers, by threadId. An entry stays until the worker has exited: several
 * coordinators may watch the worker, and `takeUncaught` gives an error only once.
 */
const uncaught = new Map<number, { value: unknown }>();

/**
 * The error that a worker died of. `received`: the error of Node's event, used if the worker
 * could not encode its own (a Worker that does not load the package).
 */
export function causeOfDeath(threadId: number, received: unknown): unknown {
  let known = uncaught.get(threadId);
  if (known === undefined) {
    const bytes = binding().takeUncaught(threadId);
    known = { value: bytes === null ? restoreClass(received) : decode(bytes).value };
    uncaught.set(threadId, known);
  }
  return known.value;
}

/** Call it when a worker has exited: removes its entries from the tables by threadId. */
export function forgetWorker(threadId: number): void {
  binding().forgetSpawned(threadId);
  uncaught.delete(threadId);
}

/** Whether the program handles uncaught errors in this thread, which then goes on. */
export const handlesUncaught = (): boolean =>
  process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback();

// Node emits 'uncaughtExceptionMonitor' before the worker dies of the error. A listener does not
// prevent the death.
onFirstUse.push(() => {
  if (workerThreads().isMainThread) return;
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    binding().noteUncaught(encode(error).bytes, !handlesUncaught());
  });
});

/** The exit code of a worker after `terminate()`. */
const TERMINATED = 1;
/** The threadId of a Worker that has exited. */
const EXITED = -1;

function watchWorker(
  attachment: Attachment,
  worker: Worker,
  name?: string,
  daemon?: boolean,
): Watch {
  const { threadId } = worker;
  if (threadId === EXITED) {
    const ended = new Watch(attachment, 'worker', name ?? 'worker');
    ended.end();
    return ended;
  }
  const watch = new Watch(attachment, 'worker', name ?? `worker-${threadId}`, { threadId, daemon });
  followWorker(watch, worker, () => watch.end());
  return watch;
}

/** Reports the error of a worker that dies as the failure of `watch`. Calls `ended` at its exit. */
export function followWorker(watch: Watch, worker: Worker, ended: () => void): void {
  const { threadId } = worker;
  let failed = false;
  worker.on('error', (error: unknown) => {
    failed = true;
    watch.fail(causeOfDeath(threadId, error), { via: 'worker-exit', threadId });
  });
  worker.on('exit', (code) => {
    forgetWorker(threadId);
    const expected = code === 0 || (code === TERMINATED && watch.stopWasRequested);
    if (!failed && !expected) {
      const asked = code === TERMINATED ? 'was it terminated, or ' : '';
      const error = new UnavailableError(
        `Worker '${watch.name}' exited with code ${code} without an error: ` +
          `${asked}did it call process.exit(${code})?`,
      );
      watch.fail(Object.assign(error, { exitCode: code }), { via: 'worker-exit', threadId });
    }
    ended();
  });
}

/** A process that a signal has ended exits with more: this and the number of the signal. */
const SIGNALLED = 128;

function watchProcess(
  attachment: Attachment,
  child: ChildProcess,
  name?: string,
  daemon?: boolean,
): Watch {
  const { pid } = child;
  const watch = new Watch(attachment, 'process', name ?? `process-${pid ?? 'unstarted'}`, {
    threadId: pid,
    daemon,
  });
  const from = pid === undefined ? {} : { pid };
  const onExit = (
    code: number | null,
    signal: NodeJS.Signals | null,
    words?: LastWords,
    wasEarly = false, // the child died before the stop, if there is one by now
  ): void => {
    const linked = linkedSignal(code, signal);
    const isOwn = code !== null && words?.exitCode === code; // set by allstop in the child
    const isKilled = code === null || linked !== undefined || (isOwn && code > SIGNALLED);
    const isOfSignal = (): boolean => linked !== undefined && signalOfStop(attachment) === linked;
    const isStopped = wasEarly ? isOfSignal() : watch.stopWasRequested;
    const expected = code === 0 || (isKilled && isStopped);
    const isTold = isOwn && code < SIGNALLED;
    if (!expected && words?.cause !== undefined) {
      watch.fail(words.cause.value, { via: 'worker-exit', ...from });
    } else if (!expected && !isTold) {
      const how =
        code === null ? `was killed by ${signal}` : `exited with code ${code}: see its output`;
      const error = new UnavailableError(`Process '${watch.name}' ${how}`);
      const fields = code === null ? { exitSignal: signal } : { exitCode: code };
      const by = signal === null ? {} : { signal };
      watch.fail(Object.assign(error, fields), { via: 'worker-exit', ...from, ...by });
    }
    watch.end();
  };
  if (child.exitCode !== null || child.signalCode !== null) {
    onExit(child.exitCode, child.signalCode);
    return watch;
  }
  child.on('error', (error) => {
    watch.fail(error, { via: 'worker-exit', ...from });
    if (child.pid === undefined) watch.end(); // the child never started, so it emits no 'exit'
  });
  child.on('exit', (code, signal) => {
    const ended = (words?: LastWords): void => {
      const isLate = words?.cause !== undefined || watch.stopWasRequested;
      if (isLate || linkedSignal(code, signal) === undefined) onExit(code, signal, words);
      else afterStop(attachment, () => onExit(code, signal, words, true));
    };
    const listenTo = lastWords.get(child);
    if (listenTo === undefined) ended();
    else listenTo(ended);
  });
  return watch;
}

/**
 * The signal that has ended a process, if a coordinator stops at it, too. A process that handles a
 * signal, such as a shell, often exits with 128 + its number.
 */
function linkedSignal(
  code: number | null,
  signal: NodeJS.Signals | null,
): NodeJS.Signals | undefined {
  const names = Object.keys(builtin('node:os').constants.signals) as NodeJS.Signals[];
  const all =
    signal === null
      ? names.filter((name) => code === SIGNALLED + builtin('node:os').constants.signals[name])
      : [signal];
  return all.find(isLinked);
}

/**
 * Calls `then` once: at the next stop, or after SAME_SIGNAL_MS. The death of a child of Ctrl-C waits
 * for the program's own stop.
 */
function afterStop(attachment: Attachment, then: () => void): void {
  const end = (): void => {
    timer.clear();
    unlisten();
    then();
  };
  const timer = new Timer(SAME_SIGNAL_MS, end);
  const unlisten = attachment.listen('stop', end);
}
