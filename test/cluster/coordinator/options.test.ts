/** Options that do not exist, and the coordinator above a cluster. */

import { Coordinator } from 'allstop';
import { CancelledError, ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { describe, expect, it } from 'vitest';
import { errorOf, module } from '../../support/clusters.ts';

describe('an option that does not exist', () => {
  const local = (): LocalStrategy => new LocalStrategy({ module, workers: 1 });

  it.each<[string, string, () => unknown]>([
    [
      'retries',
      'ClusterCoordinator',
      () => new ClusterCoordinator(local(), { retrys: 3 } as object),
    ],
    ['workers', 'LocalStrategy', () => new LocalStrategy({ module, maxWorkers: 4 } as never)],
    ['isolation', 'LocalStrategy', () => new LocalStrategy({ module, isolaton: 1 } as never)],
    [
      "must be one of 'thread', 'process'",
      'isolation',
      () => new LocalStrategy({ module, isolation: 'threads' } as never),
    ],
    [
      'minWorkers',
      'NatsStrategy',
      () => new NatsStrategy({ module, servers: 'a', cluster: 'c', minWorker: 1 } as never),
    ],
  ])('is refused, with the one that was meant: %s of %s', (meant, _, make) => {
    expect(make).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }));
    expect(make).toThrow(meant);
  });

  it('is refused by every call', async () => {
    await using cluster = new ClusterCoordinator(local());
    const wrong = { timeout: 100 } as object;
    for (const call of [
      cluster.run('add', [1, 2], wrong),
      cluster.schedule('add', [1, 2], wrong),
      cluster.join(wrong),
      cluster.ready(wrong),
      cluster.close(wrong),
    ]) {
      const error = await errorOf(call);
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_INVALID_ARG_VALUE');
    }
    expect(await cluster.run('add', [1, 2])).toBe(3); // it was not closed
  });
});

it.each([null, 0, false, ''])('options that are %j are refused', async (wrong) => {
  await using cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
  const options = wrong as unknown as object;
  for (const call of [cluster.run('add', [1, 2], options), cluster.schedule('add', [], options)]) {
    expect(await errorOf(call)).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
  }
});

describe('a coordinator above the cluster', () => {
  const start = (parent: Coordinator): ClusterCoordinator =>
    new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }), { coordinator: parent });

  it('stops the cluster', async () => {
    const parent = new Coordinator();
    await using cluster = start(parent);
    await cluster.ready();
    const error = new RangeError('above');
    parent.requestStop(error);
    const cancelled = await errorOf(cluster.run('add', [1, 2]));
    expect(cancelled).toBeInstanceOf(CancelledError);
    expect(cancelled.cause).toBe(error);
    expect(cluster.coordinator.shouldStop()).toBe(true);
    await parent.join().catch(() => {});
  });

  it('that was stopped before gives a stopped cluster, in which nothing hangs', async () => {
    const parent = new Coordinator();
    const error = new RangeError('above');
    parent.requestStop(error);
    await using cluster = start(parent);
    for (const call of [cluster.run('add', [1, 2]), cluster.schedule('add', [1, 2])]) {
      const cancelled = await errorOf(call);
      expect(cancelled).toBeInstanceOf(CancelledError);
      expect(cancelled.cause).toBe(error);
    }
    await parent.join().catch(() => {});
  });

  it.each<[string, (cluster: ClusterCoordinator) => Promise<unknown>]>([
    ['run', (cluster) => cluster.run('add', [1, 2])],
    ['schedule', (cluster) => cluster.schedule('add', [1, 2])],
    ['join', (cluster) => cluster.join()],
    ['map', (cluster) => cluster.map('double', [1, 2])[Symbol.asyncIterator]().next()],
    ['ready', (cluster) => cluster.ready()],
    ['resize', (cluster) => cluster.resize(2)],
  ])('ends its run quietly where a plain stop has cancelled %s', async (_, call) => {
    const body = async (parent: Coordinator): Promise<unknown> => {
      await using cluster = start(parent);
      await cluster.ready();
      parent.requestStop();
      return await call(cluster);
    };
    expect(await Coordinator.run(body)).toBeUndefined();
  });

  it('ends its run quietly where a plain stop comes before the cluster is ready', async () => {
    const body = async (parent: Coordinator): Promise<void> => {
      await using cluster = start(parent);
      const ready = cluster.ready();
      parent.requestStop();
      await ready;
    };
    expect(await Coordinator.run(body)).toBeUndefined();
  });

  it('says in the error of ready() what has stopped it', async () => {
    const parent = new Coordinator();
    await using cluster = start(parent);
    const why = errorOf(cluster.ready());
    const error = new RangeError('above');
    parent.requestStop(error);
    expect(await why).toMatchObject({ code: 'ERR_ALLSTOP_CLUSTER_NOT_READY', cause: error });
    await parent.join().catch(() => {});
  });

  it('is not stopped by the cluster’s stop, nor by its close', async () => {
    const parent = new Coordinator();
    const stopped = start(parent);
    await stopped.run('stop', ['below']).catch(() => {});
    await stopped.coordinator.waitForStop();
    await stopped.close();
    const closed = start(parent);
    await closed.close();
    expect(parent.shouldStop()).toBe(false);
  });

  it('is a Coordinator', () => {
    const make = (): unknown => start({} as Coordinator);
    expect(make).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }));
  });
});
