/** Workers that cannot be started for a while: the others work on, and they come back. */

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ClusterCoordinator,
  LocalStrategy,
  type LocalStrategyOptions,
  UnavailableError,
} from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { describeIsolations, errorOf } from '../../support/clusters.ts';

const module = new URL('../../fixtures/cluster-start-faults.mjs', import.meta.url);

describeIsolations('workers as', (isolation) => {
  let folder: string;
  let cluster: ClusterCoordinator;
  const set = (fault: 'none' | 'import' | 'setup'): void =>
    writeFileSync(join(folder, 'state'), fault);
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'allstop-'));
    set('none');
  });
  afterEach(async () => {
    await cluster.close();
    rmSync(folder, { recursive: true });
  });

  async function start(options: Partial<LocalStrategyOptions>): Promise<void> {
    const env = { ...process.env, STATE: join(folder, 'state') };
    const own = { module, isolation, env, setup: 'setup', workers: 1, ...options };
    cluster = new ClusterCoordinator(new LocalStrategy(own));
    await cluster.ready();
  }
  /** The worker that runs this dies, and the next ones cannot be started. */
  const die = (): Promise<Error> => errorOf(cluster.run('die', [], { retries: 0, worker: 0 }));
  const lost = (text: string): Promise<void> =>
    new Promise((resolve) => {
      cluster.on('workerLost', (_, error) => error.message.includes(text) && resolve());
    });

  it.each([
    ['import', 'the import has no memory'],
    ['setup', 'the setup has no database'],
  ] as const)('goes on with the others while %s fails, and starts it again', async (fault, why) => {
    await start({ workers: 2 });
    set(fault);
    const told = lost(why);
    await die();
    await told;
    await lost(why); // it was tried again
    expect(await cluster.run('add', [1, 2])).toBe(3);
    const error = await errorOf(cluster.ready({ timeoutMs: 0 }));
    expect(error.message).toContain(why);
    expect(error.message).toContain(`worker:0 ${fault}-failed`); // also while it is tried once more
    const waits = cluster.run('add', [3, 4], { worker: 0 });
    set('none');
    expect(await waits).toBe(7);
    await cluster.ready();
  });

  it.each(['import', 'setup'] as const)(
    'rejects calls when %s has failed for unavailableAfterMs, until a worker is ready',
    async (fault) => {
      await start({ workers: { min: 1, max: 2 }, unavailableAfterMs: 200 });
      set(fault);
      await die();
      const error = await errorOf(cluster.run('add', [1, 2]));
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.message).toContain('No worker has been ready for 200 ms. Last: ');
      expect((error.cause as Error).message).toContain(fault === 'import' ? 'memory' : 'database');
      for (const options of [{}, { worker: 1 }]) {
        expect((await errorOf(cluster.run('add', [1, 2], options))).message).toBe(error.message);
      }
      set('none');
      await cluster.ready();
      expect(await cluster.run('add', [1, 2])).toBe(3);
    },
  );

  it('a resize that fails leaves nothing of what it has begun', async () => {
    await start({});
    set('import');
    const [first, second] = [errorOf(cluster.resize(3)), errorOf(cluster.resize(4))];
    expect((await first).message).toContain('the import has no memory');
    expect((await second).message).toContain('the import has no memory');
    expect(cluster.workers.map(({ index, state }) => [index, state])).toEqual([[0, 'idle']]);
    expect(await cluster.run('add', [1, 2])).toBe(3);
    set('none');
    await cluster.resize(2);
    expect(await cluster.run('add', [1, 2], { worker: 1 })).toBe(3);
  });

  it('an import that fails before any worker was ready ends the cluster', async () => {
    set('import');
    await start({}).catch(() => {});
    const error = await errorOf(cluster.run('add', [1, 2]));
    expect(error.message).toContain('the import has no memory');
  });
});

describe('a worker process', () => {
  it('that hangs before it runs our code is replaced after a minute', {
    tags: 'long',
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'allstop-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const hangs = join(folder, 'hangs');
    writeFileSync(hangs, '');
    writeFileSync(join(folder, 'state'), 'none');
    // The first process takes the file away, and hangs.
    const preload = `
      const { existsSync, rmSync } = await import('node:fs');
      const hangs = ${JSON.stringify(hangs)};
      if (existsSync(hangs)) for (rmSync(hangs); ; );
    `;
    const execArgv = ['--import', `data:text/javascript,${encodeURIComponent(preload)}`];
    const env = { ...process.env, STATE: join(folder, 'state') };
    const strategy = new LocalStrategy({ module, isolation: 'process', workers: 1, execArgv, env });
    await using cluster = new ClusterCoordinator(strategy);
    const lost = once(cluster, 'workerLost');
    const sum = cluster.run('add', [1, 2]);
    const [, error] = (await lost) as [unknown, Error];
    expect(error.message).toMatch(/was killed by SIGKILL: it did not begin within 60 s/);
    expect(await sum).toBe(3);
  });
});
