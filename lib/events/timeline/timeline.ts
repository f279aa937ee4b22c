/** `coord.timeline()`: the events of the core, and of the clusters of this JavaScript thread. */

import { define, oneLine } from '../../base/thrown-value.ts';
import { now } from '../../base/timer.ts';
import {
  type NativeAttachment,
  type NativeRecord,
  type NativeTimeline,
  THREAD_KINDS,
  TIMELINE_TYPES,
} from '../../native/binding.ts';
import { decode } from '../../record/encoded-error.ts';
import { callEventsOf } from './call-events.ts';
import { type Timeline, type TimelineEvent, toChromeTrace } from './events.ts';

type NativeEvent = NativeTimeline['events'][number];

/** `record`: the current stop. Its error is only shown: the program is not given it. */
function toEvent(native: NativeEvent, record: NativeRecord | null): TimelineEvent {
  const type = TIMELINE_TYPES[native.type] ?? 'thread-started';
  const { at, thread, generation, name } = native;
  const requester =
    type === 'stop-requested' && record?.generation === generation ? record.requester : undefined;
  // Spread, not assigned, since a program may have put setters on Object.prototype.
  return {
    at,
    type,
    ...(name !== '' && { [type === 'queue-full' ? 'queue' : 'thread']: name }),
    ...(thread !== 0 && { id: thread, kind: THREAD_KINDS[native.kind] ?? 'custom' }),
    ...(native.unobserved && { unobserved: true }),
    ...(generation !== 0 && { stop: generation }),
    ...(requester !== undefined && { thread: requester.threadName, via: requester.via }),
    ...(requester !== undefined && record?.error && { error: oneLine(decode(record.error).value) }),
  };
}

export function timeline(attachment: { readonly native: NativeAttachment }): Timeline {
  const { native } = attachment;
  const record = native.record();
  const core = native.timeline();
  const calls = callEventsOf(attachment);
  // The clock of JavaScript is the core's, but counts from elsewhere.
  const coreBegan = now() - core.ageMs;
  const began = Math.min(coreBegan, calls?.events[0]?.at ?? coreBegan);
  const events = core.events.map((each) => toEvent(each, record));
  for (const event of events) event.at += coreBegan - began;
  for (const event of calls?.events ?? []) events.push({ ...event, at: event.at - began });
  const made = {
    version: 1,
    coordinator: native.name,
    startedAt: new Date(core.startedAt - (coreBegan - began)).toISOString(),
    dropped: core.dropped + (calls?.dropped ?? 0),
    events: events.toSorted((a, b) => a.at - b.at),
  } as Timeline;
  // Not enumerable: what is left can be cloned, posted and compared as plain data.
  define(made, 'toChromeTrace', () => toChromeTrace(made), false);
  return made;
}
