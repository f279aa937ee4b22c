/** The calls that a coordinator has sent to this node and that have not ended here; and their results, until they are sent. */

import { Call, type Work } from '../../pool/queue/call.ts';
import { RecentValues } from '../../pool/worker/recent-values.ts';
import { toPost, transferListOf } from '../../pool/worker/transfer.ts';
import { LONG_BYTES, type SentCall, type SentResult } from '../wire/session-messages.ts';

/** How many reported values of a function wait while the channel is full; and LONG_BYTES. */
const MOST_PROGRESS = 4_096;

export class ReceivedCalls {
  /** By the coordinator's ids. (`Call.id` here is another.) */
  readonly #calls = new Map<number, Call>();
  readonly #ids = new Map<number, number>();
  /** What functions have reported and was not sent. */
  readonly #progress = new Map<Call, RecentValues>();
  #results: SentResult[] = [];
  #resultsBytes = 0;

  get size(): number {
    return this.#calls.size;
  }

  /** @returns undefined if the node has the call already */
  receive({ id, attempt, name, bytes, context, ...of }: SentCall): Call | undefined {
    if (this.#calls.has(id)) return undefined;
    const args = toPost(bytes);
    const transfer = transferListOf([args]);
    const { perWorker, hasVariables = false, isKeyed = false, runTimeoutMs } = of;
    const own = { bytes: args.length, perWorker, hasVariables, transfer, isKeyed };
    const work: Work = { name, args, ...own };
    const before = { attempts: attempt - 1, contextText: context };
    const options = { retries: Number.POSITIVE_INFINITY, runTimeoutMs, ...before };
    const call = new Call(work, undefined, undefined, options);
    call.become({ at: 'in-flight' }); // for the coordinator, which has the queue
    this.#calls.set(id, call);
    this.#ids.set(call.id, id);
    return call;
  }

  get(id: number): Call | undefined {
    return this.#calls.get(id);
  }

  /** The coordinator's id of a call here; undefined: it has ended. */
  idOf(call: number): number | undefined {
    return this.#ids.get(call);
  }

  /** The call has ended, or goes back. @returns the coordinator's id; undefined: it went before */
  remove(call: Call): number | undefined {
    this.#progress.delete(call);
    const id = this.#ids.get(call.id);
    this.#ids.delete(call.id);
    if (id !== undefined) this.#calls.delete(id);
    return id;
  }

  /** While the channel is full, values wait here, where the newest are kept. */
  addProgress(call: Call, values: readonly Uint8Array[]): void {
    let waiting = this.#progress.get(call);
    if (waiting === undefined) {
      waiting = new RecentValues(MOST_PROGRESS, LONG_BYTES);
      this.#progress.set(call, waiting);
    }
    for (const value of values) waiting.add(value);
  }

  takeProgress(call: Call): Uint8Array[] {
    return this.#progress.get(call)?.takeAll() ?? [];
  }

  /** @returns whether the results are to be sent now, not in a moment */
  addResult(result: SentResult): boolean {
    this.#results.push(result);
    this.#resultsBytes += result.bytes.byteLength;
    return this.#resultsBytes > LONG_BYTES;
  }

  get hasResults(): boolean {
    return this.#results.length > 0;
  }

  takeResults(): SentResult[] {
    const results = this.#results;
    this.#results = [];
    this.#resultsBytes = 0;
    return results;
  }
}
