/**
 * What the workers of one slot make before they take functions: data sets and their iterators
 * (resources), in the order in which they were defined.
 *
 * 1. A resource of the present worker waits in `#waiting`, is in `#making` from when the worker is
 *    sent it until the worker has made it. Nothing waits while nothing is made.
 * 2. A death while several were made may be the fault of any: it is charged to none, and the next
 *    workers make one at a time until each of these was made. So the next death is charged to the
 *    one that causes it.
 * 3. One that was charged with more than `retries` deaths in a row has failed: the next workers
 *    are sent its error in its place.
 */

import { messageOf } from '../../base/thrown-value.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { notMade } from '../../errors/phases.ts';
import { encode } from '../../record/encoded-error.ts';
import { passedAsBytes } from '../../values/packed-arguments.ts';
import type { StrategyHost } from '../queue/strategy.ts';
import type { WorkerResource } from '../worker/messages.ts';
import type { WorkerChannel } from './channel.ts';

type Host = Pick<StrategyHost, 'retries'>;

export class Preparations {
  readonly #host: Host;
  #channel: WorkerChannel | undefined;
  readonly #making = new Map<number, WorkerResource>();
  #waiting: WorkerResource[] = [];
  /** Deaths that are charged to those that may have caused one, since they were last made. */
  readonly #deaths = new Map<number, number>();
  /** The iterators that the worker has made. */
  readonly #iterators = new Set<number>();
  /** The encoded errors of those that have failed. */
  readonly #failed = new Map<number, Uint8Array>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** A worker was started. */
  begin(channel: WorkerChannel): void {
    this.#channel = channel;
  }

  /** Whether the worker takes functions: it has made what it has to make before. */
  get areOver(): boolean {
    return this.#making.size === 0;
  }

  /** Why the worker takes no functions. */
  get cause(): string | undefined {
    const first = [...this.#making.values()].find((resource) => this.#isAtWork(resource));
    return first && notMade(functionOf(first));
  }

  add(resource: WorkerResource): void {
    this.#waiting.push(resource);
    this.#advance();
  }

  /** Nobody will use the resource any more. */
  forget(id: number): void {
    this.#waiting = this.#waiting.filter((resource) => resource.id !== id);
    this.#iterators.delete(id);
    this.#failed.delete(id);
  }

  /** Whether the worker has iterators, which it has to let go before it ends. */
  get hasIterators(): boolean {
    return this.#iterators.size > 0;
  }

  /** The worker has made a resource, or knows that it is impossible. */
  made(id: number): void {
    if (this.#making.get(id)?.kind === 'iterator') this.#iterators.add(id);
    this.#making.delete(id);
    this.#deaths.delete(id);
    this.#advance();
  }

  /**
   * The worker is gone.
   *
   * @param wasEnded - whether its death is no fault of a resource
   * @returns what may have caused its death
   */
  lost(cause: Error, wasEnded: boolean): string | undefined {
    const suspects = wasEnded
      ? []
      : [...this.#making.values()].filter((resource) => this.#isAtWork(resource));
    for (const suspect of suspects) this.#charge(suspect, suspects.length === 1 ? 1 : 0, cause);
    this.#making.clear();
    this.#iterators.clear();
    this.#waiting = [];
    return suspects[0] && functionOf(suspects[0]);
  }

  /** Whether the worker may be running a function of the module for a resource in `#making`. */
  #isAtWork(resource: WorkerResource): boolean {
    if (this.#failed.has(resource.id)) return false;
    if (resource.kind === 'iterator') return !this.#making.has(resource.dataset);
    return resource.kind === 'dataset';
  }

  #advance(): void {
    while (this.#making.size === 0 || this.#deaths.size === 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#send(next);
    }
  }

  #send(resource: WorkerResource): void {
    const { id } = resource;
    this.#making.set(id, resource);
    const failed = this.#failed.get(id);
    if (failed !== undefined) this.#sendError(id, failed);
    else {
      try {
        const hasToBePacked = resource.kind === 'dataset' && this.#channel?.isShared === false;
        const sent = hasToBePacked ? { ...resource, args: passedAsBytes(resource.args) } : resource;
        this.#channel?.post({ kind: 'prepare', resource: sent });
      } catch (error) {
        this.#sendError(id, encode(error).bytes); // it cannot be sent
      }
    }
  }

  /** Functions that use the resource fail with this encoded error. */
  #sendError(id: number, record: Uint8Array): void {
    const broken: WorkerResource = { kind: 'broken', id, record };
    try {
      this.#channel?.post({ kind: 'prepare', resource: broken });
    } catch {
      // The worker is ending; `lost` follows.
    }
  }

  #charge(resource: WorkerResource, more: number, cause: Error): void {
    const { id } = resource;
    const { retries } = this.#host;
    const deaths = (this.#deaths.get(id) ?? 0) + more;
    this.#deaths.set(id, deaths);
    if (deaths <= retries) return;
    const times = deaths === 1 ? 'once' : `${deaths} times`;
    const text = `The ${functionOf(resource)} lost its worker ${times} (retries: ${retries}). Last: ${messageOf(cause)}`;
    this.#failed.set(id, encode(new UnavailableError(text, { cause })).bytes);
    this.#deaths.delete(id);
  }
}

/** The function of the module that makes a resource, after 'the'. */
const functionOf = (resource: WorkerResource): string =>
  resource.kind === 'dataset'
    ? `data set function '${resource.name}'`
    : 'function that makes the iterator of a data set';
