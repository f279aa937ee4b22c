/** The calls that a coordinator has sent to this node and that have not ended here; and their results, until they are sent. */

import { type Call, Closure } from '../../pool/queue/closure.ts';
import { RecentValues } from '../../pool/worker/recent-values.ts';
import { toPost, transferListOf } from '../../pool/worker/transfer.ts';
import { LONG_BYTES, type SentCall, type SentResult } from '../wire/session-messages.ts';

/** How many reported values of a function wait while the channel is full; and LONG_BYTES. */
const MOST_PROGRESS = 4_096;

export class ReceivedCalls {
  /** By the coordinator's ids. (`Closure.id` here is another.) */
  readonly #closures = new Map<number, Closure>();
  readonly #ids = new Map<number, number>();
  /** What functions have reported and was not sent. */
  readonly #progress = new Map<Closure, RecentValues>();
  #results: SentResult[] = [];
  #resultsBytes = 0;

  get size(): number {
    return this.#closures.size;
  }

  /** @returns undefined if the node has the call already */
  receive({ id, attempt, name, bytes, context, ...of }: SentCall): Closure | undefined {
    if (this.#closures.has(id)) return undefined;
    const args = toPost(bytes);
    const transfer = transferListOf([args]);
    const { perWorker, hasVariables = false, isKeyed = false, runTimeoutMs } = of;
    const own = { bytes: args.length, perWorker, hasVariables, transfer, isKeyed };
    const call: Call = { name, args, ...own };
    const before = { attempts: attempt - 1, contextText: context };
    const options = { retries: Number.POSITIVE_INFINITY, runTimeoutMs, ...before };
    const closure = new Closure(call, undefined, undefined, options);
    closure.become({ at: 'in-flight' }); // for the coordinator, which has the queue
    this.#closures.set(id, closure);
    this.#ids.set(closure.id, id);
    return closure;
  }

  get(id: number): Closure | undefined {
    return this.#closures.get(id);
  }

  /** The coordinator's id of a closure here; undefined: it has ended. */
  idOf(closure: number): number | undefined {
    return this.#ids.get(closure);
  }

  /** The closure has ended, or goes back. @returns the coordinator's id; undefined: it went before */
  remove(closure: Closure): number | undefined {
    this.#progress.delete(closure);
    const id = this.#ids.get(closure.id);
    this.#ids.delete(closure.id);
    if (id !== undefined) this.#closures.delete(id);
    return id;
  }

  /** While the channel is full, values wait here, where the newest are kept. */
  addProgress(closure: Closure, values: readonly Uint8Array[]): void {
    let waiting = this.#progress.get(closure);
    if (waiting === undefined) {
      waiting = new RecentValues(MOST_PROGRESS, LONG_BYTES);
      this.#progress.set(closure, waiting);
    }
    for (const value of values) waiting.add(value);
  }

  takeProgress(closure: Closure): Uint8Array[] {
    return this.#progress.get(closure)?.takeAll() ?? [];
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
