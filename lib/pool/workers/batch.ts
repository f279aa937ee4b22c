/** The closures that go to a worker with the next message. */

import type { SentCall } from '../worker/messages.ts';
import type { Movable } from '../worker/transfer.ts';
import type { WorkerChannel } from './channel.ts';

export class Batch {
  #calls: SentCall[] = [];
  #transfers: Movable[] = [];

  /** `transfers`: what of its arguments moves to the worker. */
  add(call: SentCall, transfers: readonly Movable[]): void {
    this.#calls.push(call);
    if (transfers.length > 0) this.#transfers.push(...transfers);
  }

  clear(): void {
    this.#calls = [];
    this.#transfers = [];
  }

  /** @returns the ids of the closures, and why none can be sent; undefined if all were sent */
  send(channel: WorkerChannel | undefined): { ids: number[]; error: unknown } | undefined {
    const calls = this.#calls;
    if (calls.length === 0) return undefined;
    const transfers = this.#transfers;
    this.clear();
    try {
      channel?.post({ kind: 'run', calls }, transfers);
      return undefined;
    } catch (error) {
      return { ids: calls.map(([id]) => id), error };
    }
  }
}
