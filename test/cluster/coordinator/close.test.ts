/** `close()` of a cluster. */

import { LooperThread } from 'allstop';
import { CancelledError, ClusterNotReadyError, FailedPreconditionError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';

describeKinds(kinds, (kind) => {
  const { start, running, visits } = useClusters(kind);

  describe('close', () => {
    it('settles every handle', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const value = await cluster.schedule('untilAborted', [visits.path, 'a']);
      const visit = await visits.next('a');
      const queued = await cluster.schedule('hold', [visits.path, 'queued']);
      const blocked = cluster.schedule('nothing');
      const joined = errorOf(cluster.join());
      const closing = cluster.close();
      await expect(blocked).rejects.toThrow(FailedPreconditionError);
      expect(await visit.told()).toBe('CancelledError: The cluster was closed');
      expect(await joined).toBeInstanceOf(FailedPreconditionError);
      await closing;
      for (const each of [value, queued]) {
        await expect(each.fetch()).rejects.toThrow(CancelledError);
      }
      expect([value.state, queued.state]).toEqual(['cancelled', 'cancelled']);
      expect(cluster.workers.map(({ state }) => state)).toEqual(['lost']);
      expect(cluster.coordinator.shouldStop()).toBe(true);
    });

    it('ends what does not listen after the grace period', async () => {
      const cluster = start(1, { cancelGraceMs: 1 });
      const { value, visit } = await running(cluster, 'a');
      await cluster.close();
      await visit.left;
      await expect(value.fetch()).rejects.toThrow(CancelledError);
      expect(value.state).toBe('cancelled');
    });

    it('twice is harmless, and values that are there stay', async () => {
      const cluster = start();
      const value = await cluster.schedule('add', [1, 2]);
      await cluster.join();
      await Promise.all([cluster.close(), cluster.close()]);
      await cluster[Symbol.asyncDispose]();
      expect(await value.fetch()).toBe(3);
      expect(await cluster.fetch([value])).toEqual([3]);
    });

    it('cancels what `run` calls, whatever it waits for', async () => {
      const early = start();
      const before = errorOf(early.run('add', [1, 2]));
      await early.close();
      const cluster = start(1, { maxQueued: 1 });
      await cluster.ready();
      const full = ['a', 'b', 'c'].map((name) => errorOf(cluster.run('hold', [visits.path, name])));
      await visits.next('a');
      const closing = cluster.close();
      for (const error of await Promise.all([before, ...full.slice(1)])) {
        expect(error).toBeInstanceOf(CancelledError);
        expect(error.message).toBe('The cluster was closed');
      }
      await visits.close();
      await closing;
    });

    it.each([0, 60_000])('is no error of its own threads, drainMs: %s', async (drainMs) => {
      const cluster = start(1);
      const { coordinator } = cluster;
      const loopers = [
        LooperThread.loop(coordinator, 0, () => cluster.run('add', [1, 2])),
        LooperThread.loop(coordinator, 0, () => cluster.schedule('add', [1, 2])),
      ];
      if (kind.name !== 'nats') {
        const count = await cluster.variable('count', 0);
        loopers.push(
          LooperThread.loop(coordinator, 0, () => count.assignAdd(1)),
          LooperThread.loop(coordinator, 0, () => cluster.variable('count', 0)),
        );
      }
      await cluster.run('add', [1, 2]);
      await cluster.close({ drainMs });
      for (const looper of loopers) await looper.join();
      await coordinator.start(() => cluster.run('add', [1, 2])); // after the stop, too
      expect(coordinator.stopRecord).toMatchObject({ kind: 'plain', suppressedCount: 0 });
    });

    it('lets what was called before it end in `drainMs`, though it waits for room', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const { visit } = await running(cluster, 'a');
      const sums = [1, 2, 3].map((n) => cluster.schedule('add', [n, 1]));
      const closing = cluster.close({ drainMs: 60_000 });
      const late = errorOf(cluster.schedule('add', [1, 2]));
      visit.pass();
      expect(await cluster.fetch(await Promise.all(sums))).toEqual([2, 3, 4]);
      expect(await late).toBeInstanceOf(FailedPreconditionError);
      await closing;
    });

    it('is no loss of a worker, and no retry of the function that it had', async () => {
      const cluster = start(1, { cancelGraceMs: 1 });
      const told: string[] = [];
      cluster.on('workerLost', () => told.push('workerLost'));
      cluster.on('retry', () => told.push('retry'));
      const { visit } = await running(cluster, 'a');
      await cluster.close();
      await visit.left;
      expect(told).toEqual([]);
      expect(cluster.stats()).toMatchObject({ retried: 0, cancelled: 1 });
    });

    it('at once, before any worker is there', async () => {
      const cluster = start(2);
      const scheduled = errorOf(cluster.schedule('add', [1, 2]));
      await cluster.close();
      expect(await scheduled).toBeInstanceOf(FailedPreconditionError);
    });

    it('refuses what comes later', async () => {
      const cluster = start();
      await cluster.ready();
      await cluster.close();
      const calls = [
        cluster.schedule('add', [1, 2]),
        cluster.schedule(tasks.add, [1, 2]),
        cluster.join(),
        cluster.done(),
      ];
      for (const error of await Promise.all(calls.map(errorOf))) {
        expect(error).toBeInstanceOf(FailedPreconditionError);
      }
      const error = await errorOf(cluster.ready());
      expect(error).toBeInstanceOf(ClusterNotReadyError);
      expect(error.message).toBe('The cluster is not ready: the cluster is closed'); // blames no worker
    });

    it('tells ready() that waits', async () => {
      const cluster = start();
      const ready = cluster.ready();
      const closing = cluster.close();
      await expect(ready).rejects.toThrow(/is closed/);
      await closing;
    });
  });
});
