/** What a cluster publishes on diagnostics channels, where calls are made and where they run. */
import { AsyncLocalStorage } from 'node:async_hooks';
import diagnostics, { tracingChannel } from 'node:diagnostics_channel';
import {
  ClusterCoordinator,
  LocalStrategy,
  type TaskMessage,
  type WorkerMessage,
} from 'allstop/cluster';
import { afterEach, describe, expect, it } from 'vitest';
import { describeKinds, kinds, useClusters } from '../../support/clusters.ts';
import { eventually } from '../../support/eventually.ts';

const module = new URL('../../fixtures/cluster-traced-tasks.mjs', import.meta.url);
const channel = tracingChannel<string, TaskMessage>('allstop:cluster:task');
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

type Heard = { phase: string; name: string; [field: string]: unknown };

function listen(): Heard[] {
  const heard: Heard[] = [];
  const on = (phase: string) => (message: object) => {
    heard.push({ phase, ...(message as TaskMessage) });
  };
  const listeners = {
    start: on('start'),
    end: on('end'),
    asyncStart: on('asyncStart'),
    asyncEnd: on('asyncEnd'),
    error: on('error'),
  };
  channel.subscribe(listeners);
  ends.push(() => channel.unsubscribe(listeners));
  return heard;
}

function start(retries = 0): ClusterCoordinator {
  const strategy = new LocalStrategy({ module, workers: 1 });
  const cluster = new ClusterCoordinator(strategy, { retries });
  ends.push(() => cluster.close());
  return cluster;
}

const phasesOf = (heard: readonly Heard[], name: string): string[] =>
  heard.filter((each) => each.name === name).map(({ phase }) => phase);

describe('allstop:cluster:task', () => {
  it('tells the life of a call where it was made', async () => {
    const heard = listen();
    const cluster = start();
    expect(await cluster.run('add', [1, 2])).toBe(3);
    await expect(cluster.run('fail')).rejects.toThrow('no');
    expect(phasesOf(heard, 'add')).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
    expect(heard.at(3)).toMatchObject({
      coordinator: cluster.coordinator.name,
      side: 'caller',
      name: 'add',
      attempt: 1,
      result: 3,
    });
    expect(phasesOf(heard, 'fail')).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(heard.at(-1)).toMatchObject({ error: expect.any(RangeError) });
  });

  it('counts the attempts of a call that kills its workers', async () => {
    const heard = listen();
    const cluster = start(1);
    await expect(cluster.run('die')).rejects.toMatchObject({ code: 'ERR_ALLSTOP_UNAVAILABLE' });
    expect(heard.at(-1)).toMatchObject({ phase: 'asyncEnd', name: 'die', attempt: 2 });
  });

  it('gives a bound store to the subscribers of the start', async () => {
    const store = new AsyncLocalStorage<string>();
    channel.start.bindStore(store, ({ name }) => `in ${name}`);
    ends.push(() => channel.start.unbindStore(store));
    let seen: string | undefined;
    const onEnd = (): void => {
      seen = store.getStore();
    };
    channel.end.subscribe(onEnd);
    ends.push(() => channel.end.unsubscribe(onEnd));
    await start().run('add', [1, 2]);
    expect(seen).toBe('in add');
  });
});

describeKinds(
  kinds,
  (kind) => {
    const { start: startKind } = useClusters(kind);

    it('a worker tells of each attempt', async () => {
      const cluster = startKind(1, {}, module);
      await cluster.run('add', [1, 2]);
      await cluster.run('addLater', [3, 4]);
      await cluster.run('fail').catch(() => {});
      const heard = (await cluster.run('told')) as Heard[];
      expect(phasesOf(heard, 'add')).toEqual(['start', 'end']);
      expect(phasesOf(heard, 'addLater')).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
      expect(phasesOf(heard, 'fail')).toEqual(['start', 'error', 'end']);
      expect(heard.find(({ phase }) => phase === 'asyncEnd')).toMatchObject({
        side: 'worker',
        attempt: 1,
        workerIndex: 0,
        result: 7,
      });
      expect(phasesOf(heard, 'told')).toEqual(['start']);
    });
  },
  ['thread', 'process'],
);

describe('allstop:cluster:worker', () => {
  it('tells of workers that start and are lost', async () => {
    const messages: WorkerMessage[] = [];
    const listener = (message: unknown): void => void messages.push(message as WorkerMessage);
    diagnostics.subscribe('allstop:cluster:worker', listener);
    ends.push(() => diagnostics.unsubscribe('allstop:cluster:worker', listener));
    const cluster = start();
    await cluster.run('die').catch(() => {});
    await eventually(() => messages.length >= 3);
    expect(messages.map(({ event }) => event)).toEqual(['started', 'lost', 'started']);
    expect(messages[1]).toMatchObject({
      coordinator: cluster.coordinator.name,
      worker: { name: 'worker:0', index: 0 },
      error: expect.any(Error),
    });
  });
});
