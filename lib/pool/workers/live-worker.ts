/**
 * A worker from its start until it is gone, with the calls that it was sent.
 *
 * 1. `#sent` holds the calls that were sent to the worker and have not ended, in the order
 *    in which the worker takes them. Each has a claim (messages.ts) of its own.
 * 2. The claim says whether the call was started, and whether it has ended: a call is never
 *    recalled and run, too. A process shares no claims with us: it is sent one call at a time,
 *    which counts as running.
 * 3. A process receives arguments and sends results as bytes, each packed by itself: a value
 *    that cannot be read fails only its own function. A thread's message that cannot be read
 *    may contain the result of any started call: the slot ends that worker, and the worker's
 *    calls run again. A second attempt announces its result, so that it is known which
 *    function has failed if that result cannot be read.
 * 4. A suspect (`Call.isSuspect`) is alone in `#sent`.
 *
 * Whether a worker thread answers. A function that has ended may leave its thread busy, with a timer
 * that computes for ever, for example: such a thread begins nothing that it is sent.
 *
 * 5. The worker is asked only while it runs nothing: a function may compute as long as it likes.
 *    It is asked if it has not begun in time what it was sent, and if a call was recalled that it
 *    had not begun. A call that was not begun in time gets more time with the next worker
 *    (`allowLonger`): a thread reads large arguments that are values before it begins their call,
 *    and with the same time the call would go back for ever.
 * 6. From the question to the answer (`#grace`) the worker is sent no call. At most one question
 *    is on its way, so that an answer is always the answer to the last question.
 * 7. A worker that has not answered within the grace period, and runs nothing then, is ended. Nothing
 *    is lost with it but what functions that have ended have left there.
 * 8. While `#late` waits, nobody has to call `watch` again: a worker that is sent calls all the
 *    time costs one timer in LOOK_MS.
 */

import { messageOf } from '../../base/thrown-value.ts';
import { now, RealTimer, Timer, turn } from '../../base/timer.ts';
import { CancelledError, UnavailableError } from '../../errors/errors.ts';
import { decode, encode } from '../../record/encoded-error.ts';
import { type Movable, toThread } from '../../values/to-thread.ts';
import { packValue, passedAsBytes, unpackValue } from '../../values/value.ts';
import type { Call, Work } from '../queue/call.ts';
import type { Placement } from '../queue/call-lines.ts';
import type { Outcome } from '../queue/call-queue.ts';
import type { Cancellation, RunningCall, StrategyHost } from '../queue/strategy.ts';
import {
  argumentError,
  CANCELLED,
  ENDED,
  type Fate,
  type FromWorker,
  type SentCall,
  type SentResult,
  STATE,
  type ToWorker,
} from '../worker/messages.ts';
import type { WorkerChannel, WorkerName, WorkerOptions } from './channel.ts';
import { inOrderOfReturn, isOnlyHere, type Sent, SentCalls, type Taker } from './feeding.ts';

const LOOK_MS = 100;
/**
 * The least time for an answer, also if `cancelGraceMs` is shorter: the worker has done no wrong, and
 * the machine may be busy.
 */
const LEAST_GRACE_MS = 5_000;

/** Why a worker that does not answer is ended. `last`: the function that ended there last. */
function noAnswer({ job, index }: WorkerName, graceMs: number, last?: string): Error {
  const text = `Worker ${job}:${index} runs no function and did not answer within ${graceMs} ms`;
  const why = last === undefined ? '' : `: '${last}', which has ended, may have left it busy`;
  return new UnavailableError(text + why);
}

type SentToWorker = Sent & {
  /** The index of its claim. */
  readonly claim: number;
  /** When it was sent, by the clock that no fake timers change (`now`). */
  readonly since: number;
  /** How long its function may run, and how long that may go on when it was cancelled. */
  limit?: Timer;
  grace?: RealTimer;
};

/** What the worker's slot knows and does. */
export interface Keeper {
  readonly index: number;
  readonly name: WorkerName;
  /** Whether the worker takes calls: it is ready. */
  readonly isReady: boolean;
  /** The worker can take more calls than before. */
  onFree(): void;
  /** The worker has to be ended by force. `by`: because of this call. */
  kill(cause: Error, by?: Call): void;
}

export class LiveWorker implements Taker {
  readonly channel: WorkerChannel;
  /** Resolves with how it has ended, when its calls were returned. */
  readonly gone: Promise<Error>;
  /** Called when it is gone. */
  readonly isGone: (cause: Error) => void;
  readonly #host: StrategyHost;
  readonly #keeper: Keeper;
  readonly index: number;
  /** How long it may take to answer. */
  readonly #graceMs: number;
  /** How many functions it may run. */
  readonly #mostTasks: number;
  /** Whether it runs several functions at once. */
  readonly #runsMany: boolean;
  readonly #sent = new SentCalls<SentToWorker>();
  readonly #freeClaims: number[];
  #wasReady = false;
  /** Set while it has calls that it may not begin in time. */
  #late: RealTimer | undefined;
  /** Set while it is asked. */
  #grace: RealTimer | undefined;
  /** What goes with the next message; by its id, what of a call is moved. */
  #calls: SentCall[] = [];
  #transfers = new Map<number, readonly Movable[]>();
  /** How many functions have ended. */
  #ended = 0;
  /** The function that has ended last, and Date.now() then. */
  #last: { readonly name: string | undefined; readonly at: number } = { name: undefined, at: 0 };
  #idleSince = performance.now();
  /** Of which call the next message is the result. */
  #announced: { readonly id: number; readonly us: number } | undefined;

  constructor(
    channel: WorkerChannel,
    host: StrategyHost,
    keeper: Keeper,
    { recycle, concurrency = 1 }: WorkerOptions,
  ) {
    this.channel = channel;
    this.#host = host;
    this.#keeper = keeper;
    this.index = keeper.index;
    this.#graceMs = Math.max(host.cancelGraceMs, LEAST_GRACE_MS);
    this.#mostTasks = recycle?.tasks ?? Number.POSITIVE_INFINITY;
    this.#runsMany = concurrency > 1;
    this.#freeClaims = Array.from(channel.words.keys()).toReversed();
    let tell = (_cause: Error): void => {};
    this.gone = new Promise((resolve) => {
      tell = resolve;
    });
    this.isGone = tell;
  }

  post(message: ToWorker): void {
    try {
      this.channel.post(message);
    } catch {
      // The worker is ending; `isGone` follows.
    }
  }

  /** The number of calls that were sent and have not ended. */
  get running(): number {
    return this.#sent.size;
  }

  /** Since when (performance.now()) it is ready and has nothing to do; undefined: it is not. */
  get idleSince(): number | undefined {
    const isIdle = this.#sent.size === 0 && this.#grace === undefined && this.#keeper.isReady;
    return isIdle ? this.#idleSince : undefined;
  }

  /** Whether it takes no more, as it has run as many functions as a worker may, or runs the last. */
  get isSpent(): boolean {
    const running = this.#runsMany ? this.#sent.size : 0;
    return this.#ended + running >= this.#mostTasks;
  }

  /**
   * Whether it may take one more call: it has less than `most`; or, a thread, takes it in
   * advance, since what it has will run for less than `aheadUs`.
   */
  mayTake(most: number, aheadUs: number): boolean {
    const { size, expectedUs } = this.#sent;
    const isFresh = this.#ended + size < this.#mostTasks; // else it is replaced
    if (!isFresh || this.#grace !== undefined || !this.#keeper.isReady) return false;
    if (size > 0 && this.#sent.first?.call.isSuspect === true) return false; // it is alone here
    if (size < most) return true;
    return this.channel.isShared && this.#freeClaims.length > 0 && expectedUs < aheadUs;
  }

  abilities(): (placement: Placement) => boolean {
    return (placement) => placement.fits(this.index, {});
  }

  /** Sends a call with the next `flush`. */
  add(call: Call, work: Work, expectedUs: number): void {
    const { isShared, words } = this.channel;
    const { name, perWorker, transfer, hasVariables, isKeyed = false } = work;
    let { args } = work;
    try {
      if (!isShared) args = passedAsBytes(args);
    } catch (error) {
      // The packing refuses some values that structuredClone has accepted: a MessagePort, say.
      const value = argumentError(error, name, args as readonly unknown[], packValue);
      this.#host.ended(call, { state: 'failed', value });
      return;
    }
    const claim = this.#freeClaims.pop() ?? 0;
    Atomics.store(words, claim, call.id);
    this.#sent.add({ call, claim, expectedUs, sentAt: Date.now(), since: now() });
    const isMoved = transfer.length > 0 && isShared;
    if (isMoved) call.move();
    const { id, attempts, context, runTimeoutMs } = call;
    const posted = isShared && !isMoved ? toThread(args) : { args, moved: [] };
    const tellsStart = runTimeoutMs !== undefined;
    this.#calls.push([
      id,
      claim,
      attempts + 1,
      name,
      posted.args,
      perWorker,
      hasVariables,
      tellsStart,
      isKeyed,
      context,
    ]);
    const moved = isMoved ? transfer : posted.moved;
    if (moved.length > 0) this.#transfers.set(id, moved);
  }

  /** Sends the calls that were passed to `add` as one message; those that cannot be sent fail. */
  flush(): void {
    const calls = this.#calls;
    if (calls.length === 0) return;
    const transfers = this.#transfers;
    this.#calls = [];
    if (transfers.size > 0) this.#transfers = new Map();
    try {
      const moved = transfers.size === 0 ? [] : [...transfers.values()].flat();
      this.channel.post({ kind: 'run', calls }, moved);
    } catch {
      const refused: { call: Call; value: unknown }[] = [];
      for (const sent of calls) {
        const [id] = sent;
        try {
          this.channel.post({ kind: 'run', calls: [sent] }, transfers.get(id));
        } catch (value) {
          const call = this.#remove(id)?.call;
          if (call !== undefined) refused.push({ call, value });
        }
      }
      for (const { call, value } of refused) this.#host.ended(call, { state: 'failed', value });
    }
    // It is replaced when these have ended: those that wait to be told would wait for ever.
    if (this.#runsMany && this.isSpent) this.post({ kind: 'leave' });
    this.watch();
  }

  /** It has to begin what it has: called when it was sent calls, or has ended a function before others. */
  watch(): void {
    if (this.#sent.size === 0 || this.#late !== undefined || this.#grace !== undefined) return;
    this.#late = new RealTimer(LOOK_MS, () => {
      this.#late = undefined;
      const oldest = this.#withFate('sent');
      if (oldest === undefined || this.#grace !== undefined || this.#isAtWork) return;
      if (now() < oldest.since + oldest.call.patienceMs) return this.watch();
      this.#ask();
      this.#sent.allowLonger();
      this.giveBack();
      this.#keeper.onFree();
    }).unref();
  }

  /** Whether it may be running a function. */
  get #isAtWork(): boolean {
    return !this.#keeper.isReady || this.#withFate('running') !== undefined;
  }

  /** Asks the worker, unless it is asked already, or at work. */
  #ask(): void {
    if (this.#grace !== undefined || this.#isAtWork) return;
    this.post({ kind: 'ping' });
    const wait = (): void => {
      const grace = new RealTimer(this.#graceMs, () => {
        // If this thread was busy itself, the answer may have come, and not been read.
        void turn().then(() => {
          if (this.#grace !== grace) return;
          if (this.#isAtWork) wait();
          else this.#keeper.kill(noAnswer(this.#keeper.name, this.#graceMs, this.#last.name));
        });
      }).unref();
      this.#grace = grace;
    };
    wait();
  }

  /** The worker has answered, or is gone. */
  #endSilence(): void {
    this.#late?.clear();
    this.#late = undefined;
    this.#grace?.clear();
    this.#grace = undefined;
  }

  /** It has become ready, or answered. @returns whether it is ready for the first time */
  hasAnswered(): boolean {
    this.#endSilence();
    this.#idleSince = performance.now();
    const isFirst = !this.#wasReady;
    this.#wasReady = true;
    return isFirst;
  }

  /** @returns undefined if no such call is here: it was recalled, or has ended before */
  #remove(id: number): SentToWorker | undefined {
    const sent = this.#sent.remove(id);
    if (sent === undefined) return undefined;
    this.#freeClaims.push(sent.claim);
    sent.limit?.clear();
    sent.grace?.clear();
    if (this.#sent.size === 0) this.#idleSince = performance.now();
    return sent;
  }

  /** The next message is the result of this call alone. */
  announces(announced: { readonly id: number; readonly us: number }): void {
    this.#announced = announced;
  }

  /** @returns the result in place of that in a message that cannot be read, if it was announced */
  unreadable(error: unknown): SentResult | undefined {
    if (this.#announced === undefined) return undefined;
    const { id, us } = this.#announced;
    const text = `A result cannot be read here: ${messageOf(error)}`;
    return [id, STATE.failed, encode(new DOMException(text, 'DataCloneError')).bytes, us];
  }

  /** The worker has sent a result. @returns the name of the function; undefined: as of `#remove` */
  took([id, state, value, us]: SentResult): string | undefined {
    this.#announced = undefined;
    const call = this.#remove(id)?.call;
    if (call === undefined) return undefined;
    const name = nameOf(call);
    this.#ended += 1;
    this.#last = { name, at: Date.now() };
    this.#host.ended(call, outcomeOf(state, value, this.channel.isShared), us);
    return name;
  }

  /** The function of a call begins, or has reported values. */
  heard(message: Extract<FromWorker, { kind: 'allstop:begun' | 'allstop:progress' }>): void {
    const sent = this.#sent.get(message);
    if (sent === undefined) return;
    const { call } = sent;
    if (message.kind === 'allstop:progress') return this.#host.progressed(call, message.values);
    const { runTimeoutMs = Number.POSITIVE_INFINITY } = call;
    sent.limit ??= new Timer(runTimeoutMs, () => this.#host.overdue(call));
  }

  /** @returns whether the call was recalled: it was here, and the worker had not started it */
  recall(call: Call): boolean {
    if (!this.#recall(call)) return false;
    this.#ask(); // else it would be sent the next call at once, and might not begin that
    return true;
  }

  #recall(call: Call): boolean {
    const sent = this.#sent.get(call);
    const { isShared, words } = this.channel;
    if (sent === undefined || !isShared) return false;
    if (Atomics.compareExchange(words, sent.claim, call.id, 0) !== call.id) return false;
    this.#remove(call.id);
    return true;
  }

  /**
   * Returns at most `most` calls that were not started, the last one first.
   *
   * @returns how many
   */
  giveBack(most: number = this.#sent.size): number {
    const back: Call[] = [];
    for (const { call } of this.#sent.newestFirst()) {
      if (back.length === most) break;
      if (call.placement !== undefined) continue; // an idle worker may not run it
      if (!isOnlyHere(call) && this.#recall(call)) back.push(call);
    }
    for (const call of back) this.#host.returned(call, 'sent');
    return back.length;
  }

  /**
   * Asks a call to end, or recalls it if it was not started. @returns false if it is not here
   */
  cancel(call: Call, { reason, replace }: Cancellation): boolean {
    const sent = this.#sent.get(call);
    if (sent === undefined) return false;
    if (this.recall(call)) {
      this.#host.returned(call, 'sent');
      return true;
    }
    const { id } = call;
    // `shouldStop()` of the call sees it, if it has begun.
    Atomics.compareExchange(this.channel.words, sent.claim, -id, CANCELLED);
    this.post({ kind: 'cancel', id, reason: encode(reason).bytes });
    const { cancelGraceMs } = this.#host;
    if (replace) {
      sent.grace ??= new RealTimer(cancelGraceMs, () => {
        const text = `'${nameOf(call)}' was cancelled and did not end within ${cancelGraceMs} ms`;
        this.#keeper.kill(new CancelledError(text), call);
      });
    }
    return true;
  }

  /** The functions that the worker runs. */
  get calls(): RunningCall[] {
    // Of several at once, each began when it was sent.
    const earliest = this.#runsMany ? 0 : this.#last.at;
    const running = this.#sent
      .newestFirst()
      .filter((sent) => fateOf(this.channel, sent) === 'running');
    return running.map(({ call, sentAt }) => ({
      name: nameOf(call),
      attempt: call.attempts + 1,
      startedAt: new Date(Math.max(sentAt, earliest)),
    }));
  }

  /**
   * The worker is gone. Removes all calls, before any is returned: if one fails, the rules cancel
   * the others, and must not find them here.
   *
   * @param wasKilled - it was ended by force; `by`: because of this call
   * @param hadNoMemory - the worker has died for lack of memory
   * @returns them, in the order in which they are returned
   */
  lose(
    wasKilled: boolean,
    by: Call | undefined,
    hadNoMemory: boolean,
  ): { call: Call; fate: Fate }[] {
    const mayHaveRead = hadNoMemory && this.#withFate('running') === undefined;
    const lost = inOrderOfReturn(this.#sent, (sent) => {
      const fate = fateOf(this.channel, sent);
      if (fate === 'sent' && mayHaveRead) {
        return sent.call.isSuspect ? 'running' : 'unread'; // a suspect was alone
      }
      // A repeated call's result is sent at once. If it is lost all the same, the worker died of it.
      if (fate === 'ended' && sent.call.attempts > 0 && !wasKilled) return 'running';
      // One whose neighbour was to be ended is not charged.
      const isNeighbour = by !== undefined && by !== sent.call;
      return fate === 'running' && isNeighbour ? 'ended' : fate;
    });
    this.#calls = [];
    this.#transfers.clear();
    for (const { call } of lost) this.#remove(call.id);
    this.#endSilence();
    return lost;
  }

  /** The one that was sent first. */
  #withFate(fate: Fate): SentToWorker | undefined {
    return this.#sent.newestFirst().findLast((sent) => fateOf(this.channel, sent) === fate);
  }
}

/** Whether the worker has begun the call, and has ended it. */
function fateOf({ isShared, words }: WorkerChannel, { call, claim }: SentToWorker): Fate {
  if (!isShared) return 'running';
  const word = Atomics.load(words, claim);
  if (word === call.id) return 'sent';
  return word === ENDED ? 'ended' : 'running';
}

export const nameOf = ({ work }: Call): string => (work as Work).name;

/** `isValue`: a result is a value already, not bytes of another process. */
function outcomeOf(state: number, value: unknown, isValue: boolean): Outcome {
  if (state !== STATE.ready) return { state: 'failed', value: decode(value as Uint8Array).value };
  if (isValue) return { state: 'ready', value };
  try {
    return { state: 'ready', value: unpackValue(value as Uint8Array) };
  } catch (error) {
    return { state: 'failed', value: error };
  }
}
