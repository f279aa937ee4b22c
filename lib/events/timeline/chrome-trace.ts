/**
 * A timeline in the format of Chrome's trace viewer, and back. Times there are microseconds. Every
 * event of the timeline is an instant with the event itself as `args`; slices show how long threads
 * were alive and calls were in flight.
 */

import type { ChromeTrace, Timeline, TimelineEvent } from './events.ts';

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

export function toChromeTrace(timeline: TimelineData): ChromeTrace {
  const { coordinator, startedAt, dropped, events } = timeline;
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
  const all = traceEvents as Partial<Instant & { name: string }>[];
  const head = all.find((each) => each?.ph === 'M' && each.name === 'allstop_timeline');
  if (head === undefined) return undefined;
  const events = all.filter((each) => each?.ph === 'i' && each.cat === CATEGORY);
  return {
    ...(head.args as unknown as Omit<TimelineData, 'version' | 'events'>),
    version: 1,
    events: events.map(({ args }) => args as TimelineEvent),
  };
}
