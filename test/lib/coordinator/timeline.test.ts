import { once } from 'node:events';
import { BoundedQueue, Coordinator, type TimelineEvent } from 'allstop';
import { describe, expect, it } from 'vitest';
import { gate } from '../../support/gate.ts';
import { addon } from '../../support/test-addon.ts';

const fetcher = async (coord: Coordinator): Promise<void> => {
  await coord.waitForStop();
};

/** Each event in one word: its type and thread. */
const words = (events: readonly TimelineEvent[]): string[] =>
  events.map(({ type, thread, queue }) => [type, thread ?? queue].filter(Boolean).join(' '));

describe('timeline()', () => {
  it('tells the life of a coordinator in order, as plain data', async () => {
    const coord = new Coordinator({ name: 'pipeline' });
    const before = Date.now();
    void coord.start(fetcher, { name: 'fetcher' });
    coord.requestStop();
    await coord.join();
    const timeline = coord.timeline();
    expect(words(timeline.events)).toEqual([
      'thread-started fetcher',
      'stop-requested main',
      'first-seen main',
      'ended fetcher',
    ]);
    expect(timeline).toMatchObject({ version: 1, coordinator: 'pipeline', dropped: 0 });
    expect(timeline.events[1]).toMatchObject({ stop: 1, via: 'call' });
    expect(Date.parse(timeline.startedAt)).toBeGreaterThanOrEqual(before);
    const times = timeline.events.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times[0]).toBe(0);
    expect(JSON.parse(JSON.stringify(timeline))).toEqual(structuredClone(timeline));
  });

  it('has the error of the stop, in a line, without giving it to the program', async () => {
    const coord = new Coordinator();
    coord.requestStop(new RangeError('page 17 is missing\nand more'));
    const [stop] = coord.timeline().events;
    expect(stop).toMatchObject({ type: 'stop-requested', error: 'RangeError: page 17 is missing' });
    await expect(coord.join()).rejects.toThrow(RangeError);
    const clean = new Coordinator();
    clean.requestStop();
    expect(clean.timeline().events[0]).not.toHaveProperty('error');
  });

  it('tells when the turn of each hook came', async () => {
    const coord = new Coordinator();
    coord.onStop(() => {}, { name: 'second' });
    coord.onStop(async () => {}, { name: 'first' });
    coord.requestStop();
    await coord.join();
    const ofHooks = coord.timeline().events.filter(({ kind }) => kind === 'hook');
    expect(words(ofHooks)).toEqual([
      'thread-started second',
      'thread-started first',
      'hook-began first',
      'ended first',
      'hook-began second',
      'ended second',
    ]);
  });

  it('is empty where nothing has happened', () => {
    const coord = new Coordinator();
    expect(coord.timeline()).toMatchObject({ version: 1, events: [] });
    expect(coord.shouldStop()).toBe(false);
    expect(coord.timeline().events).toEqual([]);
  });

  it('notes that a thread sees a stop once, when it looks', () => {
    const coord = new Coordinator();
    coord.requestStop();
    expect(words(coord.timeline().events)).toEqual(['stop-requested main']);
    for (let looks = 0; looks < 3; looks++) coord.shouldStop();
    expect(words(coord.timeline().events)).toEqual(['stop-requested main', 'first-seen main']);
  });

  it('tells stops apart', () => {
    const coord = new Coordinator();
    for (let stop = 1; stop <= 2; stop++) {
      coord.requestStop();
      coord.shouldStop();
      coord.clearStop();
    }
    expect(coord.timeline().events.map(({ type, stop }) => [type, stop])).toEqual([
      ['stop-requested', 1],
      ['first-seen', 1],
      ['stop-cleared', 1],
      ['stop-requested', 2],
      ['first-seen', 2],
      ['stop-cleared', 2],
    ]);
  });

  it('names the worker that sees the stop, with its registration', async () => {
    const coord = new Coordinator();
    const module = `
      const { workerData } = require('node:worker_threads');
      import(workerData).then(({ Coordinator }) => Coordinator.current().waitForStopSync());`;
    const worker = coord.spawn(module, {
      eval: true,
      name: 'reader',
      workerData: import.meta.resolve('allstop'),
    });
    await once(worker, 'online');
    coord.requestStop();
    await coord.join();
    const { events } = coord.timeline();
    const { id } = events.find(({ type }) => type === 'thread-started') as TimelineEvent;
    const seen = events.filter(({ type }) => type === 'first-seen');
    expect(seen).toContainEqual(
      expect.objectContaining({ thread: 'reader', kind: 'worker', id, stop: 1 }),
    );
    expect(words(events).at(-1)).toBe('ended reader');
  });

  it('notes the native thread whose wait the stop has ended', async () => {
    const coord = new Coordinator();
    addon.start(coord, 'wait', 'timeline-waiter');
    coord.requestStop();
    await coord.join();
    const found = words(coord.timeline().events);
    expect(found).toContain('first-seen timeline-waiter');
    expect(found).toContain('ended timeline-waiter');
  });

  it('notes the threads that a join leaves behind, and their end', async () => {
    const coord = new Coordinator({ stopGracePeriodMs: 0 });
    const slow = gate();
    const task = coord.start(() => slow.opened, { name: 'slow' });
    coord.requestStop();
    await coord.join({ ignoreLiveThreads: true });
    expect(words(coord.timeline().events).at(-1)).toBe('straggler slow');
    slow.open();
    await task;
    expect(words(coord.timeline().events).at(-1)).toBe('ended slow');
  });

  it('notes a full queue, but not each of its waits', async () => {
    const coord = new Coordinator();
    const queue = new BoundedQueue({ capacity: 1, name: 'pages', coordinator: coord });
    await queue.enqueue(1);
    const waits = [queue.enqueue(2), queue.enqueue(3)];
    expect(words(coord.timeline().events)).toEqual(['queue-full pages']);
    for (let item = 1; item <= 3; item++) expect(await queue.dequeue()).toBe(item);
    await Promise.all(waits);
  });

  it('forgets the oldest events, and counts them', async () => {
    const coord = new Coordinator();
    for (let round = 0; round < 2_100; round++) await coord.start(() => {}, { name: `t${round}` });
    const { events, dropped } = coord.timeline();
    expect(events.length).toBe(4_096);
    expect(dropped).toBe(2 * 2_100 - 4_096);
    expect(words(events).slice(-2)).toEqual(['thread-started t2099', 'ended t2099']);
  });
});

describe('toChromeTrace()', () => {
  it('has a track for each thread, its life, and the stop across all tracks', async () => {
    const coord = new Coordinator({ name: 'pipeline' });
    void coord.start(fetcher, { name: 'fetcher' });
    void coord.start(fetcher, { name: 'fetcher' });
    coord.requestStop();
    await coord.join();
    const { traceEvents } = coord.timeline().toChromeTrace();
    const names = traceEvents.filter((each) => (each as { name?: string }).name === 'thread_name');
    expect(names.map((each) => (each as { args: { name: string } }).args.name)).toEqual([
      'coordinator',
      'fetcher (1)',
      'fetcher (2)',
      'main',
    ]);
    expect(traceEvents).toContainEqual(
      expect.objectContaining({ ph: 'i', s: 'g', name: 'stop-requested' }),
    );
    const slices = traceEvents.filter((each) => (each as { ph: string }).ph === 'X');
    expect(slices).toHaveLength(2);
    for (const each of slices as { ts: number; dur: number }[]) expect(each.dur).toBeGreaterThan(0);
  });
});
