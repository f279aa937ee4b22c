/**
 * `tripAfter`: the stop comes at the nth poll.
 *
 * While a coordinator has a trip in this thread, its object has `shouldStop`, `waitForStop` and
 * `waitForStopSync` as own properties, which count and then call the methods of its class. With
 * the last trip the own properties go, so that the methods are compiled as ever.
 */

import { invalidType, outOfRange } from '../base/arguments.ts';
import { type Attachment, checkCoordinator } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { callSite, report, requestPlainStop } from '../coordinator/requests.ts';
import { FailedPreconditionError } from '../errors/errors.ts';

type Trip = { left: number; readonly error: unknown };
type Poll = (...args: any[]) => unknown;

/** Coordinators with trips. The map keeps them alive: a new object would not count. */
const counted = new Map<Coordinator, CountedPolls>();

class CountedPolls {
  readonly trips: Set<Trip> = new Set();
  readonly #coord: Coordinator;
  readonly #attachment: Attachment;
  readonly #shims: readonly [string, PropertyDescriptor | undefined, Poll][];

  constructor(coord: Coordinator, attachment: Attachment) {
    this.#coord = coord;
    this.#attachment = attachment;
    this.#shims = (['shouldStop', 'waitForStop', 'waitForStopSync'] as const).map((name) => {
      const method: Poll = coord[name];
      const shim: Poll = (...args) => {
        if (name === 'shouldStop' || args[0] === 0) this.#poll(shim);
        return Reflect.apply(method, coord, args);
      };
      const own = Object.getOwnPropertyDescriptor(coord, name);
      Object.defineProperty(coord, name, { value: shim, configurable: true, writable: true });
      return [name, own, shim];
    });
    counted.set(coord, this);
  }

  delete(trip: Trip): void {
    if (!this.trips.delete(trip) || this.trips.size > 0) return;
    counted.delete(this.#coord);
    for (const [name, own, shim] of this.#shims) {
      // A spy that a test has put over the shim stays: the shim behind it only passes calls on.
      if (Object.getOwnPropertyDescriptor(this.#coord, name)?.value !== shim) continue;
      if (own !== undefined) Object.defineProperty(this.#coord, name, own);
      else Reflect.deleteProperty(this.#coord, name);
    }
  }

  #poll(caller: Poll): void {
    for (const trip of this.trips) {
      trip.left -= 1;
      if (trip.left > 0) continue;
      this.delete(trip);
      this.#request(trip.error, caller);
    }
  }

  #request(error: unknown, caller: Poll): void {
    const stack = (): string => callSite(caller);
    if (error === undefined || error === null) {
      requestPlainStop(this.#attachment, { via: 'call', stack });
    } else if (report(this.#attachment, error, { via: 'call', stack }) === 'refused') {
      throw error;
    }
  }
}

/**
 * Requests a stop of `coord` at the nth poll of this JavaScript thread, counted from now: the
 * nth call returns true. So a test can stop a loop at each of its steps. A poll is a call of
 * `coord.shouldStop()`, `coord.waitForStop(0)` or `coord.waitForStopSync(0)`; the
 * `currentCall().shouldStop()` of a cluster polls the coordinator of its worker. Reading `signal`
 * is no poll, and polls of other threads and of native code are not counted.
 *
 * @example
 * ```js
 * import { Coordinator } from 'allstop';
 * import { tripAfter } from 'allstop/testing';
 *
 * const coord = new Coordinator();
 * tripAfter(coord, 3);
 * let steps = 0;
 * while (!coord.shouldStop()) steps++;
 * console.log(steps); // 2: the third call was true
 * ```
 * @param n - which poll: an integer from 1
 * @param error - the error of the stop (default: a stop without an error)
 * @returns disposing of it calls the trip off; a second time, or after the trip, does nothing.
 *   Until the trip or its disposal the coordinator's object is kept alive
 * @throws TypeError (`ERR_INVALID_ARG_TYPE`); RangeError (`ERR_OUT_OF_RANGE`): `n`;
 *   FailedPreconditionError: `coord` was joined, so that no join would throw the error, or is
 *   frozen. (If the join comes later, the nth poll throws `error`, as `requestStop` does then.)
 */
export function tripAfter(coord: Coordinator, n: number, error?: unknown): Disposable {
  const attachment = checkCoordinator('coord', coord);
  if (typeof n !== 'number') throw invalidType('n', 'of type number', n);
  if (!Number.isSafeInteger(n) || n < 1) throw outOfRange('n', 'an integer >= 1', n);
  if (coord.joined) {
    throw new FailedPreconditionError(
      `The coordinator '${coord.name}' was joined: a stop now would be of no effect. Call clearStop() before tripAfter()`,
    );
  }
  if (!Object.isExtensible(coord)) {
    throw new FailedPreconditionError(
      `The object of the coordinator '${coord.name}' is frozen, so its polls cannot be counted`,
    );
  }
  const polls = counted.get(coord) ?? new CountedPolls(coord, attachment);
  const trip: Trip = { left: n, error };
  polls.trips.add(trip);
  return { [Symbol.dispose]: () => polls.delete(trip) };
}
