/** Async tasks: registered asynchronous functions of this JavaScript thread. */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attachment } from '../attachment.ts';
import { Watch } from './watch.ts';

type Task = { attachment: Attachment; thread: { readonly id: number }; outer: Task | undefined };

const currentTask = new AsyncLocalStorage<Task>();

/** The ids of the async tasks of this coordinator that the caller runs in. */
export function enclosingTasks(attachment: Attachment): number[] {
  const ids: number[] = [];
  for (let task = currentTask.getStore(); task !== undefined; task = task.outer) {
    if (task.attachment === attachment) ids.push(task.thread.id);
  }
  return ids;
}

/** Runs `body` as an async task. Never rejects: errors go to the coordinator. */
export function runTask(
  attachment: Attachment,
  body: () => unknown,
  name: string | undefined,
): Promise<void> {
  return runAs(attachment, new Watch(attachment, 'task', name ?? 'task'), body);
}

/**
 * Runs `body` as the thread that `watch` has registered; the thread ends with `body`. Never
 * rejects: errors go to the coordinator.
 */
export async function runAs(
  attachment: Attachment,
  watch: Watch,
  body: () => unknown,
): Promise<void> {
  try {
    await runWithin(attachment, watch, body);
  } catch (error) {
    watch.fail(error, { via: 'exception' });
  } finally {
    watch.end();
  }
}

/** Runs `body` as the registered `thread`: a join that `body` calls would wait for itself. */
export async function runWithin(
  attachment: Attachment,
  thread: { readonly id: number },
  body: () => unknown,
): Promise<void> {
  const task: Task = { attachment, thread, outer: currentTask.getStore() };
  try {
    await currentTask.run(task, body);
  } finally {
    task.outer = undefined; // else a task that starts a task, and so on, would leak
  }
}
