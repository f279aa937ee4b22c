/** killWorker: a worker is killed from outside, and the cluster goes on. */
import { ClusterCoordinator, LocalStrategy, UnavailableError } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { createPool } from 'allstop/pool';
import { Gate, type KillWorkerOptions, killWorker } from 'allstop/testing';
import { describe, expect, it } from 'vitest';
import {
  describeKinds,
  errorOf,
  type Kind,
  localKinds,
  module,
  useClusters,
} from '../support/clusters.ts';
import { eventually } from '../support/eventually.ts';
import { runScript, saidOf } from '../support/run-script.ts';

const quick = localKinds.map(({ name }) => name);

describeKinds(
  localKinds,
  (kind) => {
    const { start, running, visits } = useClusters(kind);
    const how = kind.isThread ? { exitCode: 1 } : { exitSignal: 'SIGKILL' };
    /** What does not depend on how a worker is killed. */
    const tags = kind.isThread ? [] : ['long'];

    describe('a worker that killWorker() kills', () => {
      it('in the middle of a scheduled function: it is run again', async () => {
        const cluster = start();
        const { value } = await running(cluster, 'held');
        const killed = await killWorker(cluster, { function: 'hold' });
        expect(killed).toEqual({ worker: 0, error: expect.any(UnavailableError) });
        expect(killed.error).toMatchObject(how);
        (await visits.next('held')).pass('second attempt');
        expect(await value.fetch()).toBe('second attempt');
        expect(cluster.stats()).toMatchObject({ retried: 1, engine: { restarts: 1 } });
        await cluster.join();
      });

      it('in the middle of a run without retries: it fails because of the death', {
        tags,
      }, async () => {
        const cluster = start();
        const failed = errorOf(cluster.run('hold', [visits.path, 'held'], { retries: 0 }));
        await visits.next('held');
        const { error } = await killWorker(cluster, { function: 'hold' });
        expect(await failed).toBeInstanceOf(UnavailableError);
        expect((await failed).cause).toBe(error);
        expect(await cluster.run('add', [1, 2])).toBe(3);
      });

      it('may be one of a pool of createPool()', { tags }, async () => {
        const isolation = kind.isThread ? 'thread' : 'process';
        await using pool = createPool(module, { workers: 1, isolation });
        await pool.ready();
        const { error } = await killWorker(pool, { worker: 0 });
        expect(error).toMatchObject(how);
        expect(await pool.run('add', [1, 2])).toBe(3);
      });

      it('is the one of that index, and no other', { tags }, async () => {
        const cluster = start(2);
        const values = [await running(cluster, 'a'), await running(cluster, 'b')];
        const { worker } = await killWorker(cluster, { worker: 1 });
        expect(worker).toBe(1);
        const [again, spared] = await Promise.race([
          visits.next('a').then((visit) => [visit, values[1]?.visit] as const),
          visits.next('b').then((visit) => [visit, values[0]?.visit] as const),
        ]);
        again.pass('again');
        spared?.pass('spared');
        const fetched = await Promise.all(values.map(({ value }) => value.fetch()));
        expect(fetched.toSorted()).toEqual(['again', 'spared']);
        expect(cluster.workers).toMatchObject([{ restarts: 0 }, { restarts: 1 }]);
      });

      it('while it runs nothing is replaced, too', async () => {
        const cluster = start();
        await cluster.ready();
        const lost = new Promise((resolve) =>
          cluster.once('workerLost', (_, error) => resolve(error)),
        );
        const { error } = await killWorker(cluster, { worker: 0 });
        expect(await lost).toBe(error);
        expect(await cluster.run('where')).toMatchObject({ attempt: 1 });
      });

      it('while it starts is replaced, too', async () => {
        const cluster = start();
        expect(cluster.workers).toMatchObject([{ state: 'starting' }]);
        await killWorker(cluster, { worker: 0 });
        expect(await cluster.run('where')).toMatchObject({ attempt: 1 });
      });

      it('twice dies once', { tags }, async () => {
        const cluster = start();
        await cluster.ready();
        const [one, other] = await Promise.all([
          killWorker(cluster, { worker: 0 }),
          killWorker(cluster, { worker: 0 }),
        ]);
        expect(one?.error).toBe(other?.error);
        await cluster.ready();
        expect(cluster.workers).toMatchObject([{ restarts: 1 }]);
      });

      it('is gone before a second kill comes, which says so', { tags }, async () => {
        const cluster = start();
        await cluster.ready();
        await killWorker(cluster, { worker: 0 });
        await expect(killWorker(cluster, { worker: 0 })).rejects.toMatchObject({
          code: 'ERR_ALLSTOP_FAILED_PRECONDITION',
          message: expect.stringMatching(/^There is no worker 0 now\. .* await cluster\.ready\(\)/),
        });
        await cluster.close();
        await expect(killWorker(cluster, { worker: 0 })).rejects.toThrow('There is no worker 0');
      });

      it('has an end that a closing cluster does not hide', { tags }, async () => {
        const cluster = start();
        await cluster.ready();
        const killed = killWorker(cluster, { worker: 0 });
        await cluster.close();
        expect((await killed).worker).toBe(0);
      });

      it('keeps the program alive until it is gone', async () => {
        const ended = await runScript('kills-an-idle-worker', [kind.name]);
        expect(ended).toMatchObject({ code: 0, stderr: '' });
        expect(saidOf(ended, 'killed')).toMatchObject({ worker: 0 });
      });
    });
  },
  quick,
);

describeKinds(
  localKinds.filter(({ isThread }) => isThread),
  (kind) => {
    const { start } = useClusters(kind);
    const tasks = new URL('../fixtures/killed-tasks.mjs', import.meta.url);

    it.each(['passes', 'passesSync', 'spinsAtFirst'])(
      'a function that has come to a gate loses its worker in its middle (%s)',
      async (name) => {
        const cluster = start(2, {}, tasks);
        const gate = new Gate();
        if (name === 'spinsAtFirst') gate.open();
        const value = cluster.run(name, [gate.handle]);
        await gate.arrived(1);
        await killWorker(cluster, { function: name });
        gate.open();
        expect(await value).toBe(2);
        expect(gate.arrivals).toBe(2);
      },
    );
  },
);

describe('killWorker()', () => {
  const { start, running, visits } = useClusters(localKinds[0] as Kind);
  const precondition = { code: 'ERR_ALLSTOP_FAILED_PRECONDITION' };

  it('that finds no worker with the function says which functions run, and kills none', async () => {
    const cluster = start(2);
    await cluster.ready();
    const idle = killWorker(cluster, { function: 'add' });
    await expect(idle).rejects.toMatchObject(precondition);
    await expect(idle).rejects.toThrow("No worker runs 'add' now. No function runs. Wait until");
    const { value, visit } = await running(cluster, 'held');
    const busy = killWorker(cluster, { function: 'add' });
    await expect(busy).rejects.toThrow("No worker runs 'add' now. These run: 'hold'. Wait until");
    visit.pass('the first attempt');
    expect(await value.fetch()).toBe('the first attempt');
  });

  it('finds a worker by its index, also when those before it have ended', async () => {
    const workers = { min: 1, max: 2, idleMs: 1 };
    await using cluster = new ClusterCoordinator(new LocalStrategy({ module, workers }));
    const first = cluster.run('hold', [visits.path, 'first']);
    const visit = await visits.next('first');
    const second = cluster.run('hold', [visits.path, 'second']);
    await visits.next('second');
    visit.pass();
    await first;
    await eventually(() => cluster.workers.every(({ index }) => index === 1));
    expect(await killWorker(cluster, { worker: 1 })).toMatchObject({ worker: 1 });
    (await visits.next('second')).pass('again');
    expect(await second).toBe('again');
  });

  it('refuses a cluster on NATS', async () => {
    const strategy = new NatsStrategy({ module, servers: '127.0.0.1:1', cluster: 'c' });
    await using cluster = new ClusterCoordinator(strategy);
    const refused = killWorker(cluster, { worker: 0 });
    await expect(refused).rejects.toMatchObject(precondition);
    await expect(refused).rejects.toThrow(
      'killWorker() kills the workers of a LocalStrategy. On NATS, end the process of `allstop worker` yourself',
    );
  });

  it('refuses wrong arguments, and kills nobody', async () => {
    const cluster = start(2);
    await cluster.ready();
    const type = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
    const range = { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' };
    const argument = { code: 'ERR_ALLSTOP_INVALID_ARGUMENT' };
    const refusals: [unknown, object][] = [
      [undefined, type],
      [null, type],
      [0, type],
      [{}, argument],
      [{ worker: 0, function: 'hold' }, argument],
      [{ worker: '0' }, type],
      [{ worker: 2 }, precondition],
      [{ worker: 1_024 }, range],
      [{ worker: -1 }, range],
      [{ worker: 0.5 }, range],
      [{ function: 5 }, type],
      [{ function: 'nothingOfThisName' }, argument],
      [
        { worker: 0, how: 'kill' },
        { name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' },
      ],
    ];
    for (const [options, error] of refusals) {
      const refused = killWorker(cluster, options as KillWorkerOptions);
      await expect(refused).rejects.toMatchObject(error);
    }
    await expect(killWorker({} as ClusterCoordinator, { worker: 0 })).rejects.toMatchObject(type);
    expect(cluster.stats().engine['restarts']).toBe(0);
  });
});
