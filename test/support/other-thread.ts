/** A worker that runs functions of the test: looks at recorded errors and reports errors. */

import type { inspect, isDeepStrictEqual, types } from 'node:util';
import { Worker } from 'node:worker_threads';
import type * as allstop from 'allstop';

/**
 * The argument of a function that runs in the worker. The function can use no variable of the test.
 */
export type Tools = typeof allstop & {
  inspect: typeof inspect;
  isDeepStrictEqual: typeof isDeepStrictEqual;
  types: typeof types;
  coord: allstop.Coordinator;
};

/** `any`, because the tests look into errors of every kind. */
type AnyError = any;

export class OtherThread {
  readonly #worker = new Worker(new URL('../fixtures/error-worker.mjs', import.meta.url));
  readonly #pending = new Map<number, (answer: { value?: unknown; failure?: string }) => void>();
  #next = 0;

  constructor() {
    this.#worker.on('message', (answer: { id: number; value?: unknown; failure?: string }) => {
      this.#pending.get(answer.id)?.(answer);
      this.#pending.delete(answer.id);
    });
  }

  async #ask(request: object): Promise<unknown> {
    const id = this.#next++;
    const answered = new Promise<{ value?: unknown; failure?: string }>((resolve) => {
      this.#pending.set(id, resolve);
    });
    this.#worker.postMessage({ id, ...request });
    const { value, failure } = await answered;
    if (failure !== undefined) throw new Error(`In the other thread: ${failure}`);
    return value;
  }

  /** Calls `look` in the worker with the recorded error of `coord`. Resolves to its result. */
  async see<T>(
    coord: allstop.Coordinator,
    look: (error: AnyError, tools: Tools) => T,
  ): Promise<Awaited<T>> {
    const request = { operation: 'see', handle: coord.handle, source: look.toString() };
    return (await this.#ask(request)) as Awaited<T>;
  }

  /** Requests a stop of `coord` in the worker, with the value that `make` returns there. */
  async report(
    coord: allstop.Coordinator,
    make: (tools: Tools & { argument: AnyError }) => unknown,
    argument?: unknown,
  ): Promise<void> {
    const request = {
      operation: 'report',
      handle: coord.handle,
      source: make.toString(),
      argument,
    };
    await this.#ask(request);
  }

  /** Requests a stop of `to` in the worker, with the recorded error of `from`. */
  async pass(from: allstop.Coordinator, to: allstop.Coordinator): Promise<void> {
    await this.#ask({ operation: 'pass', from: from.handle, to: to.handle });
  }

  /** Releases all coordinators to which the worker has attached. */
  async forget(): Promise<void> {
    await this.#ask({ operation: 'forget' });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}
