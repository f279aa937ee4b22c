/** A worker that runs functions of the test on a queue. */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type * as allstop from 'allstop';
import type { TestAddon } from './test-addon.ts';

/**
 * The argument of a function that runs in the worker. The function can use no variable of the test.
 */
export type QueueTools<T> = typeof allstop & {
  queue: allstop.BoundedQueue<T>;
  addon: TestAddon;
  /** Sends a message to `said()` in the test, even in the middle of a function that blocks. */
  say: (value: unknown) => void;
  /** Resolves when the pending waits of this thread have been registered with the native queue. */
  turns: () => Promise<void>;
};

export class QueueWorker<T> {
  readonly #worker: Worker;
  readonly #pending = new Map<number, (answer: { value?: never; failure?: Error }) => void>();
  readonly #listeners: ((value: unknown) => void)[] = [];
  #next = 0;

  constructor(queue: allstop.BoundedQueue<T>) {
    const url = new URL('../fixtures/queue-worker.mjs', import.meta.url);
    this.#worker = new Worker(url, { workerData: queue.handle });
    this.#worker.on('message', (answer: { id: number; said?: unknown }) => {
      if ('said' in answer) this.#listeners.shift()?.(answer.said);
      else {
        this.#pending.get(answer.id)?.(answer as object);
        this.#pending.delete(answer.id);
      }
    });
  }

  /** Runs the function in the worker. Rejects with the name and the message of its error. */
  async run<R, A>(run: (tools: QueueTools<T>, argument: A) => R, argument: A): Promise<Awaited<R>> {
    const id = this.#next++;
    const answered = new Promise<{ value?: Awaited<R>; failure?: Error }>((resolve) => {
      this.#pending.set(id, resolve);
    });
    this.#worker.postMessage({ id, source: run.toString(), argument });
    const { value, failure } = await answered;
    if (failure !== undefined) throw Object.assign(new Error(failure.message), failure);
    return value as Awaited<R>;
  }

  /** Resolves to the next message of `say`. */
  said(): Promise<unknown> {
    return new Promise((resolve) => {
      this.#listeners.push(resolve);
    });
  }

  async terminate(): Promise<void> {
    const exited = once(this.#worker, 'exit');
    void this.#worker.terminate();
    await exited;
  }
}
