/** `ready()` of a cluster. */

import { inspect } from 'node:util';
import { ClusterNotReadyError, type ReadinessReport, UnavailableError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';

describeKinds(kinds, (kind) => {
  const { start } = useClusters(kind);

  describe('ready', () => {
    it('resolves when all workers can take work, and reports on the way', async () => {
      const cluster = start(2);
      cluster.createPerWorkerDataset('numbers', [0, 9]);
      const reports: ReadinessReport[] = [];
      await cluster.ready({ onProgress: (report) => reports.push(report) });
      expect(reports[0]?.ready).toBe(false);
      expect(reports.at(-1)).toMatchObject({
        ready: true,
        engine: { phase: 'ready' },
        tasks: [0, 1].map((task) => ({ job: 'worker', task, ready: true, phase: 'ready' })),
      });
      expect(cluster.workers.map(({ state }) => state)).toEqual(['idle', 'idle']);
    });

    it('waits for data sets that come when the workers are there', async () => {
      const cluster = start(2);
      await cluster.ready();
      for (const fn of ['numbers', tasks.numbers] as const) {
        const dataset = cluster.createPerWorkerDataset<number>(fn, [0, 9]);
        await cluster.ready();
        expect(cluster.workers.map(({ state }) => state)).toEqual(['idle', 'idle']);
        dataset.iterator();
      }
    });

    it('says at the deadline who blocks', async () => {
      const cluster = start(2);
      const error = await errorOf(cluster.ready({ timeoutMs: 0 }));
      expect(error).toBeInstanceOf(ClusterNotReadyError);
      expect(inspect(error)).not.toContain('[cause]'); // there is none
      expect(inspect(error)).toMatch(/report: \{[^]* task: 1,[^]*\}\n\}$/); // whole, not [Object]
      expect(error.code).toBe('ERR_ALLSTOP_CLUSTER_NOT_READY');
      const phase = kind.isRemote ? 'unregistered' : 'starting';
      expect(error.message).toContain(`worker:0 ${phase}, worker:1 ${phase}`);
      if (!kind.isRemote)
        expect(error.message).toContain(': the import of the module has not ended');
      expect(error.report).toMatchObject({
        ready: false,
        tasks: [0, 1].map((task) => ({ job: 'worker', task, ready: false, phase })),
      });
      expect(error.report.tasks[0].since).toBeInstanceOf(Date);
      expect(error.stack).toMatch(/^ClusterNotReadyError: The cluster .*\n[^]*ready\.test\.ts/);
      await cluster.ready();
    });

    it('ends with its signal', async () => {
      const cluster = start();
      const abort = new AbortController();
      const ready = cluster.ready({ signal: abort.signal });
      abort.abort('enough');
      expect(await errorOf(ready)).toBe('enough');
      expect(await errorOf(cluster.ready({ signal: abort.signal }))).toBe('enough');
    });

    it('an error of onProgress is its caller’s, and nobody else’s', async () => {
      const cluster = start();
      let calls = 0;
      const onProgress = (): void => {
        calls += 1;
        if (calls === 2) throw new RangeError('progress');
      };
      await expect(cluster.ready({ onProgress })).rejects.toThrow('progress');
      await cluster.ready();
      expect(calls).toBe(2);
      expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
    });

    it('onProgress may close the cluster', async () => {
      const cluster = start();
      const closed: Promise<void>[] = [];
      const onProgress = (): unknown => closed.push(cluster.close());
      const error = await errorOf(cluster.ready({ onProgress }));
      expect(error).toBeInstanceOf(ClusterNotReadyError);
      expect(error.message).toContain('the cluster is closed');
      await Promise.all(closed);
      expect(closed.length).toBeLessThan(10); // one `close()` for each thing that `onProgress` hears
    });

    // `allstop worker`, which starts remote workers, refuses a module without a file.
    it.each(kind.isRemote ? ['broken-tasks.mjs'] : ['broken-tasks.mjs', 'no-such-tasks.mjs'])(
      'says at once why %s fails',
      async (name) => {
        const url = new URL(`../../fixtures/${name}`, import.meta.url);
        const cluster = start(2, {}, url);
        // Where workers start slowly, `schedule` takes the name before it is known to be missing.
        const scheduled = errorOf(cluster.schedule('add', [1, 2]).then((remote) => remote.fetch()));
        const error = await errorOf(cluster.ready());
        expect(error).toBeInstanceOf(ClusterNotReadyError);
        const message = name === 'broken-tasks.mjs' ? 'this module is broken' : 'no-such-tasks.mjs';
        expect(error.message).toContain(message);
        expect(error.cause.message).toContain(message);
        const phases = error.report.tasks.map(({ phase }: { phase: string }) => phase);
        expect(phases).toContain('import-failed');
        const calls = [cluster.schedule('add'), cluster.join(), cluster.done()];
        for (const refused of [await scheduled, ...(await Promise.all(calls.map(errorOf)))]) {
          expect(refused).toBeInstanceOf(UnavailableError);
          expect(refused.message).toContain(message);
        }
        await expect(cluster.ready()).rejects.toThrow(ClusterNotReadyError);
      },
    );
  });
});
