/** `priority` and `worker`: which call is next, and where it runs. */

import { describe, expect, it } from 'vitest';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { eventually } from '../../support/eventually.ts';

describeKinds(kinds, (kind) => {
  const { start, running, visits } = useClusters(kind);

  describe('priority', () => {
    it('runs what is high before what is normal, and that before what is low', async () => {
      const cluster = start(1);
      const { visit } = await running(cluster, 'first');
      const order: string[] = [];
      const call = async (name: string, priority?: 'high' | 'normal' | 'low'): Promise<void> => {
        await cluster.run('echo', [name], priority === undefined ? {} : { priority });
        order.push(name);
      };
      const all = [
        call('low 1', 'low'),
        call('1'),
        call('high 1', 'high'),
        call('low 2', 'low'),
        call('2', 'normal'),
        call('high 2', 'high'),
      ];
      visit.pass();
      await Promise.all(all);
      expect(order).toEqual(['high 1', 'high 2', '1', '2', 'low 1', 'low 2']);
    });

    it('also counts among calls that wait for room, which stats() has', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const { visit } = await running(cluster, 'first');
      const order: string[] = [];
      const call = async (name: string, priority: 'high' | 'low'): Promise<void> => {
        await cluster.run('echo', [name], { priority });
        order.push(name);
      };
      const lows = ['1', '2', '3'].map((name) => call(name, 'low'));
      const high = call('high', 'high');
      await eventually(() => cluster.stats().waiting === 3);
      expect(cluster.stats()).toMatchObject({ waiting: 3, queued: 1, inFlight: 1 });
      visit.pass();
      await Promise.all([...lows, high]);
      expect(order).toEqual(['1', 'high', '2', '3']);
      expect(cluster.stats().waiting).toBe(0);
    });

    it('of a function that kills its worker does not put it before what was in line', async () => {
      const cluster = start(1);
      const killer = cluster.run('dieUntil', [2, visits.path, 'killer'], { priority: 'high' });
      const visit = await visits.next('killer');
      const order: string[] = [];
      const note = (name: string) => (): void => void order.push(name);
      const all = [
        cluster.run('add', [1, 2], { priority: 'low' }).then(note('low')),
        cluster.run('add', [1, 2]).then(note('normal')),
        killer.then(note('killer')),
      ];
      visit.pass();
      await Promise.all(all);
      expect(order).toEqual(['normal', 'low', 'killer']);
    });

    it('is refused if there is no such priority', async () => {
      const wrong = errorOf(start().run('add', [1, 2], { priority: 'urgent' as never }));
      expect(await wrong).toBeInstanceOf(TypeError);
    });
  });

  describe('worker', () => {
    it('is where the function runs, however busy the others are not', async () => {
      const cluster = start(2);
      await cluster.ready();
      for (let round = 0; round < 5; round += 1) {
        for (const worker of [1, 0]) {
          expect(await cluster.run('where', [], { worker })).toMatchObject({ workerIndex: worker });
        }
      }
      const many = Array.from({ length: 200 }, (_, each) =>
        cluster.run('where', [], { worker: each % 2 }),
      );
      const places = (await Promise.all(many)) as { workerIndex: number }[];
      expect(places.map(({ workerIndex }) => workerIndex)).toEqual(many.map((_, each) => each % 2));
    });

    it('that is busy is waited for, while others pass', async () => {
      const cluster = start(2);
      await cluster.ready();
      const held = cluster.run('hold', [visits.path, 'a'], { worker: 1 });
      const visit = await visits.next('a');
      const next = cluster.run('where', [], { worker: 1 });
      const others = await Promise.all([1, 2, 3].map(() => cluster.run('where')));
      expect(others).toMatchObject([{ workerIndex: 0 }, { workerIndex: 0 }, { workerIndex: 0 }]);
      visit.pass();
      await held;
      expect(await next).toMatchObject({ workerIndex: 1 });
    });
  });
});

describeKinds(
  kinds.filter(({ isRemote }) => !isRemote),
  (kind) => {
    const { start, visits } = useClusters(kind);

    describe('worker', () => {
      it('that has died is waited for', async () => {
        const cluster = start(2);
        await cluster.ready();
        const killer = cluster.run('dieUntil', [2, visits.path, 'killer'], { worker: 1 });
        const visit = await visits.next('killer');
        const next = cluster.run('where', [], { worker: 1 });
        visit.pass();
        expect(await next).toMatchObject({ workerIndex: 1, attempt: 1 });
        expect(await killer).toBe(2);
      });

      it('that cannot be is a RangeError, and so are resources, which no worker here has', async () => {
        const cluster = start(2);
        for (const worker of [2, -1, 0.5, Number.NaN]) {
          const error = await errorOf(cluster.run('add', [1, 2], { worker }));
          expect(error).toBeInstanceOf(RangeError);
        }
        const error = await errorOf(cluster.schedule('add', [1, 2], { worker: 7 }));
        expect(error.message).toMatch(/the cluster has 2 workers. Received 7$/);
        const gpu = await errorOf(cluster.run('add', [1, 2], { resources: { gpu: 1 } }));
        expect(gpu).toBeInstanceOf(RangeError);
        expect(gpu.message).toMatch(/workers of this machine have no resources/);
        expect(await cluster.run('add', [1, 2], { resources: { gpu: 0 } })).toBe(3);
        const wrong: any = { worker: '1' };
        expect(await errorOf(cluster.run('add', [1, 2], wrong))).toBeInstanceOf(TypeError);
        expect(() => cluster.map('double', [1], { worker: 2 })).toThrow(RangeError);
        await cluster.join();
      });
    });
  },
);
