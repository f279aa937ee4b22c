/** What the timeline of a cluster's coordinator tells of its calls. */
import type { TimelineEvent } from 'allstop';
import type { ClusterCoordinator } from 'allstop/cluster';
import { expect, it } from 'vitest';
import { describeKinds, kinds, useClusters } from '../../support/clusters.ts';

const callsOf = (cluster: ClusterCoordinator): TimelineEvent[] =>
  cluster.coordinator.timeline().events.filter(({ type }) => type.startsWith('call-'));

describeKinds(kinds, (kind) => {
  const { start, visits } = useClusters(kind);

  it('a call is queued, started and ended, in this order', async () => {
    const cluster = start();
    const value = await cluster.schedule('add', [1, 2]);
    expect(await value.fetch()).toBe(3);
    const events = callsOf(cluster);
    expect(events.map(({ type }) => type)).toEqual(['call-queued', 'call-started', 'call-ended']);
    const calls = new Set(events.map(({ call }) => call));
    expect(calls.size).toBe(1);
    expect(events.map((event) => event.function)).toEqual(['add', 'add', 'add']);
    expect(events.map(({ worker }) => typeof worker)).toEqual(['undefined', 'number', 'undefined']);
    const times = events.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it('a call whose worker dies is lost, and run again', async () => {
    const cluster = start();
    const value = await cluster.schedule('dieUntil', [2, visits.path, 'dying']);
    (await visits.next('dying')).pass();
    expect(await value.fetch()).toBe(2);
    expect(callsOf(cluster).map(({ type }) => type)).toEqual([
      'call-queued',
      'call-started',
      'call-lost',
      'call-run-again',
      'call-started',
      'call-ended',
    ]);
    const { traceEvents } = cluster.coordinator.timeline().toChromeTrace();
    const ends = (traceEvents as { ph: string }[])
      .map(({ ph }) => ph)
      .filter((ph) => 'be'.includes(ph));
    expect(ends).toEqual(['b', 'e', 'b', 'e']);
  });
});
