/** `coord.timeline()`: the events of the core, and of the clusters of this JavaScript thread. */

import { now } from '../../base/clock.ts';
import { define } from '../../base/define.ts';
import {
  type NativeRecord,
  type NativeTimeline,
  THREAD_KINDS,
  TIMELINE_TYPES,
} from '../../native/binding.ts';
import type { Attachment } from '../attachment.ts';
import { toChromeTrace } from './chrome-trace.ts';
import { closureEventsOf } from './closure-events.ts';
import type { Timeline, TimelineEvent } from './events.ts';

type NativeEvent = NativeTimeline['events'][number];

/** `record`: the current stop. */
function toEvent(native: NativeEvent, record: NativeRecord | null): TimelineEvent {
  const type = TIMELINE_TYPES[native.type] ?? 'thread-started';
  const { at, thread, generation, name } = native;
  const event: TimelineEvent = { at, type };
  if (name !== '') event[type === 'queue-full' ? 'queue' : 'thread'] = name;
  if (thread !== 0) {
    event.id = thread;
    event.kind = THREAD_KINDS[native.kind] ?? 'custom';
  }
  if (native.unobserved) event.unobserved = true;
  if (generation !== 0) event.stop = generation;
  if (type === 'stop-requested' && record?.generation === generation) {
    event.thread = record.requester.threadName;
    event.via = record.requester.via;
  }
  return event;
}

export function timeline(attachment: Attachment): Timeline {
  const { native } = attachment;
  const record = native.record();
  const core = native.timeline();
  const closures = closureEventsOf(attachment);
  // The clock of JavaScript is the core's, but counts from elsewhere.
  const coreBegan = now() - core.ageMs;
  const began = Math.min(coreBegan, closures?.events[0]?.at ?? coreBegan);
  const events = core.events.map((each) => toEvent(each, record));
  for (const event of events) event.at += coreBegan - began;
  for (const event of closures?.events ?? []) events.push({ ...event, at: event.at - began });
  const made = {
    version: 1,
    coordinator: native.name,
    startedAt: new Date(core.startedAt - (coreBegan - began)).toISOString(),
    dropped: core.dropped + (closures?.dropped ?? 0),
    events: events.toSorted((a, b) => a.at - b.at),
  } as Timeline;
  // Not enumerable: what is left can be cloned, posted and compared as plain data.
  define(made, 'toChromeTrace', () => toChromeTrace(made), false);
  return made;
}
