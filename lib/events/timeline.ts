/**
 * The public types of a timeline: plain data, so that a file can hold them as JSON. Its lanes, and its
 * form for Chrome.
 */

import { define, oneLine } from '../base/thrown-value.ts';
import { now, soon } from '../base/timer.ts';
import {
  type NativeAttachment,
  type NativeRecord,
  type NativeTimeline,
  THREAD_KINDS,
  type ThreadKind,
  TIMELINE_TYPES,
  type Via,
} from '../native/binding.ts';
import { decode } from '../record/encoded-error.ts';

/** What a cluster notes of its calls. */
export const CALL_TYPES = [
  'call-queued',
  'call-started',
  'call-lost',
  'call-run-again',
  'call-ended',
] as const;

type CallEventType = (typeof CALL_TYPES)[number];

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

// A timeline by threads: when each of them started and ended, saw each stop, and was left behind.

/** One life of one thread. Times are milliseconds, as in the timeline. */
export type Lane = {
  thread: string;
  kind: string;
  /** Left out: not known (the event was forgotten, or the thread is not registered). */
  startedAt?: number;
  /** Of a hook, which is alive from the stop on: when its turn came. */
  begunAt?: number;
  /** Left out: the thread has not ended. */
  endedAt?: number;
  seen: { stop: number; at: number }[];
  /** When a join left it behind. */
  stragglerAt?: number;
};

/** How long a thread took from the request of a stop; undefined: it did not, or nobody saw it. */
export type StopLatency = {
  /** The name of the thread. */
  thread: string;
  /** What the thread is, as in ThreadInfo; 'thread' if it is not registered. */
  kind: string;
  /** Milliseconds from the stop until the thread saw it. */
  seenMs?: number;
  /** Milliseconds from the stop until the thread ended. */
  endedMs?: number;
  /** A join has left the thread behind. */
  isStraggler?: true;
};

const OF_THREADS: ReadonlySet<string> = new Set([
  'thread-started',
  'hook-began',
  'first-seen',
  'ended',
  'straggler',
]);

/** In the order in which the threads first appear. */
export function lanesOf(events: readonly TimelineEvent[]): Lane[] {
  const lanes: Lane[] = [];
  const open = new Map<string, Lane>();
  for (const event of events) {
    const { type, at, thread, id, kind } = event;
    const isOfThread = OF_THREADS.has(type);
    if (!isOfThread || thread === undefined) continue;
    const key = id === undefined ? `name ${thread}` : `id ${id}`;
    let lane = open.get(key);
    // A hook runs at each stop: each run is a life of its own.
    if (lane === undefined || (type === 'thread-started' && lane.endedAt !== undefined)) {
      lane = { thread, kind: kind ?? 'thread', seen: [] };
      open.set(key, lane);
      lanes.push(lane);
    }
    if (type === 'thread-started') lane.startedAt = at;
    else if (type === 'hook-began') lane.begunAt = at;
    else if (type === 'ended') lane.endedAt = at;
    else if (type === 'straggler') lane.stragglerAt ??= at;
    else lane.seen.push({ stop: event.stop ?? 0, at });
  }
  return lanes;
}

/** The latencies of the newest stop, the slowest first. Empty if there was no stop. */
export function latenciesOf(events: readonly TimelineEvent[]): StopLatency[] {
  const stop = events.findLast(({ type }) => type === 'stop-requested');
  if (stop === undefined) return [];
  const found: StopLatency[] = [];
  for (const lane of lanesOf(events)) {
    if (lane.endedAt !== undefined && lane.endedAt < stop.at) continue;
    const seen = lane.seen.find((each) => each.stop === stop.stop);
    if (lane.startedAt === undefined && lane.endedAt === undefined && seen === undefined) continue;
    const { thread, kind, endedAt, stragglerAt } = lane;
    const latency: StopLatency = { thread, kind };
    if (seen !== undefined) latency.seenMs = seen.at - stop.at;
    if (endedAt !== undefined) latency.endedMs = endedAt - stop.at;
    if (stragglerAt !== undefined && stragglerAt >= stop.at) latency.isStraggler = true;
    found.push(latency);
  }
  const slowness = ({ kind, endedMs, seenMs }: StopLatency): number =>
    kind === 'thread' ? (seenMs ?? 0) : (endedMs ?? Number.POSITIVE_INFINITY);
  // Two threads that have not ended are equally slow: Infinity less Infinity is NaN.
  return found.toSorted((a, b) => slowness(b) - slowness(a) || 0);
}

// A timeline in the format of Chrome's trace viewer, and back. Times there are microseconds. Every
// event of the timeline is an instant with the event itself as `args`; slices show how long threads
// were alive and calls were in flight.

const CATEGORY = 'allstop';
const PROCESS = 1;
/** The track of events that are about no thread. */
const COORDINATOR_TRACK = 0;

type TimelineData = Omit<Timeline, 'toChromeTrace'>;
type Instant = { cat: string; ph: string; args: TimelineEvent };

function metadata(name: string, tid: number, args: object): object {
  return { ph: 'M', name, pid: PROCESS, tid, args };
}

const trackNameOf = ({ thread, id }: TimelineEvent): string | undefined =>
  thread === undefined ? undefined : id === undefined ? thread : `${thread} (${id})`;

export function toChromeTrace(data: TimelineData): ChromeTrace {
  const { coordinator, startedAt, dropped, events } = data;
  const end = events.at(-1)?.at ?? 0;
  const tracks = new Map<string, number>();
  const traceEvents: object[] = [
    metadata('process_name', COORDINATOR_TRACK, { name: coordinator }),
    metadata('thread_name', COORDINATOR_TRACK, { name: 'coordinator' }),
    metadata('allstop_timeline', COORDINATOR_TRACK, { coordinator, startedAt, dropped }),
  ];
  const trackOf = (event: TimelineEvent): number => {
    const name = event.type === 'stop-requested' ? undefined : trackNameOf(event);
    if (name === undefined) return COORDINATOR_TRACK;
    let track = tracks.get(name);
    if (track === undefined) {
      track = tracks.size + 1;
      tracks.set(name, track);
      traceEvents.push(metadata('thread_name', track, { name }));
    }
    return track;
  };
  const common = { cat: CATEGORY, pid: PROCESS };
  const alive = new Map<number, TimelineEvent>();
  const running = new Set<number>();
  const slice = (started: TimelineEvent, endedAt: number): void => {
    const ts = started.at * 1_000;
    const dur = (endedAt - started.at) * 1_000;
    const name = `${started.kind ?? 'thread'} ${started.thread ?? ''}`;
    traceEvents.push({ ...common, ph: 'X', name, ts, dur, tid: trackOf(started) });
  };
  for (const event of events) {
    const { type, at, id, call } = event;
    const ts = at * 1_000;
    const tid = trackOf(event);
    const s = type === 'stop-requested' || type === 'stop-cleared' ? 'g' : 't';
    traceEvents.push({ ...common, ph: 'i', s, name: type, ts, tid, args: event });
    if (call !== undefined && type !== 'call-queued') {
      const isStart = type === 'call-started';
      if (isStart) running.add(call);
      // Of an attempt that is lost and run again, the first of the two events is the end.
      if (isStart || running.delete(call)) {
        const ph = isStart ? 'b' : 'e';
        traceEvents.push({ ...common, ph, name: event.function, id: call, ts, tid });
      }
    }
    if (id === undefined) continue;
    if (type === 'thread-started') alive.set(id, event);
    const started = alive.get(id);
    if (type !== 'ended' || started === undefined) continue;
    slice(started, at);
    alive.delete(id);
  }
  for (const started of alive.values()) slice(started, end);
  return { traceEvents };
}

/** The timeline that a Chrome trace was made of. Undefined if it has no events of ours. */
export function fromChromeTrace({ traceEvents }: ChromeTrace): TimelineData | undefined {
  const all: Partial<Instant & { name: string }>[] = traceEvents;
  const head = all.find((each) => each?.ph === 'M' && each.name === 'allstop_timeline');
  if (head === undefined) return undefined;
  const events = all.filter((each) => each?.ph === 'i' && each.cat === CATEGORY);
  return {
    ...(head.args as unknown as Omit<TimelineData, 'version' | 'events'>),
    version: 1,
    events: events.map(({ args }) => args as TimelineEvent),
  };
}

// What a cluster notes of its calls: a ring of typed arrays for each coordinator, in the
// JavaScript thread that has made the cluster. A call of a trivial function takes microseconds,
// so an event must take nanoseconds: `note` allocates nothing once the ring has its size, and reads
// the clock once for all events between two turns of the microtask queue.

const CAPACITY = 4_096;
const NO_WORKER = -1;

/** The indexes of CALL_TYPES, for `note`. */
export const CALL: Readonly<Record<'queued' | 'started' | 'lost' | 'runAgain' | 'ended', number>> =
  { queued: 0, started: 1, lost: 2, runAgain: 3, ended: 4 };

/** `at`: of the clock of lib/base/timer.ts. */
type Recorded = { events: TimelineEvent[]; dropped: number };

export class CallEvents {
  readonly #at = new Float64Array(CAPACITY);
  readonly #types = new Uint8Array(CAPACITY);
  readonly #calls = new Int32Array(CAPACITY);
  readonly #functions: string[] = [];
  /** The index of the worker, of 'started'. */
  readonly #workers = new Int32Array(CAPACITY);
  /** The number of events so far. The event number n is at n % CAPACITY. */
  #count = 0;
  /** The time of all events until the microtask that #forget begins; 0 if it was not read. */
  #now = 0;
  readonly #forget = (): void => {
    this.#now = 0;
  };

  /** `type`: a value of CALL. `worker`: of 'started', if it is known. */
  note(type: number, call: number, name: string, worker: number = NO_WORKER): void {
    if (this.#now === 0) {
      this.#now = now();
      soon(this.#forget);
    }
    const place = this.#count++ % CAPACITY;
    this.#at[place] = this.#now;
    this.#types[place] = type;
    this.#calls[place] = call;
    this.#functions[place] = name;
    this.#workers[place] = worker;
  }

  recorded(): Recorded {
    const dropped = Math.max(0, this.#count - CAPACITY);
    const events: TimelineEvent[] = [];
    for (let each = dropped; each < this.#count; each++) {
      const place = each % CAPACITY;
      const worker = this.#workers[place] ?? NO_WORKER;
      events.push({
        at: this.#at[place] ?? 0,
        type: CALL_TYPES[this.#types[place] ?? 0] ?? 'call-queued',
        call: this.#calls[place] ?? 0,
        function: this.#functions[place] ?? '',
        ...(worker !== NO_WORKER && { worker }),
      });
    }
    return { events, dropped };
  }
}

/** By the attachment of the cluster's coordinator. */
const rings = new WeakMap<object, CallEvents>();

/** The ring of the cluster whose coordinator this is. */
export function beginCallEvents(attachment: object): CallEvents {
  const ring = new CallEvents();
  rings.set(attachment, ring);
  return ring;
}

// `coord.timeline()`: the events of the core, and of the clusters of this JavaScript thread.

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
  const calls = rings.get(attachment)?.recorded(); // undefined: this thread has no cluster with it
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
