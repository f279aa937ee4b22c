/** Which async task, looper or hook of this JavaScript thread the running code belongs to. */

import { AsyncLocalStorage } from 'node:async_hooks';

type Task = {
  /** The Attachment of the task's coordinator. */
  attachment: object;
  thread: {
    readonly id: number;
    /** Whether it is a part of the end: a hook, or a deferred function. */
    readonly isOfEnd?: boolean;
  };
  outer: Task | undefined;
};

const currentTask: AsyncLocalStorage<Task | undefined> = new AsyncLocalStorage();
/** The calls of `runInTask` that have not ended. */
let running = 0;

/** The innermost task that the caller runs in. */
function innermostTask(): Task | undefined {
  return running === 0 ? undefined : currentTask.getStore();
}

/** Calls `body` as code of the `thread` of a coordinator. */
export async function runInTask(
  attachment: object,
  thread: Task['thread'],
  body: () => unknown,
): Promise<void> {
  const task: Task = { attachment, thread, outer: innermostTask() };
  running += 1;
  try {
    await currentTask.run(task, body);
  } finally {
    task.outer = undefined; // else a task that starts a task, and so on, would leak
    running -= 1;
    // On Node 20 and 22 a storage that is in use makes each `await` of the thread three times slower.
    if (running === 0) currentTask.disable();
  }
}

/** The async tasks of this coordinator that the caller runs in. */
function enclosing(attachment: object): Task['thread'][] {
  const threads: Task['thread'][] = [];
  for (let task = innermostTask(); task !== undefined; task = task.outer) {
    if (task.attachment === attachment) threads.push(task.thread);
  }
  return threads;
}

/** The ids of the async tasks of this coordinator that the caller runs in. */
export function enclosingTasks(attachment: object): number[] {
  return enclosing(attachment).map(({ id }) => id);
}

/** The ids of the hooks and deferred functions of this coordinator that the caller runs in. */
export function enclosingHooks(attachment: object): number[] {
  const hooks = enclosing(attachment).filter(({ isOfEnd }) => isOfEnd === true);
  return hooks.map(({ id }) => id);
}

/**
 * Calls `body`, which calls code that the caller's task need not have set up, as code of no task.
 * The program's own AsyncLocalStorages keep the caller's stores.
 */
export function outsideTasks<T>(body: () => T): T {
  return innermostTask() === undefined ? body() : currentTask.run(undefined, body);
}

// What async tasks, loopers and hooks do now, for `diagnose()`: they have no stack.

type Doing = {
  /** The program's function that runs; undefined if that is not known. */
  readonly written: unknown;
  /** What it awaits, as far as this package knows. */
  awaits: (() => string) | undefined;
};

/** By coordinator and id. */
const doings = new WeakMap<object, Map<number, Doing>>();

/** What the registered thread `id` does in this JavaScript thread. */
export function doingOf(attachment: object, id: number): Doing | undefined {
  return doings.get(attachment)?.get(id);
}

/** Runs `body`, which calls the program's function `written`, as the registered thread `id`. */
export async function runWritten(
  attachment: object,
  id: number,
  body: () => unknown,
  written: unknown,
): Promise<void> {
  const here = doings.get(attachment) ?? new Map<number, Doing>();
  doings.set(attachment, here);
  here.set(id, { written, awaits: undefined });
  try {
    await body();
  } finally {
    here.delete(id);
  }
}

/** Awaits `promise`. Meanwhile `diagnose()` says of the innermost task around that it awaits `what`. */
export async function awaiting<T>(what: () => string, promise: Promise<T>): Promise<T> {
  const task = innermostTask();
  const doing = task && doingOf(task.attachment, task.thread.id);
  if (doing === undefined) return await promise;
  doing.awaits = what;
  try {
    return await promise;
  } finally {
    if (doing.awaits === what) doing.awaits = undefined;
  }
}
