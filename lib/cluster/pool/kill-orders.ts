/**
 * Orders of `allstop/testing` to kill the worker that runs a certain function, in the middle of it.
 *
 * 1. An order is waiting, or given to one slot for one closure that was sent there (`#given`), or
 *    over: then it is in neither, and its `killed` was called, or it was deleted.
 * 2. A worker is told before it is sent the closure, so that it knows the order when the closure
 *    begins. If the closure was sent before, the worker is told later: it hears of the order when
 *    it returns to its event loop, and if the closure has ended by then, the order waits again.
 *    A thread need not hear of 'terminate': `doom` stores the id in the word DOOMED (protocol.ts)
 *    before `add` reads the claim. So either the claim says here that the closure has begun, or the
 *    thread finds its id in the word when it begins.
 * 3. `slot.doomed` is the id of the closure for which the slot has an order. A closure that leaves the
 *    slot alive is reported by `onSpared`.
 * 4. Once a slot was struck (`isStruck`), its order is over when the worker is gone, whatever becomes
 *    of the closure: so no second worker is killed.
 */

import type { Closure } from '../closures/closure.ts';
import type { HowToDie } from '../worker/death.ts';

export type KillOrder = {
  /** The name of the function; undefined: any. */
  readonly name: string | undefined;
  readonly how: HowToDie;
  /** Called once, when the worker is gone. */
  readonly killed: (workerIndex: number, cause: Error) => void;
};

/** The part of a WorkerSlot that is needed here. */
export interface DoomedSlot {
  readonly index: number;
  doomed: number | undefined;
  /** The closures that were sent and have not ended, the oldest first. */
  readonly sent: readonly Closure[];
  /** Whether the worker is a thread, which shares claims (protocol.ts) with us. */
  readonly isShared: boolean;
  /** Whether the worker, a thread, has begun this closure. */
  hasBegun(closure: Closure): boolean;
  /** Tells the worker how to die when this closure runs; undefined: not any more. */
  doom(id: number, how: HowToDie | undefined): void;
  /** Ends the worker by force. The pool takes it for a death of the worker's own. */
  strike(): void;
}

type Given = { readonly order: KillOrder; isStruck: boolean };

export class KillOrders<S extends DoomedSlot> {
  readonly #waiting = new Set<KillOrder>();
  readonly #given = new Map<S, Given>();
  /** Gives the order to a slot that has such a function; else it waits until one is sent. */
  add(order: KillOrder, slots: readonly S[]): void {
    for (const slot of slots) {
      if (this.#given.has(slot)) continue;
      const closure = slot.sent.find((each) => isMeant(order, each));
      if (closure === undefined) continue;
      this.#give(order, slot, closure);
      // The claim of a thread says that the function has begun; for a process nothing does.
      if (order.how === 'terminate' && slot.isShared && slot.hasBegun(closure)) this.#strike(slot);
      return;
    }
    this.#waiting.add(order);
  }

  /** Takes the order back. */
  delete(order: KillOrder): void {
    this.#waiting.delete(order);
    for (const [slot, given] of this.#given) {
      if (given.order !== order) continue;
      this.#given.delete(slot);
      if (slot.doomed !== undefined) slot.doom(slot.doomed, undefined);
      slot.doomed = undefined;
    }
  }

  /** Call it when `closure` was added to `slot`, and before it is sent. */
  onAdded(slot: S, closure: Closure): void {
    if (this.#waiting.size === 0 || this.#given.has(slot) || !slot.sent.includes(closure)) return;
    for (const order of this.#waiting) {
      if (!isMeant(order, closure)) continue;
      this.#waiting.delete(order);
      this.#give(order, slot, closure);
      return;
    }
  }

  /** The worker says that the function has begun for which it was doomed to be terminated. */
  onBegun(slot: S, id: number): void {
    if (slot.doomed === id) this.#strike(slot);
  }

  /** The doomed closure has left the slot, and the worker lives. */
  onSpared(slot: S, id: number, slots: readonly S[]): void {
    const given = this.#given.get(slot);
    if (given === undefined || given.isStruck) return;
    this.#given.delete(slot);
    slot.doom(id, undefined); // the closure may come back to this worker
    this.add(given.order, slots);
  }

  onGone(slot: S, cause: Error): void {
    const given = this.#given.get(slot);
    this.#given.delete(slot);
    slot.doomed = undefined;
    given?.order.killed(slot.index, cause);
  }

  #give(order: KillOrder, slot: S, closure: Closure): void {
    slot.doomed = closure.id;
    this.#given.set(slot, { order, isStruck: false });
    slot.doom(closure.id, order.how);
  }

  #strike(slot: S): void {
    const given = this.#given.get(slot);
    if (given === undefined || given.isStruck) return;
    given.isStruck = true;
    slot.strike();
  }
}

function isMeant({ name }: KillOrder, { work }: Closure): boolean {
  return work.kind === 'call' && (name === undefined || work.name === name);
}
