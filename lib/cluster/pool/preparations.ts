/**
 * What the workers of one slot make before they take functions: data sets and their iterators
 * (resources), in the order in which they were defined.
 *
 * 1. A resource of the present worker waits in `#waiting`, is in `#making` from when the worker is
 *    sent it until the worker has made it, or is in `#later`. Nothing waits while nothing is made.
 * 2. A death while several were made may be the fault of any: it is charged to none, and the next
 *    workers make one at a time until each of these was made. So the next death is charged to the
 *    one that causes it.
 * 3. One that was charged with more than `retries` deaths in a row has failed: the next workers
 *    are sent its error in its place.
 * 4. One because of which a worker was ended, as nobody waited for it any more, is in `#unwanted`.
 *    The next workers make it when a function comes that uses it. So it holds up no other function.
 */

import { messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import { notMade } from '../../errors/phases.ts';
import { encode } from '../../record/encoded-error.ts';
import type { StrategyHost } from '../closures/strategy.ts';
import { passedAsBytes } from '../worker/packing/packed-arguments.ts';
import { TO_WORKER, type WorkerResource } from '../worker/protocol.ts';
import type { WorkerChannel } from './channel.ts';

type Host = Pick<StrategyHost, 'retries' | 'cancelGraceMs' | 'isAwaited'>;

export class Preparations {
  readonly #host: Host;
  /** Ends the worker by force. */
  readonly #end: (cause: Error) => void;
  #channel: WorkerChannel | undefined;
  readonly #making = new Map<number, WorkerResource>();
  #waiting: WorkerResource[] = [];
  /** Those that are made when a function comes that uses them. */
  readonly #later = new Map<number, WorkerResource>();
  /** Deaths that are charged to those that may have caused one, since they were last made. */
  readonly #deaths = new Map<number, number>();
  /** The encoded errors of those that have failed. */
  readonly #failed = new Map<number, Uint8Array>();
  readonly #unwanted = new Set<number>();
  /** Calls with these have given up before the worker knew of them. */
  readonly #givenUp = new Set<number>();
  /** Of those in `#making` for which a call has given up waiting. */
  readonly #graceTimers = new Map<number, Timer>();

  constructor(host: Host, end: (cause: Error) => void) {
    this.#host = host;
    this.#end = end;
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
    const { id } = resource;
    const isGivenUp = this.#givenUp.delete(id);
    if (this.#isForLater(resource)) this.#later.set(id, resource);
    else {
      this.#waiting.push(resource);
      this.#advance();
      if (isGivenUp) this.gaveUp([id], true);
    }
  }

  /** A function with these resources is about to be sent: what was left for it is sent before. */
  makeFor(ids: readonly number[]): void {
    if (this.#later.size === 0) return;
    for (const id of ids) {
      const resource = this.#later.get(id);
      if (resource?.kind === 'iterator') this.#makeNow(resource.dataset);
      this.#makeNow(id);
    }
  }

  /** The worker has made a resource, or knows that it is impossible. */
  made(id: number): void {
    this.#making.delete(id);
    this.#deaths.delete(id);
    this.#unwanted.delete(id);
    this.#clearTimer(id);
    this.#advance();
  }

  /**
   * A call with these resources has given up: what it has waited for has `cancelGraceMs` to be made;
   * then the worker is ended, unless another call waits for it.
   *
   * @param isLoaded - whether the worker was told of all resources
   */
  gaveUp(ids: readonly number[], isLoaded: boolean): void {
    for (const id of ids) {
      const resource = this.#blocking(id);
      if (!isLoaded) this.#givenUp.add(id);
      else if (resource !== undefined && !this.#graceTimers.has(resource.id)) this.#watch(resource);
    }
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
    this.#waiting = [];
    this.#later.clear();
    for (const id of this.#graceTimers.keys()) this.#clearTimer(id);
    return suspects[0] && functionOf(suspects[0]);
  }

  /** Whether the worker may be running a function of the module for a resource in `#making`. */
  #isAtWork(resource: WorkerResource): boolean {
    if (this.#failed.has(resource.id)) return false;
    if (resource.kind === 'iterator') return !this.#making.has(resource.dataset);
    return resource.kind === 'dataset';
  }

  /** What has to be made next for the resource of this id. */
  #blocking(id: number): WorkerResource | undefined {
    const own = this.#making.get(id);
    if (own?.kind === 'iterator') return this.#making.get(own.dataset) ?? own;
    if (own !== undefined || !this.#waiting.some((each) => each.id === id)) return own;
    return this.#making.values().next().value; // they are made one at a time
  }

  #isForLater(resource: WorkerResource): boolean {
    const { id, kind } = resource;
    return this.#unwanted.has(id) || (kind === 'iterator' && this.#unwanted.has(resource.dataset));
  }

  #advance(): void {
    while (this.#making.size === 0 || this.#deaths.size === 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#send(next);
    }
  }

  #makeNow(id: number): void {
    const resource = this.#later.get(id);
    this.#later.delete(id);
    if (resource !== undefined) this.#send(resource);
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
        this.#channel?.post([TO_WORKER.prepare, id, sent]);
      } catch (error) {
        this.#sendError(id, encode(error).bytes); // it cannot be sent
      }
    }
  }

  /** Functions that use the resource fail with this encoded error. */
  #sendError(id: number, record: Uint8Array): void {
    const broken: WorkerResource = { kind: 'broken', id, record };
    try {
      this.#channel?.post([TO_WORKER.prepare, id, broken]);
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
    this.#unwanted.delete(id);
  }

  #watch(resource: WorkerResource): void {
    const { cancelGraceMs } = this.#host;
    const onOver = (): void => {
      this.#clearTimer(resource.id);
      if (this.#host.isAwaited(this.#usersOf(resource))) return;
      this.#unwanted.add(resource.id);
      const text = `No call waits for the ${functionOf(resource)} any more, and it did not end within ${cancelGraceMs} ms`;
      this.#end(new CancelledError(text));
    };
    // A program that has nothing else to do ends without it.
    this.#graceTimers.set(resource.id, new Timer(cancelGraceMs, onOver).unref());
  }

  /** The resource, and the iterators that are made of it. */
  #usersOf({ id }: WorkerResource): number[] {
    const all = [...this.#making.values(), ...this.#waiting, ...this.#later.values()];
    const ofIt = all.filter((each) => each.kind === 'iterator' && each.dataset === id);
    return [id, ...ofIt.map((iterator) => iterator.id)];
  }

  #clearTimer(id: number): void {
    this.#graceTimers.get(id)?.clear();
    this.#graceTimers.delete(id);
  }
}

/** The function of the module that makes a resource, after 'the'. */
const functionOf = (resource: WorkerResource): string =>
  resource.kind === 'dataset'
    ? `data set function '${resource.name}'`
    : 'function that makes the iterator of a data set';
