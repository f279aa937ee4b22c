/** Async tasks: registered asynchronous functions of this JavaScript thread. */

import { innermostTask, runInTask } from '../../base/task-context.ts';
import type { Attachment } from '../attachment.ts';
import { Watch } from './watch.ts';

/** What async tasks await, by the task's coordinator and id, as far as this package knows. */
const awaited = new WeakMap<object, Map<number, () => string>>();

/** Awaits `promise`. Meanwhile `diagnose()` says of the innermost task around that it awaits `what`. */
export async function awaiting<T>(what: () => string, promise: Promise<T>): Promise<T> {
  const task = innermostTask();
  if (task === undefined) return await promise;
  const { attachment, thread } = task;
  const known = awaited.get(attachment) ?? new Map<number, () => string>();
  awaited.set(attachment, known);
  known.set(thread.id, what);
  try {
    return await promise;
  } finally {
    if (known.get(thread.id) === what) known.delete(thread.id);
  }
}

/** What the task `id` awaits; undefined if that is not known. */
export function awaitedBy(attachment: Attachment, id: number): string | undefined {
  return awaited.get(attachment)?.get(id)?.();
}

/** The program's functions that run as tasks, loopers and hooks now, by coordinator and id. */
const running = new WeakMap<Attachment, Map<number, unknown>>();

/** The program's function that runs in this JavaScript thread as the registered thread `id`. */
export function functionOf(attachment: Attachment, id: number): unknown {
  return running.get(attachment)?.get(id);
}

/**
 * Runs `body`, which calls the program's function `written`, as an async task. Never rejects:
 * errors go to the coordinator.
 */
export function runTask(
  attachment: Attachment,
  body: () => unknown,
  name: string,
  daemon: boolean | undefined,
  written: unknown,
): Promise<void> {
  return runAs(attachment, new Watch(attachment, 'task', name, { daemon }), body, written);
}

/**
 * Runs `body` as the thread that `watch` has registered; the thread ends with `body`. Never
 * rejects: errors go to the coordinator. `isTask`: false for a body that itself calls `runInTask`
 * for what it calls of the program.
 */
export async function runAs(
  attachment: Attachment,
  watch: Watch,
  body: () => unknown,
  written?: unknown,
  isTask = true,
): Promise<void> {
  try {
    const run = (): unknown => (isTask ? runInTask(attachment, watch, body) : body());
    await runWritten(attachment, watch.id, run, written);
  } catch (error) {
    watch.fail(error, { via: 'exception' });
  } finally {
    watch.end();
  }
}

/**
 * Runs `body` as the hook or deferred function `thread`: a join that `body` calls would wait for
 * itself.
 */
export async function runAtEnd(
  attachment: Attachment,
  { id }: { readonly id: number },
  body: () => unknown,
  written: unknown,
): Promise<void> {
  const run = (): unknown => runInTask(attachment, { id, isOfEnd: true }, body);
  await runWritten(attachment, id, run, written);
}

/** Runs `body`. Meanwhile `diagnose()` says where `written` is, the program's function in it. */
async function runWritten(
  attachment: Attachment,
  id: number,
  body: () => unknown,
  written: unknown,
): Promise<void> {
  const functions = running.get(attachment) ?? new Map<number, unknown>();
  running.set(attachment, functions);
  if (written !== undefined) functions.set(id, written);
  try {
    await body();
  } finally {
    functions.delete(id);
  }
}
