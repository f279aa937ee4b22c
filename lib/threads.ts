/**
 * What can be joined, and how its end is learnt. The JavaScript thread that
 * registers an object watches it; the core knows only names and whether they live.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { ChildProcess } from 'node:child_process';
import { isMainThread, Worker, type WorkerOptions } from 'node:worker_threads';
import { holds, invalidType, nameOf } from './arguments.ts';
import { type Attachment, drain, onFirstUse, type RequestOptions } from './attachment.ts';
import { decode, encode, restoreClass } from './error-record.ts';
import { UnavailableError } from './errors.ts';
import { binding, type NativeThread, THREAD_KINDS, type ThreadKind } from './native.ts';

/** Anything that ends: a Worker, a child process, a promise, or what has a `join()`. */
export type JoinableThread =
  | Worker
  | ChildProcess
  | PromiseLike<unknown>
  | { readonly name?: string; join(): PromiseLike<unknown> };

/** A registered thread, or one of the last 64 that have ended. */
export type ThreadInfo = {
  name: string;
  kind: ThreadKind;
  /** Started and not ended. */
  alive: boolean;
  /** JavaScript's threadId, the OS thread id of a native thread, or a pid. */
  threadId?: number;
  startedAt: Date;
  endedAt?: Date;
  /** It has not been seen to end: the JavaScript thread that watched it has ended. */
  unobserved?: true;
};

export function toThreadInfo(native: NativeThread): ThreadInfo {
  const info: ThreadInfo = {
    name: native.name,
    kind: THREAD_KINDS[native.kind] ?? 'custom',
    alive: native.alive,
    startedAt: new Date(native.startedAt),
  };
  if (native.threadId !== undefined) info.threadId = native.threadId;
  if (native.endedAt !== 0) info.endedAt = new Date(native.endedAt);
  if (native.unobserved) info.unobserved = true;
  return info;
}

/** One watched object of one coordinator. */
class Watch {
  readonly #attachment: Attachment;
  readonly #kind: ThreadKind;
  readonly name: string;
  readonly #threadId: number | undefined;
  readonly #generation: number;
  #id: number;
  #ended = false;

  constructor(attachment: Attachment, kind: ThreadKind, name: string, threadId?: number) {
    this.#attachment = attachment;
    this.#kind = kind;
    this.name = name;
    this.#threadId = threadId;
    this.#generation = attachment.native.generation();
    this.#id = this.#register();
  }

  get id(): number {
    return this.#id;
  }

  #register(): number {
    const kind = THREAD_KINDS.indexOf(this.#kind);
    return this.#attachment.native.registerThread(kind, this.name, this.#threadId);
  }

  /** Registered once more: no matter while it is, needed when a join has forgotten it. */
  again(): void {
    if (this.#ended || this.#attachment.native.readmitThread(this.#id)) return;
    this.#id = this.#register();
  }

  /** Whether a stop was requested since it was registered: then its end is expected. */
  get stopWasRequested(): boolean {
    return (
      this.#attachment.shouldStop() || this.#attachment.native.generation() !== this.#generation
    );
  }

  fail(error: unknown, options: Omit<RequestOptions, 'hasCaller' | 'threadName'>): void {
    if (this.#ended) return;
    this.#attachment.report(error, { ...options, threadName: this.name, hasCaller: false });
  }

  /** After `fail`, so that a join which waited for this finds the error. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#attachment.native.endThread(this.#id);
    drain();
  }
}

const watches = new WeakMap<Attachment, WeakMap<object, Watch>>();

function isWorker(thread: object): thread is Worker {
  return thread instanceof Worker;
}

function isPromiseLike(value: object): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown>).then === 'function';
}

/** Whether it can be joined. Reads what tells, and changes nothing. */
export function isThread(thread: unknown): thread is JoinableThread {
  return holds(() => {
    if (typeof thread === 'function') return isPromiseLike(thread);
    if (typeof thread !== 'object' || thread === null) return false;
    // An object that only inherits from one of the two has no thread.
    if (isWorker(thread)) return typeof thread.threadId === 'number';
    if (thread instanceof ChildProcess) return thread.exitCode !== undefined;
    if (isPromiseLike(thread)) return true;
    // Arrays have a join(), which waits for nothing.
    const isArray = Array.isArray(thread) || ArrayBuffer.isView(thread);
    return !isArray && isCustom(thread);
  });
}

export function checkThread(name: string, thread: unknown): asserts thread is JoinableThread {
  if (isThread(thread)) return;
  const expected = 'a Worker, a ChildProcess, a promise, or an object with a join() method';
  throw invalidType(name, expected, thread);
}

/** Registers, and begins to watch. Twice is harmless. */
export function register(attachment: Attachment, thread: JoinableThread, name?: string): void {
  let known = watches.get(attachment);
  if (known === undefined) {
    known = new WeakMap();
    watches.set(attachment, known);
  }
  const earlier = known.get(thread);
  if (earlier !== undefined) earlier.again();
  else known.set(thread, watch(attachment, thread, name));
}

function isCustom(thread: object): thread is { join(): PromiseLike<unknown> } {
  return holds(() => typeof (thread as { join?: unknown }).join === 'function');
}

function watch(attachment: Attachment, thread: JoinableThread, name?: string): Watch {
  if (isWorker(thread)) return watchWorker(attachment, thread, name);
  if (thread instanceof ChildProcess) return watchProcess(attachment, thread, name);
  // First, as a promise that can also be joined is a promise.
  if (holds(() => isPromiseLike(thread))) {
    const promise = thread as PromiseLike<unknown>;
    return watchPromise(new Watch(attachment, 'task', name ?? 'promise'), promise);
  }
  const custom = thread as { join(): PromiseLike<unknown> };
  const made = new Watch(attachment, 'custom', name ?? nameOf(custom) ?? 'thread');
  let joined: PromiseLike<unknown>;
  try {
    joined = custom.join();
  } catch (error) {
    joined = Promise.reject(error);
  }
  return watchPromise(made, joined);
}

function watchPromise(made: Watch, promise: PromiseLike<unknown>): Watch {
  // Not Promise.resolve(), which would trust a promise's own `then` and `constructor`.
  new Promise((resolve) => resolve(promise)).then(
    () => made.end(),
    (error: unknown) => {
      made.fail(error, { via: 'exception' });
      made.end();
    },
  );
  return made;
}

/** What `terminate()` makes a worker exit with. */
const TERMINATED = 1;
/** The threadId of a Worker that has exited. */
const EXITED = -1;

/** What workers died of, for all who watch them, until they have exited. */
const uncaught = new Map<number, { value: unknown }>();

/** Its own thread has encoded the error if it could: class and fields intact. */
function uncaughtIn(threadId: number, received: unknown): unknown {
  let known = uncaught.get(threadId);
  if (known === undefined) {
    const bytes = binding().takeUncaught(threadId);
    known = { value: bytes === null ? restoreClass(received) : decode(bytes).value };
    uncaught.set(threadId, known);
  }
  return known.value;
}

function watchWorker(attachment: Attachment, worker: Worker, name?: string): Watch {
  const { threadId } = worker;
  if (threadId === EXITED) {
    const ended = new Watch(attachment, 'worker', name ?? 'worker');
    ended.end();
    return ended;
  }
  const made = new Watch(attachment, 'worker', name ?? `worker-${threadId}`, threadId);
  let failed = false;
  worker.on('error', (error: unknown) => {
    failed = true;
    made.fail(uncaughtIn(threadId, error), { via: 'worker-exit', threadId });
  });
  worker.on('exit', (code) => {
    binding().forgetSpawned(threadId);
    uncaught.delete(threadId);
    const expected = code === 0 || (code === TERMINATED && made.stopWasRequested);
    if (!failed && !expected) {
      const error = new UnavailableError(`Worker '${made.name}' exited with code ${code}`);
      made.fail(Object.assign(error, { exitCode: code }), { via: 'worker-exit', threadId });
    }
    made.end();
  });
  return made;
}

function watchProcess(attachment: Attachment, child: ChildProcess, name?: string): Watch {
  const { pid } = child;
  const made = new Watch(attachment, 'process', name ?? `process-${pid ?? 'unstarted'}`, pid);
  const from = pid === undefined ? {} : { pid };
  const onExit = (code: number | null, signal: NodeJS.Signals | null): void => {
    const expected = code === 0 || (code === null && made.stopWasRequested);
    if (!expected) {
      const how = code === null ? `was killed by ${signal}` : `exited with code ${code}`;
      const error = new UnavailableError(`Process '${made.name}' ${how}`);
      const fields = code === null ? { exitSignal: signal } : { exitCode: code };
      const by = signal === null ? {} : { signal };
      made.fail(Object.assign(error, fields), { via: 'worker-exit', ...from, ...by });
    }
    made.end();
  };
  if (child.exitCode !== null || child.signalCode !== null) {
    onExit(child.exitCode, child.signalCode);
    return made;
  }
  child.on('error', (error) => {
    made.fail(error, { via: 'worker-exit', ...from });
    if (child.pid === undefined) made.end(); // it never started, so it will not exit
  });
  child.on('exit', onExit);
  return made;
}

// ---------------------------------------------------------------- tasks

type Task = { attachment: Attachment; watch: Watch; outer: Task | undefined };

const currentTask = new AsyncLocalStorage<Task>();

/** The registered tasks of this coordinator that the caller runs in. */
export function enclosingTasks(attachment: Attachment): number[] {
  const ids: number[] = [];
  for (let task = currentTask.getStore(); task !== undefined; task = task.outer) {
    if (task.attachment === attachment) ids.push(task.watch.id);
  }
  return ids;
}

/** Runs `body` as a registered task. Never rejects: errors go to the coordinator. */
export async function runTask(
  attachment: Attachment,
  body: () => unknown,
  name: string | undefined,
): Promise<void> {
  const made = new Watch(attachment, 'task', name ?? 'task');
  const task: Task = { attachment, watch: made, outer: currentTask.getStore() };
  try {
    await currentTask.run(task, body);
  } catch (error) {
    made.fail(error, { via: 'exception' });
  } finally {
    made.end();
    task.outer = undefined; // or tasks that start tasks, for ever, would form a chain
  }
}

// ---------------------------------------------------------------- workers

/** A registered Worker that finds the coordinator as `Coordinator.current()`. */
export function spawn(
  attachment: Attachment,
  url: URL | string,
  options: WorkerOptions | undefined,
): Worker {
  const native = binding();
  const ticket = native.beginSpawn();
  try {
    const worker = new Worker(url, options);
    const name = nameOf(options ?? {}) ?? `worker-${worker.threadId}`;
    native.setSpawned(attachment.native, worker.threadId, name);
    register(attachment, worker, name);
    return worker;
  } finally {
    native.endSpawn(ticket);
  }
}

// In a worker, an error that will kill it is encoded while class and fields are
// there; the thread that has registered the worker takes it from there.
onFirstUse.push(() => {
  if (isMainThread) return;
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    binding().noteUncaught(encode(error).bytes);
  });
});
