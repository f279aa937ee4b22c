/** A worker that looks at errors and reports its own, as the test says. */

import type { inspect, isDeepStrictEqual, types } from 'node:util';
import { Worker } from 'node:worker_threads';
import type * as allstop from 'allstop';

/** What a function gets that runs over there; it sees nothing else, and no variable of here. */
export type Tools = typeof allstop & {
  inspect: typeof inspect;
  isDeepStrictEqual: typeof isDeepStrictEqual;
  types: typeof types;
  coord: allstop.Coordinator;
};

/** The tests look into errors of every kind. */
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

  /** What `look` makes of the recorded error, over there. */
  async see<T>(
    coord: allstop.Coordinator,
    look: (error: AnyError, tools: Tools) => T,
  ): Promise<Awaited<T>> {
    const request = { operation: 'see', handle: coord.handle, source: look.toString() };
    return (await this.#ask(request)) as Awaited<T>;
  }

  /** Requests a stop over there, with what `make` makes. */
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

  /** Reports, over there, the error of `from` to `to`. */
  async pass(from: allstop.Coordinator, to: allstop.Coordinator): Promise<void> {
    await this.#ask({ operation: 'pass', from: from.handle, to: to.handle });
  }

  /** Lets go of all coordinators that it has attached to. */
  async forget(): Promise<void> {
    await this.#ask({ operation: 'forget' });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}
