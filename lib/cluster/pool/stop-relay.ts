/**
 * A stop on its way between processes, each of which has a coordinator of its own. The
 * parent is the arbiter: the first stop that it hears of is the record for all, and what
 * comes later is suppressed there.
 */

import { hostname } from 'node:os';
import { Attachment } from '../../attachment.ts';
import type { Coordinator } from '../../coordinator.ts';
import { decode, encode } from '../../error-record.ts';
import { nameThread, type StopRequester } from '../../stop-record.ts';

/** The error as a record, if there is one, and who asked for it. */
export type StopMessage = { error: Uint8Array | null; requester: StopRequester };

/** Of a coordinator that is stopped. */
export function stopMessage(coordinator: Coordinator): StopMessage | undefined {
  const record = coordinator.stopRecord;
  if (record === undefined) return undefined;
  const error = record.error === undefined ? null : encode(record.error).bytes;
  return { error, requester: record.requester };
}

/**
 * What the arbiter has answered. Our own record was provisional: if another's has won, it
 * takes its place, and our error is suppressed.
 */
export function adoptStop(coordinator: Coordinator, winner: StopMessage): void {
  const own = stopMessage(coordinator);
  if (own !== undefined) {
    if (isSame(own, winner)) return;
    (Attachment.behind(coordinator) as Attachment).native.clearStop();
  }
  applyStop(coordinator, winner);
  if (own !== undefined && own.error !== null) applyStop(coordinator, own);
}

function isSame(one: StopMessage, other: StopMessage): boolean {
  const [a, b] = [one.requester, other.requester];
  const isSameHost = (a.host ?? hostname()) === (b.host ?? hostname());
  return isSameHost && a.pid === b.pid && a.threadId === b.threadId && a.via === b.via;
}

/** As if the requester had been one of this process's threads. */
export function applyStop(coordinator: Coordinator, { error, requester }: StopMessage): void {
  const attachment = Attachment.behind(coordinator) as Attachment;
  nameThread(requester);
  const { language, via, threadName, threadId, pid, stack, signal } = requester;
  const from = {
    native: language === 'native',
    via,
    threadName,
    threadId,
    pid,
    ...(stack !== undefined && { stack }),
    ...(signal !== undefined && { signal }),
    hasCaller: false,
  };
  if (error === null) attachment.requestPlainStop(from);
  else attachment.report(decode(error).value, from);
}
