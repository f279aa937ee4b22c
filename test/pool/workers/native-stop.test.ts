/** Native threads and the functions of a cluster share one stop flag and one record. */
import { describe, expect, it } from 'vitest';
import { ClusterCoordinator, LocalStrategy } from '../../../dist/cluster/index.js';
import { Gate } from '../../../dist/testing/index.js';
import { addon } from '../../support/test-addon.ts';

const module = new URL('../../fixtures/cluster-native-tasks.mjs', import.meta.url);

function start(isolation: 'thread' | 'process'): ClusterCoordinator {
  const strategy = new LocalStrategy({ module, workers: 2, isolation });
  return new ClusterCoordinator(strategy, { cancelGraceMs: 100 });
}

/** A gate that holds nobody: it tells the test that a function has come to it. */
function openGate(): Gate {
  const gate = new Gate();
  gate.open();
  return gate;
}

describe('a native thread', () => {
  it('of the program stops functions that never yield', async () => {
    const cluster = start('thread');
    const gate = openGate();
    addon.start(cluster.coordinator, 'request-error', 'of-main', 'RangeError|disk gone|E_DISK');
    const polling = await cluster.schedule('poll', [gate.handle]);
    await gate.arrived();
    addon.openGate('of-main');
    expect(await polling.fetch()).toBe('stopped');
    const recorded = { name: 'RangeError', message: 'disk gone', code: 'E_DISK' };
    await expect(cluster.join()).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_CANCELLED',
      cause: recorded,
    });
    expect(cluster.coordinator.stopRecord?.error).toMatchObject(recorded);
    await cluster.close();
  });

  it.each(['join', 'done'] as const)(
    'is heard by %s() before the event loop turns',
    async (how) => {
      const cluster = start('thread');
      await cluster.ready();
      addon.start(cluster.coordinator, 'request-error', how, 'RangeError|disk gone|E_DISK');
      addon.openGate(how);
      while (!cluster.coordinator.shouldStop());
      await expect(cluster[how]()).rejects.toMatchObject({ code: 'ERR_ALLSTOP_CANCELLED' });
      await cluster.close();
    },
  );

  it.each(['thread', 'process'] as const)(
    'of a worker (%s) stops the program and the others',
    async (isolation) => {
      const cluster = start(isolation);
      const gate = isolation === 'thread' ? openGate() : undefined;
      const polling = await cluster.schedule('poll', [gate?.handle]);
      await gate?.arrived();
      const stopping = await cluster.schedule('stopNatively', ['from a worker']);
      expect(await cluster.coordinator.waitForStop()).toBe(true);
      expect(cluster.coordinator.stopRecord).toMatchObject({
        kind: 'error',
        error: { name: 'RangeError', message: 'from a worker', code: 'E_NATIVE' },
        requester: { language: 'native', threadName: 'in-a-worker' },
      });
      await stopping.fetch().catch(() => {});
      if (isolation === 'thread') expect(await polling.fetch()).toBe('stopped');
      await cluster.close();
      expect(polling.state).not.toBe('pending');
    },
  );
});

it.each(['thread', 'process'] as const)(
  'what a function throws because of a stop of its worker (%s) is no failure of its own',
  async (isolation) => {
    const cluster = start(isolation);
    const value = await cluster.schedule('stopNativelyAndThrow', ['from a worker']);
    const cancelled = { code: 'ERR_ALLSTOP_CANCELLED', cause: { message: 'from a worker' } };
    await expect(value.fetch()).rejects.toMatchObject(cancelled);
    expect(value.state).toBe('cancelled');
    await expect(cluster.join()).rejects.toMatchObject(cancelled);
    await cluster.close();
  },
);

it('nobody takes the place of a worker that is ended because of a stop', async () => {
  const cluster = start('thread');
  await cluster.ready();
  const gate = openGate();
  const ignoring = await cluster.schedule('ignore', [gate.handle]);
  await gate.arrived();
  cluster.coordinator.requestStop();
  await expect(ignoring.fetch()).rejects.toMatchObject({ code: 'ERR_ALLSTOP_CANCELLED' });
  await new Promise(setImmediate); // a replacement would be started at once
  const ended = cluster.workers.filter(({ state }) => state === 'lost');
  expect(ended).toMatchObject([{ restarts: 0 }]);
  await cluster.close();
});
