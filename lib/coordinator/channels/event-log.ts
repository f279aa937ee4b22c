/** With `NODE_DEBUG=allstop`: a line on standard error for what happens at a coordinator. */

import { debuglog } from 'node:util';
import {
  type NativeRecord,
  type NativeTimeline,
  STOP_KINDS,
  THREAD_KINDS,
  TIMELINE_TYPES,
} from '../../native/binding.ts';

export const log: ReturnType<typeof debuglog> = debuglog('allstop');

/** The deed of a thread, by the event. */
const DEEDS: Record<string, string> = {
  'thread-started': 'has started',
  ended: 'has ended',
  straggler: 'was left behind: it is alive after the grace period',
};

/** @param record the current stop */
export function logEvent(
  coordinator: string,
  event: NativeTimeline['events'][number],
  record: NativeRecord | null,
): void {
  const { name, generation, threadId } = event;
  const type = TIMELINE_TYPES[event.type] as string;
  const deed = DEEDS[type];
  if (deed !== undefined) {
    const kind = THREAD_KINDS[event.kind] ?? 'custom';
    const which = threadId === undefined ? kind : `${kind} ${threadId}`;
    log("coordinator '%s': the thread '%s' (%s) %s", coordinator, name, which, deed);
  } else if (type === 'stop-requested' && record?.generation === generation) {
    const { threadName, threadId: id, via } = record.requester;
    const kind = STOP_KINDS[record.kind];
    const by = "coordinator '%s': stopped (%s) by the thread '%s' (%d), via '%s'";
    log(by, coordinator, kind, threadName, id, via);
  } else if (type === 'stop-requested') {
    log("coordinator '%s': stopped, and cleared since", coordinator);
  } else if (type === 'stop-cleared') {
    log("coordinator '%s': the stop was cleared", coordinator);
  } else if (type === 'queue-full') {
    log("queue '%s': full, a producer waits", name);
  }
}
