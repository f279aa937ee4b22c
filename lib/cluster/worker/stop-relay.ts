/**
 * A stop on its way between processes, each of which has a coordinator of its own. The
 * parent is the arbiter: the first stop that it hears of is the record for all, and what
 * comes later is suppressed there. Elsewhere a record is provisional until the arbiter has
 * answered, and a `join()` waits for that.
 */

import { attachmentOf } from '../../coordinator/attachment.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { type StopRequester, toRequester } from '../../coordinator/stop-record.ts';
import type { RequesterOptions } from '../../native/binding.ts';
import { decode } from '../../record/error-record.ts';
import { nameThread } from './requesters.ts';

/** A record: its id, the error (encoded) if there is one, and who asked for it. */
export type StopMessage = {
  id: string;
  error: Uint8Array | null;
  requester: StopRequester;
  /** When, by the requester's clock: milliseconds since 1970. */
  at: number;
};

/** Of a coordinator that is stopped. */
export function stopMessage(coordinator: Coordinator): StopMessage | undefined {
  const record = attachmentOf(coordinator).native.record();
  if (record === null) return undefined;
  const { id, error, requester } = record;
  return { id, error, requester: toRequester(requester), at: requester.at };
}

/** The arbiter's record takes the place of ours, if there is one, whose error is suppressed. */
export function answerStop(coordinator: Coordinator, winner: StopMessage): void {
  attachmentOf(coordinator).answerStop(winner.error, requesterOf(winner), winner.id);
}

/** There will be no answer: what stands is the record. */
export function answerNone(coordinator: Coordinator): void {
  attachmentOf(coordinator).answerNone();
}

/** Errors that came too late here, and that the arbiter is to know of, too. */
export class LateErrors {
  readonly #coordinator: Coordinator;
  /** The arbiter has these. */
  readonly #known = new Set<string>();
  #count = 0;

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
  }

  /** The arbiter has that one from us, or from another. */
  skip({ id }: StopMessage): void {
    this.#known.add(id);
  }

  /** Those that are new. Of many, which are only counted, it does not get to know. */
  take(): StopMessage[] {
    const { native } = attachmentOf(this.#coordinator);
    const count = native.suppressedCount();
    if (count === this.#count) return [];
    this.#count = count;
    const late = native.suppressed().map(({ error, requester }) => ({
      id: decode(error).id,
      error,
      requester: toRequester(requester),
      at: requester.at,
    }));
    const fresh = late.filter(({ id }) => !this.#known.has(id));
    for (const each of fresh) this.skip(each);
    return fresh;
  }
}

/** As if the requester had been one of this process's threads. */
export function applyStop(coordinator: Coordinator, stop: StopMessage): void {
  attachmentOf(coordinator).relay(stop.error, requesterOf(stop), stop.id);
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
