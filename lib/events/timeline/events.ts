/** The public types of a timeline. They are plain data, so that a file can hold them as JSON. */

import type { ThreadKind, TIMELINE_TYPES, Via } from '../../native/binding.ts';

/** What a cluster notes of its calls. */
export const CALL_TYPES = [
  'call-queued',
  'call-started',
  'call-lost',
  'call-run-again',
  'call-ended',
] as const;

export type CallEventType = (typeof CALL_TYPES)[number];

/** What an event is about. docs/diagnose.md explains each type. */
export type TimelineEventType = (typeof TIMELINE_TYPES)[number] | CallEventType;

/** One event. Fields that do not apply to its type are left out. */
export type TimelineEvent = {
  /** Milliseconds since `startedAt`, by a monotonic clock. */
  at: number;
  /** What the event is about. */
  type: TimelineEventType;
  /** The name of the thread that the event is about; of 'stop-requested': that requested it. */
  thread?: string;
  /** Which thread it is, where several have one name. Left out if it is not registered. */
  id?: number;
  /** The kind of the registered thread. */
  kind?: ThreadKind;
  /** Of 'ended': nobody saw the end, since the JavaScript thread that watched it had ended. */
  unobserved?: true;
  /** Of 'stop-requested', 'first-seen' and 'stop-cleared': the number of the stop, from 1. */
  stop?: number;
  /** Of 'stop-requested': how the stop came about. Known of the current stop only. */
  via?: Via;
  /** Of 'stop-requested': the error of the stop, as a line. Known of the current stop only. */
  error?: string;
  /** Of 'queue-full': the name of the queue. */
  queue?: string;
  /** Of calls: which one. */
  call?: number;
  /** Of calls: the name of the function. */
  function?: string;
  /** Of 'call-started': the index of the worker, or of the node. */
  worker?: number;
};

/** In the format of Chrome's trace viewer, which https://ui.perfetto.dev opens, too. */
export type ChromeTrace = {
  /** The events of the format, with their times in microseconds. */
  traceEvents: object[];
};

/** What `coord.timeline()` returns: plain data but for the method. */
export type Timeline = {
  /** The version of this format. */
  version: 1;
  /** The name of the coordinator. */
  coordinator: string;
  /** The time of the first event: ISO 8601. */
  startedAt: string;
  /** The number of older events, which were forgotten. */
  dropped: number;
  /** The oldest first. */
  events: TimelineEvent[];
  /** The same events in the format of Chrome's trace viewer. */
  toChromeTrace(): ChromeTrace;
};
