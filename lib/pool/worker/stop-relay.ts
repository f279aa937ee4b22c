/**
 * Relays stops between processes, each of which has a coordinator of its own. The parent is the
 * arbiter: the first stop that reaches it becomes the stop record of all, and errors of later
 * ones are suppressed there. A child's own record is provisional until the arbiter has
 * answered, and `join()` waits for that answer.
 */

import { attachmentOf } from '../../coordinator/attachment.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { relay, relayReport } from '../../coordinator/requests.ts';
import { type StopRequester, toRequester } from '../../coordinator/stop-record.ts';
import type { RequesterOptions } from '../../native/binding.ts';
import { decode } from '../../record/encoded-error.ts';
import { nameThread } from './requesters.ts';

/** A stop record: its id, the encoded error if there is one, and the requester. */
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
export function stopMessage(coordinator: Coordinator): StopMessage | undefined {
  const record = attachmentOf(coordinator).native.record();
  if (record === null) return undefined;
  const { id, error, requester } = record;
  return { id, error, requester: toRequester(requester), at: requester.at };
}

/**
 * Called when the arbiter has answered: the arbiter's record replaces the coordinator's own, if
 * there is one. An error of the replaced record is suppressed.
 */
export function answerStop(coordinator: Coordinator, winner: StopMessage): void {
  const attachment = attachmentOf(coordinator);
  attachment.native.answerStop(winner.error, requesterOf(winner), winner.id);
  attachment.catchUp();
}

/** Called when the arbiter will not answer: the coordinator's own record becomes final. */
export function answerNone(coordinator: Coordinator): void {
  const attachment = attachmentOf(coordinator);
  attachment.native.answerNone();
  attachment.catchUp();
}

/** Collects the errors that are here beside the stop and that the arbiter has not received. */
export class LateErrors {
  readonly #coordinator: Coordinator;
  /** The ids of the records that the arbiter has. */
  readonly #known = new Set<string>();
  #count = 0;

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
  }

  /** Called when the arbiter has received this record, from here or from another process. */
  skip({ id }: StopMessage): void {
    this.#known.add(id);
  }

  /**
   * The errors that the arbiter has not received. If very many errors are suppressed, the native
   * record keeps only some: the others are counted, and not sent.
   */
  take(): StopMessage[] {
    const { native } = attachmentOf(this.#coordinator);
    const reported = native.reported();
    const first = reported === null ? [] : [reported];
    const count = first.length + native.suppressedCount();
    if (count === this.#count) return [];
    this.#count = count;
    const late = [...first, ...native.suppressed()].map((each) => ({
      id: decode(each.error).id,
      error: each.error,
      requester: toRequester(each.requester),
      at: each.requester.at,
      isReported:
        each === reported || each.requester.via === 'hook' || each.requester.via === 'defer',
    }));
    const fresh = late.filter(({ id }) => !this.#known.has(id));
    for (const each of fresh) this.skip(each);
    return fresh;
  }
}

/** Stops the coordinator, or records an error, as if the requester were a thread of this process. */
export function applyStop(coordinator: Coordinator, stop: StopMessage): void {
  const attachment = attachmentOf(coordinator);
  const { id, error, isThrown = false } = stop;
  const from = requesterOf(stop);
  if (stop.isReported && error !== null) relayReport(attachment, error, from, isThrown);
  else relay(attachment, error, { ...from, isThrown }, id);
}

function requesterOf({ requester, at }: StopMessage): RequesterOptions {
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
