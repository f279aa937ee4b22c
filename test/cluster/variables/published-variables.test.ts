/** Large variables, which worker processes read in memory that they share with the coordinator. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CounterEvent, faultsOf } from '../../support/counter-history.ts';
import { module } from './stories.ts';

const LENGTH = 200_000;

const start = (workers = 1): ClusterCoordinator =>
  new ClusterCoordinator(new LocalStrategy({ module, workers, isolation: 'process' }));

/** What a file descriptor of this process refers to; '' if it was closed meanwhile. */
function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return '';
  }
}

describe.skipIf(process.platform !== 'linux')('a large variable', () => {
  let folder: string;
  let fifos: [string, string];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'allstop-published-'));
    fifos = [join(folder, 'begun'), join(folder, 'value')];
    execFileSync('mkfifo', fifos);
  });
  afterEach(() => rm(folder, { recursive: true }));

  it.each([
    ['Float64Array', new Float64Array(LENGTH).fill(1.5)],
    ['Float32Array', new Float32Array(LENGTH).fill(1.5)],
    ['Int32Array', new Int32Array(LENGTH).fill(3)],
  ])('of the type %s is read while the coordinator does not answer', async (name, initial) => {
    await using cluster = start();
    await cluster.ready();
    const large = await cluster.variable(name, initial);
    await large.assign(initial.map((each) => 2 * each) as typeof initial);
    const reading = cluster.run('readWhenHeard', [large, ...fifos]);
    await readFile(fifos[0]);
    // Blocks this thread, which would answer a message, until the worker has the value.
    expect(readFileSync(fifos[1], 'utf8')).toBe(`${LENGTH} times ${2 * (initial[0] as number)}`);
    await reading;
  });

  it('is read with the update that its function has not awaited', async () => {
    await using cluster = start();
    const large = await cluster.variable('large', new Float64Array(LENGTH));
    const one = new Float64Array(LENGTH).fill(1);
    expect(await cluster.run('readBehindUpdates', [large, one])).toEqual([1, 3, 3]);
  });

  it('is read as a whole while others write, and workers are killed', {
    tags: 'long',
  }, async () => {
    await using cluster = start(3);
    await cluster.ready();
    const large = await cluster.variable('large', new Float64Array(LENGTH));
    const one = new Float64Array(LENGTH).fill(1);
    const calls = Array.from({ length: 12 }, (_, at) =>
      cluster.run<any>('addAndRead', [large, 10, at % 4 === 0, one], { retries: 50 }),
    );
    const own: CounterEvent[] = [];
    const clock = (): number => Number(process.hrtime.bigint());
    for (const [at, call] of calls.entries()) {
      const { pid } = cluster.workers[at % 3] as { pid: number };
      if (at % 2 === 0 && !Number.isNaN(pid)) process.kill(pid, 'SIGKILL');
      const begin = clock();
      const value = await large.read();
      expect(new Set(value).size).toBe(1);
      own.push({ kind: 'read', begin, end: clock(), value: value[0] as number });
      if (at >= 6) await call;
    }
    const history = [...own, ...(await Promise.all(calls)).flat()];
    expect(faultsOf(history)).toEqual([]);
    expect(new Set(await large.read())).toEqual(new Set([120]));
  });

  it('takes a file descriptor until the cluster closes; none for threads, nor a small one', async () => {
    const open = (): number =>
      readdirSync('/proc/self/fd').filter((each) => targetOf(each).includes('allstop variable'))
        .length;
    const processes = start();
    await using threads = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
    const before = open();
    await processes.variable('small', new Float64Array(8_191));
    await threads.variable('large', new Float64Array(LENGTH));
    expect(open()).toBe(before);
    const large = await processes.variable('large', new Float64Array(8_192));
    expect(open()).toBe(before + 1);
    await processes.close();
    expect(open()).toBe(before);
    expect(large.name).toBe('large');
  });
});
