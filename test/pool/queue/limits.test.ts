/** Deadlines and signals of calls, at every stage. */

import { DeadlineExceededError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { turn } from '../../support/gate.ts';

const neverLoads = new URL('../../fixtures/cluster-never-loads.mjs', import.meta.url);

describeKinds(kinds, (kind) => {
  const { start, running, visits } = useClusters(kind);

  describe('a deadline or a signal', () => {
    it('while it waits for room: schedule rejects', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const { visit } = await running(cluster, 'a');
      await cluster.schedule('echo', ['queued']);
      const abort = new AbortController();
      const { signal } = abort;
      const late = cluster.schedule('hold', [visits.path, 'late'], { timeoutMs: 1 });
      const aborted = errorOf(cluster.schedule('hold', [visits.path, 'aborted'], { signal }));
      await expect(late).rejects.toThrow(DeadlineExceededError);
      abort.abort('enough');
      expect(await aborted).toBe('enough');
      visit.pass();
      await cluster.join(); // it was never queued: nothing has failed
      expect(visits.names).toEqual(['a']);
    });

    it('in line: it is never started', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'a');
      const abort = new AbortController();
      const { signal } = abort;
      const aborted = await cluster.schedule('hold', [visits.path, 'aborted'], { signal });
      abort.abort('enough');
      expect(await errorOf(aborted.fetch())).toBe('enough');
      expect(aborted.state).toBe('cancelled');
      visit.pass();
      await cluster.join(); // a function that its caller has cancelled is not a failure
      expect(visits.names).toEqual(['a']);
    });

    it('in line: that it is too late is the error of nobody else', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'a');
      const late = await cluster.schedule('hold', [visits.path, 'late'], { timeoutMs: 1 });
      const error = await errorOf(late.fetch());
      expect(error).toBeInstanceOf(DeadlineExceededError);
      expect(late.state).toBe('failed');
      const next = await cluster.schedule('add', [1, 2]);
      visit.pass();
      expect(await next.fetch()).toBe(3);
      await cluster.join();
      expect(visits.names).toEqual(['a']);
    });

    it('while it runs: it is asked to end, and join waits until it has', async () => {
      const cluster = start();
      const abort = new AbortController();
      const { signal } = abort;
      const value = await cluster.schedule('untilToldToStop', [visits.path, 'a'], { signal });
      const visit = await visits.next('a');
      const joined = cluster.join();
      abort.abort(new RangeError('enough'));
      await expect(value.fetch()).rejects.toThrow('enough');
      expect(value.state).toBe('cancelled');
      expect(await visit.told()).toBe('told to stop');
      await joined;
      expect(cluster.workers[0]?.restarts).toBe(0);
    });

    it('while it runs: its signal has the reason', async () => {
      const cluster = start();
      await cluster.ready(); // else the deadline may pass before it runs
      const options = { timeoutMs: 1_000 };
      const value = await cluster.schedule('untilAborted', [visits.path, 'a'], options);
      const visit = await visits.next('a');
      expect(await visit.told()).toMatch(/^DeadlineExceededError: .*'untilAborted'.* 1000 ms/);
      await expect(value.fetch()).rejects.toThrow(DeadlineExceededError);
      await cluster.join();
    });

    it('while it runs and does not listen: its worker is replaced', async () => {
      const cluster = start(1, { cancelGraceMs: 1 });
      const abort = new AbortController();
      const { signal } = abort;
      const value = await cluster.schedule('hold', [visits.path, 'a'], { signal });
      const visit = await visits.next('a');
      const next = await cluster.schedule('where');
      abort.abort('enough');
      expect(await errorOf(value.fetch())).toBe('enough');
      await visit.left;
      expect(await next.fetch()).toMatchObject({ workerIndex: 0, attempt: 1 });
      expect(cluster.workers[0]?.restarts).toBe(1);
      await cluster.join();
    });

    it('that is over already: nothing is scheduled', async () => {
      const cluster = start();
      const signal = AbortSignal.abort('before');
      expect(await errorOf(cluster.schedule('add', [1, 2], { signal }))).toBe('before');
      expect(await cluster.done()).toBe(true);
    });

    it('before any worker has come: it is not waited for', async () => {
      const cluster = start();
      const abort = new AbortController();
      const { signal } = abort;
      const scheduled = errorOf(cluster.schedule('hold', [visits.path, 'a'], { signal }));
      const late = errorOf(cluster.schedule('hold', [visits.path, 'b'], { timeoutMs: 0 }));
      abort.abort('enough');
      expect(await scheduled).toBe('enough');
      expect(await late).toBeInstanceOf(DeadlineExceededError);
      expect(cluster.workers[0]?.state).toBe(kind.isRemote ? undefined : 'starting');
      await cluster.join();
      expect(visits.names).toEqual([]);
    });

    it('is said by schedule until the function is in line, and then by its value', async () => {
      const late = { timeoutMs: 1 };
      const starting = start(1, {}, neverLoads);
      const early = errorOf(starting.schedule(tasks.add, [1, 2], late)); // its name is looked up first
      expect(await early).toBeInstanceOf(DeadlineExceededError);
      await starting.join(); // nothing has failed
      const cluster = start();
      await cluster.schedule(tasks.add, [1, 2]);
      const { visit } = await running(cluster, 'a');
      const value = await cluster.schedule(tasks.add, [1, 2], late);
      const error = await errorOf(value.fetch());
      expect(error).toBeInstanceOf(DeadlineExceededError);
      visit.pass();
      await cluster.join();
    });

    it('of 0 ms: the function is never called, however quick it is', async () => {
      const cluster = start();
      await cluster.ready();
      const late = { timeoutMs: 0 };
      for (let round = 0; round < 20; round += 1) {
        const run = await errorOf(cluster.run('add', [1, 2], late));
        expect(run).toBeInstanceOf(DeadlineExceededError);
        expect(run.message).toMatch(/'add' did not end within 0 ms .*: it was not called/);
        const scheduled = errorOf(cluster.schedule(tasks.add, [1, 2], late));
        expect(await scheduled).toBeInstanceOf(DeadlineExceededError);
        const mapped = errorOf(cluster.map('double', [1], late).next());
        expect(await mapped).toBeInstanceOf(DeadlineExceededError);
      }
      const held = await errorOf(cluster.run('hold', [visits.path, 'a'], late));
      expect(held).toBeInstanceOf(DeadlineExceededError);
      expect(await cluster.run('add', [1, 2])).toBe(3); // the only worker is free
      await cluster.join(); // nothing has failed
      expect(visits.names).toEqual([]);
    });

    it('of 0 ms of a wait: what is there is given, and nothing is waited for', async () => {
      const cluster = start();
      await cluster.ready({ timeoutMs: 10_000 });
      await cluster.ready({ timeoutMs: 0 });
      const now = { timeoutMs: 0 };
      for (let round = 0; round < 5; round += 1) {
        const { value, visit } = await running(cluster, `round ${round}`);
        const [joined, fetched] = [errorOf(cluster.join(now)), errorOf(value.fetch(now))];
        expect(await joined).toBeInstanceOf(DeadlineExceededError);
        expect(await fetched).toBeInstanceOf(DeadlineExceededError);
        visit.pass(`answer ${round}`);
        await cluster.join();
        expect(await value.fetch(now)).toBe(`answer ${round}`);
        await cluster.join(now);
      }
    });

    it('of 0 ms of a wait: a loop of such waits ends', async () => {
      const cluster = start();
      const polled = async (wait: () => Promise<unknown>): Promise<unknown> => {
        for (;;) {
          try {
            return await wait();
          } catch (error) {
            const code = (error as { code?: string }).code ?? '';
            if (!/DEADLINE_EXCEEDED|NOT_READY/.test(code)) throw error;
          }
        }
      };
      await polled(() => cluster.ready({ timeoutMs: 0 }));
      const value = await cluster.schedule('add', [1, 2]);
      await polled(() => cluster.join({ timeoutMs: 0 }));
      const other = await cluster.schedule('add', [3, 4]);
      expect(await polled(() => other.fetch({ timeoutMs: 0 }))).toBe(7);
      expect(await value.fetch()).toBe(3);
    });

    it('while it runs: the others that run go on', async () => {
      const cluster = start(2);
      const { value, visit } = await running(cluster, 'other');
      const late = await cluster.schedule('untilAborted', [visits.path, 'late'], {
        timeoutMs: 1_000,
      });
      await expect(late.fetch()).rejects.toThrow(DeadlineExceededError);
      visit.pass('fine');
      expect(await value.fetch()).toBe('fine');
      await cluster.join();
    });

    it('leaves nothing behind at a signal that is used for many', async () => {
      const cluster = start();
      const { signal } = new AbortController();
      const warnings: Error[] = [];
      const onWarning = (warning: Error): void => void warnings.push(warning);
      process.on('warning', onWarning);
      for (let count = 0; count < 50; count += 1) await cluster.schedule('nothing', [], { signal });
      await cluster.join();
      await turn();
      process.off('warning', onWarning);
      expect(warnings).toEqual([]);
    });
  });
});
