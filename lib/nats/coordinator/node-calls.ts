/**
 * The calls that one node has.
 *
 * 1. A call in `#sent` is the node's until the node has sent its result, or gives it back.
 * 2. A call in `#givenUp`, all of which are in `#sent`, was returned to the queue while the
 *    node was away: the node may run it, and so may another worker. The first result counts.
 * 3. A suspect (`Call.isSuspect`) is alone in `#sent`: it may kill the node's process, and with it
 *    whatever runs on any thread there.
 */

import { CancelledError } from '../../errors/errors.ts';
import type { Call, Work } from '../../pool/queue/call.ts';
import type { InLine, Placement } from '../../pool/queue/call-lines.ts';
import type { Outcome } from '../../pool/queue/call-queue.ts';
import type { Cancellation, ClusterHost, RunningCall } from '../../pool/queue/strategy.ts';
import { argumentError, type Fate } from '../../pool/worker/messages.ts';
import { inOrderOfReturn, type Sent, SentCalls, type Taker } from '../../pool/workers/feeding.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { passedAsBytes } from '../../values/packed-arguments.ts';
import { packValue, unpackValue } from '../../values/value.ts';
import { checkLength } from '../wire/reliable-channel.ts';
import {
  type FromNode,
  LONG_BYTES,
  type SentCall,
  type SentResult,
  type ToNode,
} from '../wire/session-messages.ts';

/** The node, as its calls see it. */
export interface NodeOfCalls {
  /** The index of its task. */
  readonly index: number;
  post(message: ToNode): void;
  /** Whether it may run calls with this placement beside those with the placements `used`. */
  fits(placement: Placement, used: readonly (Placement | undefined)[]): boolean;
  /** `Runner.lacks` */
  lacks(item: InLine): boolean;
}

export class NodeCalls implements Taker {
  readonly index: number;
  readonly #host: ClusterHost;
  readonly #node: NodeOfCalls;
  readonly #sent = new SentCalls();
  /** By call: as what it was returned to the queue. */
  readonly #givenUp = new Map<Call, Fate>();
  #batch: SentCall[] = [];
  #batchBytes = 0;
  #completed = 0;
  /** Calls were recalled, and none has been returned yet. */
  #isRecalling = false;
  /**
   * By call id: when (performance.now()) each call that the node may have to end by force was
   * cancelled. The first entry is the oldest.
   */
  readonly #cancelled = new Map<number, number>();

  constructor(host: ClusterHost, node: NodeOfCalls) {
    this.#host = host;
    this.#node = node;
    this.index = node.index;
  }

  get running(): number {
    return this.#sent.size;
  }

  /** How many have ended here. */
  get completed(): number {
    return this.#completed;
  }

  get isRecalling(): boolean {
    return this.#isRecalling;
  }

  /** How long all are expected to run, in microseconds. */
  get expectedUs(): number {
    return this.#sent.expectedUs;
  }

  /** Whether one is a suspect, beside which nothing may run. */
  get hasSuspect(): boolean {
    return this.#sent.first?.call.isSuspect === true;
  }

  /** Whether one may not begin again. */
  get hasUnrepeatable(): boolean {
    return this.#sent.newestFirst().some(({ call }) => call.retries === 0);
  }

  /** When the oldest call that was cancelled and has not ended was cancelled; or undefined. */
  get cancelledAt(): number | undefined {
    return this.#cancelled.values().next().value;
  }

  get hasGivenUp(): boolean {
    return this.#givenUp.size > 0;
  }

  /** Whether the node has nothing any more that anybody waits for. */
  get isForgotten(): boolean {
    return [...this.#givenUp.keys()].every(({ life }) => life.at === 'out');
  }

  canRun(placement: Placement): boolean {
    const used = this.#sent.newestFirst().map(({ call }) => call.placement);
    return this.#node.fits(placement, used);
  }

  lacks(item: InLine): boolean {
    return this.#node.lacks(item);
  }

  /** Those that so many threads of the node take first. */
  first(threads: number): RunningCall[] {
    const first = this.#sent.newestFirst().toReversed().slice(0, threads);
    return first.map(({ call, sentAt }) => ({
      name: call.work.name,
      attempt: call.attempts + 1,
      startedAt: new Date(sentAt),
    }));
  }

  has(call: Call): boolean {
    return this.#sent.get(call) !== undefined;
  }

  /** Whether the call of this id runs here, and has not been settled by another worker. */
  isRunning(id: number): boolean {
    const call = this.#sent.get({ id })?.call;
    if (call === undefined || call.life.at === 'out') return false;
    return call.decided === undefined;
  }

  /** Sends a call with the next `flush`. Fails it if its arguments cannot be packed. */
  add(call: Call, work: Work, expectedUs: number): void {
    let bytes: Uint8Array;
    try {
      bytes = checkLength(passedAsBytes(work.args));
    } catch (error) {
      this.#host.ended(call, {
        state: 'failed',
        value: argumentError(error, work.name, work.args as readonly unknown[], packValue),
      });
      return;
    }
    // The node may have it still, from before it was given up: the node then goes on with that.
    this.#sent.remove(call.id);
    this.#givenUp.delete(call);
    this.#sent.add({ call, expectedUs, sentAt: Date.now() });
    this.#batch.push({
      id: call.id,
      attempt: call.attempts + 1,
      name: work.name,
      bytes,
      ...(work.perWorker !== undefined && { perWorker: work.perWorker }),
      ...(call.context !== undefined && { context: call.context }),
      ...(work.hasVariables && { hasVariables: true }),
      ...(call.runTimeoutMs !== undefined && { runTimeoutMs: call.runTimeoutMs }),
      ...(work.isKeyed === true && { isKeyed: true }),
    });
    this.#batchBytes += bytes.byteLength;
    if (this.#batchBytes > LONG_BYTES) this.flush();
  }

  flush(): void {
    if (this.#batch.length === 0) return;
    this.#node.post({ kind: 'run', calls: this.#batch });
    this.#batch = [];
    this.#batchBytes = 0;
  }

  cancel(call: Call, { reason, replace }: Cancellation): void {
    const { id } = call;
    this.flush(); // the call may still be in the batch
    this.#node.post({ kind: 'cancel', id, reason: encode(reason).bytes, replace });
    if (replace && !this.#cancelled.has(id)) this.#cancelled.set(id, performance.now());
  }

  /**
   * Asks back all calls, or those of the last `count` that other nodes may run. The node returns
   * those that it has not started.
   */
  recall(count?: number): void {
    const all = this.#sent.newestFirst();
    const movable = (sent: Sent): boolean => sent.call.placement === undefined;
    const asked = count === undefined ? all : all.slice(0, count).filter(movable);
    if (asked.length === 0) return;
    this.#isRecalling = true;
    this.#node.post({ kind: 'recall', ids: asked.map(({ call }) => call.id) });
  }

  /**
   * Returns all calls to the queue, in their old order, as the node counts as lost. Each may have
   * been running, those that were sent in advance, too: a thread takes several, and another thread
   * later ones. `lives`: the node has ended what it ran itself, so none has killed it.
   */
  giveUp(cause: Error, lives: boolean): void {
    this.#cancelled.clear();
    const fateOf = (): Fate => (lives ? 'ended' : 'running');
    for (const { call, fate } of inOrderOfReturn(this.#sent, fateOf)) {
      if (this.#givenUp.has(call)) continue;
      this.#givenUp.set(call, fate);
      this.#host.returned(call, fate, cause);
    }
  }

  /**
   * The node is back. What is still queued goes on there; what another worker has meanwhile is
   * recalled if the node has not started it; what has settled is cancelled.
   */
  takeBack(): void {
    if (this.#givenUp.size === 0) return;
    for (const call of this.#host.reclaim(this.#givenUp)) this.#givenUp.delete(call);
    const elsewhere: number[] = [];
    for (const call of this.#givenUp.keys()) {
      if (call.life.at === 'out') this.cancelDuplicate(call);
      else elsewhere.push(call.id);
    }
    if (elsewhere.length > 0) this.#node.post({ kind: 'recall', ids: elsewhere });
  }

  /** Ends the node's copy of a call that another worker has ended. */
  cancelDuplicate(call: Call): void {
    if (!this.#givenUp.has(call)) return;
    const reason = encode(new CancelledError('Another worker was first')).bytes;
    this.#node.post({ kind: 'cancel', id: call.id, reason, replace: true });
  }

  /** The node has ended a call. `before` is called if it is one of ours, before it settles. */
  takeResult(result: SentResult, before: (call: Call, name: string) => void): void {
    const call = this.#remove(result.id);
    if (call === undefined) return;
    before(call, call.work.name);
    const outcome = outcomeOf(result);
    if (this.#givenUp.delete(call)) {
      if (this.#host.offered(call, outcome, result.us)) this.#completed += 1;
      return;
    }
    this.#completed += 1;
    this.#host.ended(call, outcome, result.us);
  }

  takeReturned({ id, fate, cause }: Extract<FromNode, { kind: 'returned' }>): void {
    const call = this.#remove(id);
    if (call === undefined || this.#givenUp.delete(call)) return;
    this.#host.returned(call, fate, cause === null ? undefined : decode(cause).value);
  }

  /** The call of a message about an attempt; undefined: it was given up, and is another's. */
  ofAttempt({ id }: { readonly id: number }): Call | undefined {
    const call = this.#sent.get({ id })?.call;
    return call === undefined || this.#givenUp.has(call) ? undefined : call;
  }

  #remove(id: number): Call | undefined {
    this.#cancelled.delete(id);
    const sent = this.#sent.remove(id);
    if (sent !== undefined) this.#isRecalling = false;
    return sent?.call;
  }
}

function outcomeOf({ state, bytes }: SentResult): Outcome {
  try {
    return state === 'ready'
      ? { state, value: unpackValue(bytes) }
      : { state, value: decode(bytes).value };
  } catch (error) {
    return { state: 'failed', value: error };
  }
}
