/** killWorker: a worker dies in the middle of a function, and the cluster goes on. */
import { ClusterCoordinator, type ClusterCoordinatorOptions, LocalStrategy } from 'allstop/cluster';
import { Gate, type KillWorkerOptions, killWorker } from 'allstop/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { isPending } from '../support/gate.ts';

const module = new URL('../fixtures/killed-tasks.mjs', import.meta.url);
const clusters: ClusterCoordinator[] = [];
type Isolation = 'thread' | 'process';

function start(
  isolation: Isolation,
  workers = 1,
  options: ClusterCoordinatorOptions = {},
): ClusterCoordinator {
  const cluster = new ClusterCoordinator(
    new LocalStrategy({ module, workers, isolation }),
    options,
  );
  clusters.push(cluster);
  return cluster;
}

afterEach(() => Promise.all(clusters.splice(0).map((cluster) => cluster.close())));

const deaths = {
  thread: {
    terminate: { exitCode: 1 },
    exit: { exitCode: 1 },
    throw: { cause: expect.objectContaining({ message: expect.stringContaining('killWorker()') }) },
    outOfMemory: { cause: expect.objectContaining({ code: 'ERR_WORKER_OUT_OF_MEMORY' }) },
  },
  process: {
    terminate: { exitSignal: 'SIGKILL' },
    exit: { exitCode: 1 },
    throw: { cause: expect.objectContaining({ message: expect.stringContaining('killWorker()') }) },
    outOfMemory: { exitSignal: 'SIGABRT' },
  },
};
const ways = ['terminate', 'exit', 'throw', 'outOfMemory'] as const;

describe.each(['thread', 'process'] as const)('workers as %s', (isolation) => {
  it.each(ways)('die by %s in the middle of a function, which is run again', async (how) => {
    const cluster = start(isolation);
    for (const name of ['quick', 'waitsAtFirst']) {
      const killed = killWorker(cluster, { function: name, how });
      const value = await cluster.schedule(name);
      expect(await killed).toMatchObject({
        workerIndex: 0,
        error: { code: 'ERR_ALLSTOP_UNAVAILABLE', ...deaths[isolation][how] },
      });
      expect(await value.fetch()).toBe(2);
    }
    expect(cluster.stats()).toMatchObject({ retried: 2, engine: { restarts: 2 } });
    expect(await (await cluster.schedule('quick')).fetch()).toBe(1); // nobody else dies
  });

  it('are terminated in the middle of a function that computes without end', async () => {
    const cluster = start(isolation);
    const killed = killWorker(cluster, { function: 'busyAtFirst' });
    const value = await cluster.schedule('busyAtFirst');
    await killed;
    expect(await value.fetch()).toBe(2);
  });

  it('lose the error of a function, too, that was not sent yet', async () => {
    const cluster = start(isolation);
    const killed = killWorker(cluster, { function: 'failsAtFirst', how: 'exit' });
    const value = await cluster.schedule('failsAtFirst');
    await killed;
    expect(await value.fetch()).toBe(2);
    await cluster.join();
  });

  it('are spared until a function of that name begins', async () => {
    const cluster = start(isolation, 2);
    const killed = killWorker(cluster, { function: 'waitsAtFirst' });
    for (let i = 0; i < 20; i += 1) void (await cluster.schedule('quick')).fetch();
    await cluster.join();
    expect(cluster.stats().engine['restarts']).toBe(0);
    expect(await isPending(killed)).toBe(true);
    await cluster.schedule('waitsAtFirst');
    await killed;
    await cluster.join();
  });

  it('die one for each call, of any function if none is named', async () => {
    const cluster = start(isolation, 2);
    const killed = [killWorker(cluster), killWorker(cluster)];
    const values = [await cluster.schedule('quick'), await cluster.schedule('quick')];
    await Promise.all(killed);
    for (const value of values) expect(await value.fetch()).toBeGreaterThanOrEqual(1);
    expect(cluster.stats()).toMatchObject({ retried: 2, engine: { restarts: 2 } });
  });

  it('end the function with an error when no retries are left', async () => {
    const cluster = start(isolation, 1, { retries: 0 });
    const killed = killWorker(cluster, { function: 'quick', how: 'exit' });
    const value = await cluster.schedule('quick');
    await killed;
    await expect(value.fetch()).rejects.toMatchObject({ code: 'ERR_ALLSTOP_UNAVAILABLE' });
    await expect(cluster.join()).rejects.toMatchObject({ code: 'ERR_ALLSTOP_UNAVAILABLE' });
  });

  it('live if the kill is called off, by the time limit or a signal', async () => {
    const cluster = start(isolation);
    const late = killWorker(cluster, { function: 'quick', timeoutMs: 0 });
    await expect(late).rejects.toThrow(
      "No worker that runs 'quick' died within 0 ms. Was it scheduled after killWorker() was called?",
    );
    const controller = new AbortController();
    const off = killWorker(cluster, { signal: controller.signal });
    controller.abort(new RangeError('no more'));
    await expect(off).rejects.toThrow('no more');
    expect(await (await cluster.schedule('quick')).fetch()).toBe(1);
  });

  it('are not killed after the cluster was closed', async () => {
    const cluster = start(isolation);
    const killed = killWorker(cluster, { function: 'quick' });
    const refused = expect(killed).rejects.toMatchObject({ code: 'ERR_ALLSTOP_CANCELLED' });
    await cluster.close();
    await refused;
    await expect(killWorker(cluster)).rejects.toMatchObject({ code: 'ERR_ALLSTOP_CANCELLED' });
  });

  it('may catch the error, and then their function goes on', async () => {
    const cluster = start(isolation);
    const controller = new AbortController();
    const killed = killWorker(cluster, {
      function: 'catchesAll',
      how: 'throw',
      signal: controller.signal,
    });
    expect(await (await cluster.schedule('catchesAll')).fetch()).toBe(1);
    controller.abort(new RangeError('it lives'));
    await expect(killed).rejects.toThrow('it lives');
  });
});

describe('a thread that runs the function already', () => {
  it.each(ways)('is killed by %s at a gate', async (how) => {
    const cluster = start('thread');
    const gate = new Gate();
    const value = await cluster.schedule('passes', [gate.handle]);
    await gate.arrived();
    await killWorker(cluster, { function: 'passes', how });
    gate.open();
    expect(await value.fetch()).toBe(2);
  });

  it('is terminated at once, also if it is blocked', async () => {
    const cluster = start('thread');
    const gate = new Gate();
    const value = await cluster.schedule('passesSync', [gate.handle]);
    await gate.arrived();
    await killWorker(cluster, { function: 'passesSync' });
    gate.open();
    expect(await value.fetch()).toBe(2);
  });

  it('is killed whether the function had begun or not', async () => {
    const cluster = start('thread');
    await cluster.ready();
    const value = await cluster.schedule('busyAtFirst');
    await new Promise<void>((resolve) => queueMicrotask(resolve)); // sent now, hardly begun
    await killWorker(cluster, { function: 'busyAtFirst' });
    expect(await value.fetch()).toBe(2);
  });

  it('lives on if it has ended the function before it heard of the kill: the next one dies', async () => {
    const cluster = start('thread');
    const gate = new Gate();
    const first = await cluster.schedule('passesSync', [gate.handle]);
    await gate.arrived();
    const killed = killWorker(cluster, { function: 'passesSync', how: 'exit' });
    gate.open();
    expect(await first.fetch()).toBe(1);
    const second = await cluster.schedule('passesSync', [gate.handle]);
    await killed;
    expect(await second.fetch()).toBe(2);
  });
});

describe('wrong arguments of killWorker', () => {
  const type = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };

  it('are refused, and nobody dies', async () => {
    const cluster = start('thread');
    await cluster.ready();
    const refusals: [unknown, object][] = [
      [{ function: 5 }, type],
      [{ function: 'nothing' }, { code: 'ERR_ALLSTOP_INVALID_ARGUMENT' }],
      [{ how: 'gently' }, type],
      [{ timeoutMs: -1 }, { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' }],
      [{ signal: {} }, type],
      [5, type],
    ];
    for (const [options, error] of refusals) {
      const refused = killWorker(cluster, options as KillWorkerOptions);
      await expect(refused).rejects.toMatchObject(error);
    }
    await expect(killWorker({} as ClusterCoordinator)).rejects.toMatchObject(type);
    expect(await (await cluster.schedule('quick')).fetch()).toBe(1);
    expect(cluster.stats().engine['restarts']).toBe(0);
  });
});
