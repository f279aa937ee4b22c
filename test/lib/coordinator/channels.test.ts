/** What coordinators publish on diagnostics channels. */
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Coordinator, type StopMessage, type StragglerMessage, type ThreadMessage } from 'allstop';
import { afterEach, describe, expect, it } from 'vitest';
import { collectUntil } from '../../support/collect.ts';
import { eventually } from '../../support/eventually.ts';
import { gate } from '../../support/gate.ts';
import { addon } from '../../support/test-addon.ts';

type Messages = {
  'allstop:stop': StopMessage;
  'allstop:thread:start': ThreadMessage;
  'allstop:thread:end': ThreadMessage;
  'allstop:straggler': StragglerMessage;
};

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Subscribes until the end of the test. */
function subscribe<K extends keyof Messages>(name: K, listener: (message: Messages[K]) => void) {
  const subscriber = (message: unknown): void => listener(message as Messages[K]);
  diagnostics.subscribe(name, subscriber);
  const end = (): void => void diagnostics.unsubscribe(name, subscriber);
  ends.push(end);
  return end;
}

/** The messages of the coordinators `names`: each as its channel and the name of the thread. */
function listen(...names: string[]): string[] {
  const heard: string[] = [];
  const add = (channel: string, { coordinator }: { coordinator: string }, what = ''): void => {
    if (names.includes(coordinator)) heard.push(`${channel} ${what}`.trim());
  };
  subscribe('allstop:stop', (message) => add('stop', message, message.record?.requester.via));
  subscribe('allstop:thread:start', (message) => add('start', message, message.thread.name));
  subscribe('allstop:thread:end', (message) => add('end', message, message.thread.name));
  subscribe('allstop:straggler', (message) => add('straggler', message, message.thread.name));
  return heard;
}

describe('the channels of a coordinator', () => {
  it('tell the life of its threads in order', async () => {
    const heard = listen('life');
    const coord = new Coordinator({ name: 'life' });
    const task = coord.start(() => coord.waitForStop(), { name: 'task' });
    coord.requestStop();
    expect(heard).toEqual(['start task', 'stop call']);
    await task;
    await coord.join();
    expect(heard).toEqual(['start task', 'stop call', 'end task']);
  });

  it('have messages with the thread, the record and the straggler', async () => {
    const stops: StopMessage[] = [];
    const threads: ThreadMessage[] = [];
    const stragglers: StragglerMessage[] = [];
    subscribe('allstop:stop', (message) => stops.push(message));
    subscribe('allstop:thread:start', (message) => threads.push(message));
    subscribe('allstop:thread:end', (message) => threads.push(message));
    subscribe('allstop:straggler', (message) => stragglers.push(message));
    const coord = new Coordinator({ name: 'messages' });
    const { coordinatorId } = { coordinatorId: coord.handle.id };
    const end = gate();
    const task = coord.start(() => end.opened, { name: 'deaf' });
    const error = new RangeError('full');
    coord.requestStop(error);
    await expect(coord.join({ stopGracePeriodMs: 0 })).rejects.toBe(error);
    await eventually(() => stragglers.length > 0);
    end.open();
    await task;
    const about = { coordinator: 'messages', coordinatorId };
    expect(stops).toEqual([
      { ...about, record: expect.objectContaining({ kind: 'error', error }) },
    ]);
    expect(stops[0]?.record?.requester).toMatchObject({ via: 'call', threadName: 'main' });
    const thread = { name: 'deaf', kind: 'task', alive: true, startedAt: expect.any(Date) };
    expect(threads).toEqual([
      { ...about, thread },
      { ...about, thread: { ...thread, alive: false, endedAt: expect.any(Date) } },
    ]);
    expect(stragglers).toEqual([{ ...about, thread, runningForMs: expect.any(Number) }]);
  });

  it('tell of native threads, with their thread id', async () => {
    const ended: ThreadMessage[] = [];
    const heard = listen('native');
    subscribe('allstop:thread:end', (message) => ended.push(message));
    const coord = new Coordinator({ name: 'native' });
    addon.start(coord, 'gate', 'engine');
    await eventually(() => heard.includes('start engine'));
    addon.openGate('engine');
    await eventually(() => heard.includes('end engine'));
    expect(ended[0]?.thread).toMatchObject({ kind: 'native', threadId: expect.any(Number) });
    await coord.join();
  });

  it('publish in every JavaScript thread that has the coordinator', async () => {
    const heard = listen('shared');
    const coord = new Coordinator({ name: 'shared' });
    const worker = coord.spawn(new URL('../../fixtures/channels-worker.mjs', import.meta.url), {
      name: 'listener',
    });
    const there: { channel: string; thread?: string; via?: string; coordinator: string }[] = [];
    worker.on('message', (message) => there.push(message));
    await once(worker, 'message');
    await coord.start(async () => {}, { name: 'task' });
    coord.requestStop();
    await eventually(() => there.some(({ channel }) => channel === 'allstop:stop'));
    expect(there.map(({ channel, thread, via }) => [channel, thread ?? via])).toEqual([
      ['ready', undefined],
      ['allstop:thread:start', 'task'],
      ['allstop:thread:end', 'task'],
      ['allstop:stop', 'call'],
    ]);
    worker.postMessage('end');
    await coord.join();
    expect(heard).toEqual([
      'start listener',
      'start task',
      'end task',
      'stop call',
      'end listener',
    ]);
  });

  it('tell a child of the stop of its parent', () => {
    const heard = listen('parent', 'child');
    const parent = new Coordinator({ name: 'parent' });
    const child = parent.child({ name: 'child' });
    parent.requestStop();
    expect(child.shouldStop()).toBe(true);
    void child.signal;
    expect(heard.toSorted()).toEqual(['stop call', 'stop parent']);
  });

  it('begin with a subscription, and end with it', async () => {
    const coord = new Coordinator({ name: 'late' });
    await coord.start(async () => {}, { name: 'before' });
    const heard: string[] = [];
    const end = subscribe('allstop:thread:end', ({ thread }) => heard.push(thread.name));
    await coord.start(async () => {}, { name: 'during' });
    end();
    await coord.start(async () => {}, { name: 'after' });
    const again = subscribe('allstop:thread:end', ({ thread }) => heard.push(thread.name));
    await coord.start(async () => {}, { name: 'again' });
    again();
    expect(heard).toEqual(['during', 'again']);
  });

  it('keep the order if a subscriber calls the coordinator', async () => {
    const heard = listen('nested');
    const coord = new Coordinator({ name: 'nested' });
    subscribe('allstop:thread:start', () => coord.requestStop());
    await coord.start(() => coord.waitForStop(), { name: 'task' });
    await coord.join();
    expect(heard).toEqual(['start task', 'stop call', 'end task']);
  });

  it('keep no coordinator alive', async () => {
    listen('gone');
    const collected: string[] = [];
    const registry = new FinalizationRegistry<string>((name) => collected.push(name));
    for (let made = 0; made < 10; made++)
      registry.register(new Coordinator({ name: 'gone' }), 'one');
    await collectUntil(() => collected.length >= 9);
  });
});

describe('a subscriber that throws', () => {
  it('harms nobody but itself: the error is an uncaught one, as in Node', async () => {
    const uncaught: unknown[] = [];
    const taken = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', (error) => uncaught.push(error));
    try {
      const bad = new Error('a bad subscriber');
      subscribe('allstop:stop', () => {
        throw bad;
      });
      const heard = listen('thrown at');
      const coord = new Coordinator({ name: 'thrown at' });
      const { signal } = coord;
      const task = coord.start(() => coord.waitForStop(), { name: 'task' });
      coord.requestStop();
      expect(signal.aborted).toBe(true);
      await task;
      await coord.join();
      expect(heard).toEqual(['start task', 'stop call', 'end task']);
      await eventually(() => uncaught.length > 0);
      expect(uncaught).toEqual([bad]);
    } finally {
      process.removeAllListeners('uncaughtException');
      for (const listener of taken) process.on('uncaughtException', listener);
    }
  });
});
