/** The closures that go to a worker with the next message. */

import { RUN_LENGTH, TO_WORKER } from '../worker/protocol.ts';
import type { Movable } from '../worker/transfer.ts';
import type { WorkerChannel } from './channel.ts';

export class Batch {
  #closures: unknown[] = [];
  #transfers: Movable[] = [];

  /** `closure`: its RUN_LENGTH elements. `transfers`: what of its arguments moves to the worker. */
  add(closure: readonly unknown[], transfers: readonly Movable[]): void {
    this.#closures.push(...closure);
    this.#transfers.push(...transfers);
  }

  clear(): void {
    this.#closures = [];
    this.#transfers = [];
  }

  /** @returns the ids of the closures, and why none can be sent; undefined if all were sent */
  send(channel: WorkerChannel | undefined): { ids: number[]; error: unknown } | undefined {
    const closures = this.#closures;
    if (closures.length === 0) return undefined;
    const transfers = this.#transfers;
    this.clear();
    try {
      channel?.post([TO_WORKER.run, ...closures], transfers);
      return undefined;
    } catch (error) {
      return { ids: closures.filter((_, at) => at % RUN_LENGTH === 0) as number[], error };
    }
  }
}
