/** Iterators of data sets begin anew, and are let go. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  describeIsolations,
  describeKinds,
  errorOf,
  kinds,
  useClusters,
} from '../../support/clusters.ts';
import { eventually } from '../../support/eventually.ts';
import { turn } from '../../support/gate.ts';

const module = new URL('../../fixtures/cluster-iterators.mjs', import.meta.url);

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

let folder: string;
let log: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'iterators-'));
  log = join(folder, 'log');
  writeFileSync(log, '');
});
afterEach(() => rmSync(folder, { recursive: true }));

const count = (word: string): number =>
  readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line === word).length;

describeKinds(kinds, (kind) => {
  const { start } = useClusters(kind);
  const make = (): ClusterCoordinator => start(1, {}, module);

  describe('an iterator', () => {
    it.each(['rows', 'rowsLater', 'rowsOf', 'rowsByHand'])('of %s is new', async (name) => {
      const cluster = make();
      const dataset = cluster.createPerWorkerDataset(name, [log, [1, 2, 3]]);
      for (let epoch = 0; epoch < 3; epoch++) {
        expect(await cluster.run('all', [dataset.iterator()])).toEqual([1, 2, 3]);
      }
      const [one, other] = [dataset.iterator(), dataset.iterator()];
      expect(await cluster.run('first', [one])).toBe(1);
      expect(await cluster.run('first', [other])).toBe(1);
      expect(await cluster.run('first', [one])).toBe(2);
    });

    it.each(['rows', 'rowsByHand'])('of %s is let go once, at its end', async (name) => {
      const cluster = make();
      const iterator = cluster.createPerWorkerDataset(name, [log, [1]]).iterator();
      expect(await cluster.run('all', [iterator])).toEqual([1]);
      expect(count('closed')).toBe(1);
      expect(await cluster.run('all', [iterator])).toEqual([]);
      await cluster.close();
      expect(count('closed')).toBe(1);
    });

    it('is let go when a function leaves its loop', async () => {
      const cluster = make();
      const iterator = cluster.createPerWorkerDataset('rows', [log, [1, 2]]).iterator();
      expect(await cluster.run('leave', [iterator])).toBe(1);
      expect([count('open'), count('closed')]).toEqual([1, 1]);
    });

    it('is let go, and made by no later worker, when nobody has it any more', async () => {
      const cluster = make();
      const dataset = cluster.createPerWorkerDataset('rows', [log, [1, 2]]);
      const kept = dataset.iterator();
      expect(await cluster.run('first', [kept])).toBe(1);
      for (let n = 0; n < 5; n++) await cluster.run('first', [dataset.iterator()]);
      expect(count('open')).toBe(6);
      await eventually(() => {
        collect();
        return count('closed') === 5;
      });
      const made = count('made');
      await errorOf(cluster.run('die', [], { retries: 0 }));
      expect(await cluster.run('first', [kept])).toBe(1);
      expect(count('made')).toBe(made + 1);
    });

    it('is not forgotten while a call may need it', async () => {
      const cluster = make();
      const first = cluster.run('wait', [50]);
      const later = cluster.run('first', [
        cluster.createPerWorkerDataset('rows', [log, [7]]).iterator(),
      ]);
      collect();
      await turn();
      collect();
      await first;
      expect(await later).toBe(7);
    });
  });
});

describeIsolations('a worker of kind', (isolation) => {
  it.each(['close', 'drain', 'resize', 'recycle'])('lets go at its end: %s', async (how) => {
    const recycle = how === 'recycle' ? { tasks: 1 } : undefined;
    const strategy = new LocalStrategy({ module, workers: 2, isolation, recycle });
    const cluster = new ClusterCoordinator(strategy);
    const iterator = cluster.createPerWorkerDataset('rows', [log, [1, 2, 3]]).iterator();
    await cluster.ready();
    await cluster.run('first', [iterator], { worker: 1 });
    if (how === 'resize') await cluster.resize(1);
    if (how === 'recycle') await eventually(() => count('closed') === 1);
    await cluster.close(how === 'drain' ? { drainMs: 60_000 } : {});
    expect(count('open')).toBe(1);
    expect(count('closed')).toBe(1);
  });
});
