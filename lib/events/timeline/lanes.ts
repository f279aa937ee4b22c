/** A timeline by threads: when each of them started and ended, saw each stop, and was left behind. */

import type { TimelineEvent } from './events.ts';

/** One life of one thread. Times are milliseconds, as in the timeline. */
export type Lane = {
  thread: string;
  kind: string;
  /** Undefined: not known (the event was forgotten, or the thread is not registered). */
  startedAt: number | undefined;
  /** Of a hook, which is alive from the stop on: when its turn came. */
  begunAt: number | undefined;
  /** Undefined: the thread has not ended. */
  endedAt: number | undefined;
  seen: { stop: number; at: number }[];
  /** When a join left it behind. */
  stragglerAt: number | undefined;
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
      const unknown = {
        startedAt: undefined,
        begunAt: undefined,
        endedAt: undefined,
        stragglerAt: undefined,
      };
      lane = { thread, kind: kind ?? 'thread', seen: [], ...unknown };
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
  // Not a subtraction: two threads that have not ended are equally slow.
  return found.toSorted((a, b) => {
    const [x, y] = [slowness(a), slowness(b)];
    return x === y ? 0 : x < y ? 1 : -1;
  });
}
