/** Which async task, looper or hook of this JavaScript thread the running code belongs to. */

import { AsyncLocalStorage } from 'node:async_hooks';

export type Task = {
  /** The Attachment of the task's coordinator. */
  attachment: object;
  thread: { readonly id: number };
  outer: Task | undefined;
};

export const currentTask: AsyncLocalStorage<Task | undefined> = new AsyncLocalStorage();

/** The ids of the async tasks of this coordinator that the caller runs in. */
export function enclosingTasks(attachment: object): number[] {
  const ids: number[] = [];
  for (let task = currentTask.getStore(); task !== undefined; task = task.outer) {
    if (task.attachment === attachment) ids.push(task.thread.id);
  }
  return ids;
}

/**
 * Calls `body`, which calls code that the caller's task need not have set up, as code of no task.
 * The program's own AsyncLocalStorages keep the caller's stores.
 */
export function outsideTasks<T>(body: () => T): T {
  // Without a task not `run`, whose first call makes all promises of the thread slower (Node 20).
  return currentTask.getStore() === undefined ? body() : currentTask.run(undefined, body);
}
