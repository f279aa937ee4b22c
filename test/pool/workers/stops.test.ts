/** Stops of the cluster’s coordinator. */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { StopRecord } from 'allstop';
import { CancelledError, FailedPreconditionError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { eventually } from '../../support/eventually.ts';

describeKinds(kinds, (kind) => {
  const { start, running, visits } = useClusters(kind);

  describe('a stop', () => {
    it.each([
      ['a plain one', undefined],
      ['one with an error', 'enough'],
    ])('%s of a function stops everything, and names the worker', async (_what, message) => {
      const cluster = start(2);
      const value = await cluster.schedule('untilAborted', [visits.path, 'a']);
      const visit = await visits.next('a');
      const stopping = await cluster.schedule('stop', [message]);
      expect(await cluster.coordinator.waitForStop()).toBe(true);
      expect(await visit.told()).toMatch(
        message === undefined ? /^AbortError/ : 'RangeError: enough',
      );
      await errorOf(value.fetch());
      expect(value.state).toBe('cancelled');
      await Promise.allSettled([stopping.fetch()]);
      const { stopRecord } = cluster.coordinator;
      expect(stopRecord?.kind).toBe(message === undefined ? 'plain' : 'error');
      expect(stopRecord?.requester.worker).toMatch(/^worker:[01]$/);
      if (message !== undefined) {
        expect(stopRecord?.error).toBeInstanceOf(RangeError);
        await expect(cluster.coordinator.join()).rejects.toThrow('enough');
      }
    });

    it('of the program cancels what is in line, because of the error, and aborts what runs', async () => {
      const cluster = start();
      const value = await cluster.schedule('untilAborted', [visits.path, 'a']);
      const visit = await visits.next('a');
      const queued = await cluster.schedule('hold', [visits.path, 'queued']);
      const joined = errorOf(cluster.join());
      const stop = new RangeError('enough');
      cluster.coordinator.requestStop(stop);
      const error = await errorOf(queued.fetch());
      expect(error).toBeInstanceOf(CancelledError);
      expect(error.cause).toBe(stop);
      expect(queued.state).toBe('cancelled');
      expect(await visit.told()).toBe('RangeError: enough');
      await errorOf(value.fetch());
      const calls = [cluster.join(), cluster.done(), cluster.schedule('nothing')];
      for (const refused of await Promise.all([joined, ...calls.map(errorOf)])) {
        expect(refused).toBeInstanceOf(CancelledError);
        expect(refused.cause).toBe(stop);
      }
      expect(visits.names).toEqual(['a']);
    });

    it('of a process that a worker has forked stops the program, with its error', async () => {
      const cluster = start();
      const call = cluster.run('stopByChild');
      await Promise.allSettled([call]);
      await cluster.coordinator.waitForStop();
      await expect(cluster.coordinator.join()).rejects.toMatchObject({
        name: 'RangeError',
        message: 'the fork is bent',
        part: 7,
      });
    });

    it('is followed by errors that come too late, which are suppressed', async () => {
      const cluster = start();
      const { coordinator } = cluster;
      await cluster.schedule('stopLate', [visits.path, 'late']);
      const visit = await visits.next('late');
      coordinator.requestStop(new RangeError('enough'));
      visit.pass();
      await eventually(() => coordinator.stopRecord?.suppressedCount === 1);
      expect(coordinator.stopRecord).toMatchObject({
        error: { message: 'enough' },
        suppressed: [{ error: { message: 'late' }, requester: { worker: 'worker:0' } }],
      });
    });

    it('is followed by the error of a hook in a worker, which the join throws', async () => {
      const cluster = start();
      const { coordinator } = cluster;
      await cluster.run('failInHook', ['the door is stuck']);
      coordinator.requestStop();
      await eventually(() => String(coordinator.explain()).includes('the door is stuck'));
      await expect(coordinator.join()).rejects.toThrow(new TypeError('the door is stuck'));
      expect(coordinator.stopRecord).toMatchObject({ kind: 'plain', suppressed: [] });
    });

    it('is followed by an error in a worker that runs no function, which is suppressed', async () => {
      const cluster = start();
      const { coordinator } = cluster;
      await cluster.run('failAfterStop', ['too late']);
      coordinator.requestStop();
      await eventually(() => coordinator.stopRecord?.suppressedCount === 1);
      expect(coordinator.stopRecord?.suppressed).toMatchObject([
        { error: { name: 'TypeError', message: 'too late' }, requester: { via: 'exception' } },
      ]);
    });

    it('lets schedule calls that wait for room go', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const { visit } = await running(cluster, 'a');
      await cluster.schedule('nothing');
      const blocked = cluster.schedule('nothing');
      cluster.coordinator.requestStop();
      await expect(blocked).rejects.toThrow(CancelledError);
      visit.pass();
    });

    it('cannot be taken back', async () => {
      const cluster = start();
      await expect((await cluster.schedule('clear')).fetch()).rejects.toThrow(
        FailedPreconditionError,
      );
      cluster.coordinator.requestStop();
      expect(() => cluster.coordinator.clearStop()).toThrow(FailedPreconditionError);
      const worker = new Worker(new URL('../../fixtures/clearing-worker.mjs', import.meta.url), {
        workerData: cluster.coordinator.handle,
      });
      expect((await once(worker, 'message'))[0]).toEqual({
        code: 'ERR_ALLSTOP_FAILED_PRECONDITION',
        stopped: true,
      });
      expect(cluster.coordinator.shouldStop()).toBe(true);
    });
  });
});

// Not for threads, which share the record itself.
const notThreads = kinds.filter(({ isThread }) => !isThread);
describeKinds(
  notThreads,
  (kind) => {
    const { start, visits } = useClusters(kind);

    it('of two workers at once has one record everywhere, and joins wait for it', async () => {
      const cluster = start(2);
      const { coordinator } = cluster;
      const names = ['a', 'b'];
      for (const name of names) await cluster.schedule('stopAndJoin', [visits.path, name]);
      const stopping = await Promise.all(names.map((name) => visits.next(name)));
      const joined = names.map((name) => visits.next(`${name} has joined`));
      for (const visit of stopping) visit.pass();
      const told = await Promise.all(
        joined.map(async (visit) => JSON.parse(await (await visit).told())),
      );
      await eventually(() => coordinator.stopRecord?.suppressedCount === 1);
      const { id, requestedAt, requester, error, suppressed } =
        coordinator.stopRecord as StopRecord;
      const winner = (error as Error).message;
      const worker = requester.worker;
      const known = { thrown: winner, id, requestedAt: requestedAt.toISOString(), worker };
      expect(told).toEqual([known, known]);
      expect(suppressed).toMatchObject([{ error: { message: winner === 'a' ? 'b' : 'a' } }]);
    });

    it('a stop of a worker is one also after a join of the coordinator', async () => {
      const cluster = start();
      await cluster.coordinator.join();
      await cluster.schedule('stop', ['enough']);
      await cluster.coordinator.waitForStop();
      expect(cluster.coordinator.stopRecord).toMatchObject({
        error: { message: 'enough' },
        suppressedCount: 0,
      });
      await expect(cluster.coordinator.join()).rejects.toThrow('enough');
    });

    it('a stop of the program is one also after a join in a worker', async () => {
      const cluster = start();
      await cluster.schedule('joinAndWait', [visits.path, 'a']);
      const visit = await visits.next('a');
      cluster.coordinator.requestStop(new RangeError('enough'));
      expect(await visit.told()).toBe('true: enough');
    });
  },
  ['process'],
);
