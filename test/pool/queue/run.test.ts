/** `cluster.run`: its error, deadline or cancellation is its caller's and nobody else's. */

import { CancelledError, DeadlineExceededError, FailedPreconditionError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { isPending } from '../../support/gate.ts';

describeKinds(kinds, (kind) => {
  const { start, running, failed, visits } = useClusters(kind);

  describe('run', () => {
    it('is one call and one promise, by name or as the function itself', async () => {
      const cluster = start();
      expect(await cluster.run('add', [1, 2])).toBe(3);
      expect(await cluster.run(tasks.add, [2, 3])).toBe(5);
      expect(await cluster.run('nothing')).toBe(undefined);
    });

    it('its error is told to its caller alone', async () => {
      const cluster = start();
      const { value, visit } = await running(cluster, 'other');
      const queued = await cluster.schedule('add', [1, 2]);
      const own = errorOf(cluster.run('fail', ['own']));
      visit.pass('fine');
      expect(await own).toMatchObject({ message: 'own', code: 'E_TEST' });
      expect(await cluster.fetch([value, queued])).toEqual(['fine', 3]);
      await cluster.schedule('add', [1, 2]);
      expect(await cluster.done()).toBeTypeOf('boolean');
      await cluster.join();
    });

    it('the error of a scheduled function cancels no run', async () => {
      const cluster = start(2);
      const own = cluster.run('hold', [visits.path, 'own']);
      const visit = await visits.next('own');
      const { visit: failing } = await running(cluster, 'failing');
      const queued = [cluster.run('add', [1, 2]), cluster.run('add', [3, 4])];
      const scheduled = await cluster.schedule('add', [5, 6]);
      failing.fail('broken');
      expect(await errorOf(scheduled.fetch())).toBeInstanceOf(CancelledError);
      expect(await Promise.all(queued)).toEqual([3, 7]);
      expect(await cluster.run('add', [7, 8])).toBe(15); // while nobody has received the error
      await expect(cluster.join()).rejects.toThrow('broken');
      visit.pass('fine');
      expect(await own).toBe('fine');
    });

    it('is waited for by join, which no later run holds up', async () => {
      const cluster = start(2);
      const first = cluster.run('hold', [visits.path, 'first']);
      const visit = await visits.next('first');
      const joined = cluster.join();
      const second = cluster.run('hold', [visits.path, 'second']);
      const other = await visits.next('second'); // join is no barrier for it
      expect(await isPending(joined)).toBe(true);
      visit.pass();
      await first;
      await joined;
      other.pass();
      await second;
    });

    it('has a deadline and a signal', async () => {
      const cluster = start(2);
      await cluster.ready();
      const late = cluster.run('untilAborted', [visits.path, 'late'], { timeoutMs: 500 });
      await expect(late).rejects.toThrow(DeadlineExceededError);
      const abort = new AbortController();
      const { signal } = abort;
      const aborted = cluster.run('untilAborted', [visits.path, 'aborted'], { signal });
      await visits.next('aborted');
      abort.abort('enough');
      expect(await errorOf(aborted)).toBe('enough');
      expect(await errorOf(cluster.run('add', [1, 2], { signal }))).toBe('enough');
      await cluster.join();
    });

    it('waits for room, and is not told what failed meanwhile', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const { visit } = await running(cluster, 'failing');
      const queued = await cluster.schedule('add', [1, 2]);
      const own = cluster.run('add', [3, 4]);
      visit.fail('broken');
      expect(await own).toBe(7);
      expect(queued.state).toBe('cancelled');
      await expect(cluster.join()).rejects.toThrow('broken');
    });

    it('is refused by a closed cluster', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'a');
      const queued = errorOf(cluster.run('add', [1, 2]));
      const closing = cluster.close();
      expect(await queued).toBeInstanceOf(CancelledError);
      expect(await errorOf(cluster.run('add', [1, 2]))).toBeInstanceOf(FailedPreconditionError);
      visit.pass();
      await closing;
    });
  });

  describe('cancel', () => {
    it('ends that one alone, with the reason, in line and while it runs', async () => {
      const cluster = start();
      const value = await cluster.schedule('untilAborted', [visits.path, 'a']);
      const visit = await visits.next('a');
      const queued = await cluster.schedule('hold', [visits.path, 'queued']);
      const last = await cluster.schedule('add', [1, 2]);
      queued.cancel('not wanted');
      expect(await errorOf(queued.fetch())).toBe('not wanted');
      value.cancel();
      expect(await errorOf(value.fetch())).toBeInstanceOf(CancelledError);
      expect(await visit.told()).toMatch(/^CancelledError: /);
      expect([value.state, queued.state]).toEqual(['cancelled', 'cancelled']);
      expect(await last.fetch()).toBe(3);
      last.cancel('too late');
      expect(await last.fetch()).toBe(3);
      await cluster.join();
      expect(visits.names).toEqual(['a']);
    });
  });

  describe('join with a limit', () => {
    it('leaves, and takes no error with it', async () => {
      const cluster = start();
      const { value, visit } = await running(cluster, 'a');
      const late = await errorOf(cluster.join({ timeoutMs: 1 }));
      expect(late).toBeInstanceOf(DeadlineExceededError);
      const abort = new AbortController();
      const aborted = errorOf(cluster.join({ signal: abort.signal }));
      abort.abort('enough');
      expect(await aborted).toBe('enough');
      visit.fail('broken');
      await expect(value.fetch()).rejects.toThrow('broken');
      await expect(cluster.join({ timeoutMs: 60_000 })).rejects.toThrow('broken');
      await cluster.join({ timeoutMs: 60_000 });
    });
  });

  describe('close with a drain', () => {
    it('lets what was called end, and refuses what comes', async () => {
      const cluster = start();
      const { value, visit } = await running(cluster, 'a');
      const queued = await cluster.schedule('add', [1, 2]);
      const closing = cluster.close({ drainMs: 600_000 });
      const refused = await errorOf(cluster.run('add', [1, 2]));
      expect(refused).toBeInstanceOf(FailedPreconditionError);
      visit.pass('fine');
      expect(await cluster.fetch([value, queued])).toEqual(['fine', 3]);
      await closing;
    });

    it('cancels what has not ended in time', async () => {
      const cluster = start();
      const value = await cluster.schedule('untilAborted', [visits.path, 'a']);
      await visits.next('a');
      await cluster.close({ drainMs: 1 });
      expect(value.state).toBe('cancelled');
    });

    it('counts an error that nobody has received as ended', async () => {
      const cluster = start();
      await failed(cluster, 'broken');
      await cluster.close({ drainMs: 600_000 });
    });
  });
});
