/** Workers that are asked to end tell the functions that they run, and end by themselves. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ClusterCoordinator, LocalStrategy, type LocalStrategyOptions } from 'allstop/cluster';
import { describe, expect, it, onTestFinished } from 'vitest';

const module = new URL('../../fixtures/leaving-tasks.mjs', import.meta.url);
const program = fileURLToPath(new URL('../../fixtures/ending-program.mjs', import.meta.url));

describe.each(['thread', 'process'] as const)('workers as %s', (isolation) => {
  async function start(options: Partial<LocalStrategyOptions>): Promise<ClusterCoordinator> {
    const strategy = new LocalStrategy({ module, isolation, workers: 1, ...options });
    const cluster = new ClusterCoordinator(strategy, { cancelGraceMs: 600_000 });
    onTestFinished(() => cluster.close());
    await cluster.ready();
    return cluster;
  }
  /** Resolves when the function runs. */
  async function saves(cluster: ClusterCoordinator, worker?: number) {
    let result: Promise<unknown> | undefined;
    await new Promise((resolve) => {
      result = cluster.run('saves', ['all'], { worker, retries: 0, onProgress: resolve });
    });
    return { result: result as Promise<unknown> };
  }

  it('leaving aborts at close, and the call keeps its result', async () => {
    const cluster = await start({});
    const { result } = await saves(cluster);
    const later = cluster.run('saves', ['later']);
    await cluster.close({ drainMs: 600_000 });
    expect(await result).toBe('saved all');
    expect(await later).toBe('asked before it began');
  });

  it('leaving aborts in a worker that resize lets go', async () => {
    const cluster = await start({ workers: 2 });
    const { result } = await saves(cluster, 1);
    await cluster.resize(1);
    expect(await result).toBe('saved all');
    expect(cluster.workers.length).toBe(1);
  });

  it.each([{ heapMb: 1 }, { tasks: 2 }])(
    'leaving aborts when the worker is to be recycled: %o',
    async (recycle) => {
      const cluster = await start({ concurrency: 2, recycle });
      const { result } = await saves(cluster);
      await cluster.run('pid');
      expect(await result).toBe('saved all');
      expect(await cluster.run('pid')).toBeTypeOf('number');
      expect(cluster.workers[0]?.restarts).toBe(0);
    },
  );

  it('leaving aborts in a worker that runs as many functions as it may', async () => {
    const cluster = await start({ concurrency: 2, recycle: { tasks: 1 } });
    const waits = Array.from({ length: 3 }, () => cluster.run('waitsToLeave'));
    expect(await Promise.all(waits)).toEqual(['told', 'told', 'told']);
  });

  it.runIf(isolation === 'process')('leaving aborts at SIGTERM of the worker', async () => {
    const cluster = await start({});
    const pid: any = await cluster.run('pid');
    const { result } = await saves(cluster);
    process.kill(pid, 'SIGTERM');
    expect(await result).toBe('saved all');
    expect(await cluster.run('pid')).not.toBe(pid);
    expect(cluster.workers[0]?.restarts).toBe(0);
  });
});

describe('worker processes end by themselves', () => {
  it.each([
    ['at close', 'close'],
    ['at resize', 'resize'],
    ['when they are recycled', 'recycle'],
    ['at the end of a program that closes nothing', 'nothing'],
    ['at process.exit() of the program', 'exit'],
  ])('%s: exit listeners run, and coverage is written', async (_, way) => {
    const folder = mkdtempSync(join(tmpdir(), 'allstop-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const env = { ...process.env, NODE_V8_COVERAGE: folder };
    const ran = await promisify(execFile)(process.execPath, [program, way], { env });
    expect(ran.stdout.split('\n').toSorted()).toEqual(['', '2', 'worker 0 ends', 'worker 1 ends']);
    const covered = readdirSync(folder).flatMap((file) => {
      const { result } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
      const own = result.find(({ url }: { url: string }) => url.includes('ending-program'));
      const found = own?.functions.find(({ functionName }: any) => functionName === 'covered');
      return found?.ranges[0].count > 0 ? [file] : [];
    });
    expect(covered.length).toBe(2);
  });
});
