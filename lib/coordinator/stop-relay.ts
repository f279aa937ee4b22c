/**
 * Relays stops between processes, each of which has a coordinator of its own. One of them is the
 * arbiter: the first stop that reaches it becomes the stop record of all, and errors of later ones
 * are suppressed there. The others are its peers: a peer's own record is provisional until the
 * arbiter has answered, and `join()` waits for that answer. What carries the messages is the
 * transport: the channel of a worker process, a session of a NATS cluster. (Of a child of
 * `coord.fork` the peer is native, so that a child that computes stops, too: native/binding/fork_line.h.)
 */

import { Timer } from '../base/timer.ts';
import type { RequesterOptions } from '../native/binding.ts';
import { binding } from '../native/native.ts';
import { decode } from '../record/encoded-error.ts';
import { nameThread, type StopRequester, toRequester } from '../record/stop-record.ts';
import { type Attachment, attachmentOf } from './attachment.ts';
import type { Coordinator } from './coordinator.ts';
import { relay, relayReport } from './requests.ts';

/** A stop record, or an error beside it. */
export type StopMessage = {
  id: string;
  error: Uint8Array | null;
  requester: StopRequester;
  /** When the stop was requested, by the requester's clock: milliseconds since 1970. */
  at: number;
  /** Of an error beside the stop: whether it is no request, but a hook's, for example. */
  isReported?: boolean;
  /** Of an error beside the stop: whether it was thrown, and nobody was given it. */
  isThrown?: boolean;
};

/** The record of a stopped coordinator; undefined if it is not stopped. */
function recordOf({ native }: Attachment): StopMessage | undefined {
  const record = native.record();
  if (record === null) return undefined;
  const { id, error, requester } = record;
  return { id, error, requester: toRequester(requester), at: requester.at };
}

/** Stops the coordinator, or records an error, as if the requester were a thread of this process. */
function apply(attachment: Attachment, stop: StopMessage): void {
  const { id, error, isThrown = false } = stop;
  const from = toOptions(stop);
  if (stop.isReported && error !== null) relayReport(attachment, error, from, isThrown);
  else relay(attachment, error, { ...from, isThrown }, id);
}

function toOptions({ requester, at }: StopMessage): RequesterOptions {
  nameThread(requester);
  const { language, via, threadName, threadId, pid, stack, signal } = requester;
  return {
    native: language === 'native',
    via,
    threadName,
    threadId,
    pid,
    at,
    ...(stack !== undefined && { stack }),
    ...(signal !== undefined && { signal }),
  };
}

/** Decides which stop is the record: the first that this process knows of. */
export class StopArbiter {
  readonly #attachment: Attachment;
  /** The ids of the stops and errors that peers have reported: several may report the same one. */
  readonly #heard = new Set<string>();

  /** `announce(stop, isHeard)` sends the record to all peers. `isHeard`: a peer has reported it. */
  constructor(coordinator: Coordinator, announce: (stop: StopMessage, isHeard: boolean) => void) {
    this.#attachment = attachmentOf(coordinator);
    coordinator.signal.addEventListener('abort', () => {
      const { stop } = this;
      if (stop !== undefined) announce(stop, this.#heard.has(stop.id));
    });
  }

  /** The stop record, as it is sent to peers. Undefined when nothing is stopped. */
  get stop(): StopMessage | undefined {
    return recordOf(this.#attachment);
  }

  /** Called when a peer reports that it, or another one, has stopped, or an error beside the stop. */
  hear(stop: StopMessage): void {
    if (this.#heard.has(stop.id)) return;
    this.#heard.add(stop.id);
    const known = this.stop;
    if (known === undefined || (stop.id !== known.id && stop.error !== null)) {
      apply(this.#attachment, stop);
    }
  }
}

/** How a peer tells others of its stops. */
export type StopTransport = {
  /** Sends a stop, or an error beside it, to the arbiter. Loses nothing while the arbiter lives. */
  send(stop: StopMessage): void;
  /** Tells all processes of a stop that has begun here, to make it known sooner; it may be lost. */
  broadcast?(stop: StopMessage): void;
  /** After that long without an answer the peer's own record is final. Default: Infinity. */
  answerMs?: number;
};

/** How long after the broadcast of a stop the arbiter may take to announce the record. */
const ANNOUNCE_MS = 1_000;

/**
 * What the arbiter knows of the stop of this peer. Each phase may follow each earlier one
 * (`#become`).
 *
 * - 'silent': it has sent nothing, and nobody has told it of a stop
 * - 'waiting': for the answer, after a stop of its own (`own`), or one that was broadcast
 * - 'answered': the record here is that of the arbiter
 * - 'over': no answer comes any more
 */
type PeerPhase =
  | { is: 'silent' | 'answered' | 'over' }
  | { is: 'waiting'; own: StopMessage | undefined; timers: readonly Timer[] };

/** Has its own coordinator, whose record is that of an arbiter in another process. */
export class StopPeer {
  readonly #attachment: Attachment;
  readonly #transport: StopTransport;
  #phase: PeerPhase = { is: 'silent' };
  /** The ids of the records that the arbiter has. */
  readonly #told = new Set<string>();
  /** How many errors were here beside the stop when `sendStops` last looked. */
  #late = 0;
  readonly #unlisten: () => void;

  /** `coordinator`: one of `clusterCoordinator`, for a worker. */
  constructor(coordinator: Coordinator, transport: StopTransport) {
    this.#attachment = attachmentOf(coordinator);
    this.#transport = transport;
    this.#unlisten = this.#attachment.listen('error', () => this.sendStops());
    coordinator.signal.addEventListener('abort', () => this.sendStops());
  }

  /** A stop that has begun here, and that the arbiter has not answered. */
  get unanswered(): StopMessage | undefined {
    return this.#phase.is === 'waiting' ? this.#phase.own : undefined;
  }

  /**
   * Sends what the arbiter was not told: the stop, and the errors beside it. Call it before the
   * results of functions are sent: the arbiter has to know a stop to recognise their errors as its
   * echoes.
   */
  sendStops(): void {
    if (this.#phase.is === 'over') return;
    const stop = recordOf(this.#attachment);
    if (stop === undefined) return;
    if (this.#phase.is === 'silent') {
      this.#told.add(stop.id);
      this.#wait(stop);
      this.#transport.broadcast?.(stop);
      this.#transport.send(stop);
    }
    for (const late of this.#takeLate()) {
      const isThrown = binding().giveError(late.id); // the arbiter sees to it that it is given
      this.#transport.send({ ...late, isThrown });
    }
  }

  /** Stops this process by a stop that another peer has broadcast. */
  hearBroadcast(stop: StopMessage): void {
    if (this.#phase.is === 'over' || this.#attachment.shouldStop()) return;
    this.#told.add(stop.id);
    // The peer that has stopped may be dead, and its message to the arbiter lost.
    this.#wait(undefined, new Timer(ANNOUNCE_MS, () => this.#transport.send(stop)));
    apply(this.#attachment, stop);
  }

  /** Stops this process by a stop that has begun here before this peer did. */
  resume(stop: StopMessage): void {
    apply(this.#attachment, stop);
  }

  /**
   * The arbiter has answered: its record replaces the one here, if there is one, whose error is
   * suppressed.
   */
  answer(winner: StopMessage): void {
    if (this.#phase.is === 'over') return;
    this.sendStops(); // a thread here may have requested a stop before
    this.#become({ is: 'answered' });
    this.#attachment.native.answerStop(winner.error, toOptions(winner), winner.id);
    this.#attachment.catchUp();
    this.sendStops();
  }

  /** The arbiter will not answer: the record here is final, as it is. */
  end(): void {
    this.#become({ is: 'over' });
    this.#unlisten();
    this.#giveUp();
  }

  #giveUp(): void {
    this.#attachment.native.answerNone();
    this.#attachment.catchUp();
  }

  #wait(own: StopMessage | undefined, ...timers: Timer[]): void {
    const { answerMs = Number.POSITIVE_INFINITY } = this.#transport;
    timers.push(new Timer(answerMs, () => this.#giveUp()));
    this.#become({ is: 'waiting', own, timers });
  }

  #become(phase: PeerPhase): void {
    if (this.#phase.is === 'waiting') for (const timer of this.#phase.timers) timer.clear();
    this.#phase = phase;
  }

  /**
   * The errors beside the stop that the arbiter has not received. If very many errors are
   * suppressed, the native record keeps only some: the others are counted, and not sent.
   */
  #takeLate(): StopMessage[] {
    const { native } = this.#attachment;
    const reported = native.reported();
    const first = reported === null ? [] : [reported];
    const count = first.length + native.suppressedCount();
    if (count === this.#late) return [];
    this.#late = count;
    const late: StopMessage[] = [];
    for (const each of [...first, ...native.suppressed()]) {
      const { id } = decode(each.error);
      if (this.#told.has(id)) continue;
      this.#told.add(id);
      const { via, at } = each.requester;
      const isReported = each === reported || via === 'hook' || via === 'defer';
      const requester = toRequester(each.requester);
      late.push({ id, error: each.error, requester, at, isReported });
    }
    return late;
  }
}
