/** Workers that find their coordinator as `Coordinator.current()`. */

import { threadId as ownThreadId, Worker, type WorkerOptions } from 'node:worker_threads';
import { nameOf } from '../base/arguments.ts';
import { binding } from '../native/native.ts';
import type { Attachment } from './attachment.ts';
import { execArgvOfWorker, withoutRefused } from './exec-argv.ts';
import { followWorker, register, type Watch } from './watch.ts';

/** A registered Worker that finds the coordinator as `Coordinator.current()`. */
export function spawn(
  attachment: Attachment,
  url: URL | string,
  options: WorkerOptions | undefined,
): Worker {
  return startWorker(attachment, url, options, (worker, name) => {
    register(attachment, worker, name);
  });
}

/** Such a Worker as the thread that `made` stands for, until it has exited. */
export function runInWorker(
  attachment: Attachment,
  made: Watch,
  url: URL,
  options: WorkerOptions,
): Promise<void> {
  return new Promise((resolve) => {
    startWorker(attachment, url, options, (worker) => {
      made.start(worker.threadId);
      followWorker(made, worker, resolve);
    });
  });
}

/**
 * A Worker that finds the coordinator as `Coordinator.current()`, and is nobody's thread.
 * `follow` is called before it can look for it.
 */
export function startWorker(
  attachment: Attachment,
  url: URL | string,
  options: WorkerOptions | undefined,
  follow: (worker: Worker, name: string) => void,
): Worker {
  const native = binding();
  const ticket = native.beginSpawn();
  try {
    const worker = newWorker(url, options);
    const name = nameOf(options ?? {}) ?? `worker-${worker.threadId}`;
    native.setSpawned(attachment.native, worker.threadId, name);
    follow(worker, name);
    return worker;
  } finally {
    native.endSpawn(ticket);
  }
}

function newWorker(url: URL | string, options: WorkerOptions | undefined): Worker {
  const execArgv = options?.execArgv === undefined ? execArgvOfWorker() : undefined;
  if (execArgv === undefined) return new Worker(url, options);
  try {
    return new Worker(url, { ...options, execArgv });
  } catch (error) {
    return new Worker(url, { ...options, execArgv: withoutRefused(execArgv, error) });
  }
}

/** From now on this thread finds the coordinator as `Coordinator.current()`, and has that name. */
export function setCurrent(attachment: Attachment, name: string): void {
  binding().setSpawned(attachment.native, ownThreadId, name);
}

/** This process ends when its parent has, whatever its threads compute. */
export function endWithParent(): void {
  binding().exitWithParent(process.ppid);
}
