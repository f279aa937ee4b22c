/** Workers die, at random and on purpose; still every scheduled function ends. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, onTestFailed } from 'vitest';
import {
  ClusterCoordinator,
  type ClusterOptions,
  LocalStrategy,
  type RemoteValue,
} from '../../../dist/cluster/index.js';
import { describeKinds, kinds, useClusters } from '../../support/clusters.ts';
import { seed } from '../../support/seed.ts';

const module = new URL('../../fixtures/cluster-faults.mjs', import.meta.url);
const clusters: ClusterCoordinator[] = [];

afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.close();
});

async function start(
  isolation: 'thread' | 'process',
  workers: number,
  options?: ClusterOptions,
): Promise<ClusterCoordinator> {
  const strategy = new LocalStrategy({ module, workers, isolation });
  const cluster = new ClusterCoordinator(strategy, options);
  clusters.push(cluster);
  await cluster.ready();
  return cluster;
}

async function squares(cluster: ClusterCoordinator, count: number): Promise<RemoteValue<number>[]> {
  const all: RemoteValue<number>[] = [];
  for (let n = 0; n < count; n++) all.push(await cluster.schedule('square', [n, seed]));
  return all;
}

describeKinds(kinds, (kind) => {
  const { start: startKind } = useClusters(kind);

  it.each([1_000])(
    `%i functions come to exact results though workers die, with seed ${seed}`,
    comeToResults,
  );
  it.each([10_000])(
    `%i functions come to exact results though workers die, with seed ${seed}`,
    { tags: 'long' },
    comeToResults,
  );
  async function comeToResults(count: number): Promise<void> {
    const cluster = startKind(3, {}, module);
    await cluster.ready();
    const all = await squares(cluster, count);
    await cluster.join();
    expect(await cluster.fetch(all)).toEqual(all.map((_, n) => n * n));
    const restarts = cluster.workers.map((worker) => worker.restarts);
    expect(Math.max(...restarts)).toBeGreaterThan(0);
    expect(await cluster.done()).toBe(true);
  }

  it(`close() in the middle settles everything, with seed ${seed}`, async () => {
    const cluster = startKind(3, { cancelGraceMs: 50 }, module);
    await cluster.ready();
    const all = await squares(cluster, 2_000);
    const half = all[500] as RemoteValue<number>;
    await half.fetch();
    await cluster.close();
    for (const [n, remote] of all.entries()) {
      expect(remote.state).toMatch(/^(ready|cancelled)$/);
      if (remote.state === 'ready') expect(await remote.fetch()).toBe(n * n);
      else await expect(remote.fetch()).rejects.toMatchObject({ code: 'ERR_ALLSTOP_CANCELLED' });
    }
  });
});

describe.each(['thread', 'process'] as const)('with the isolation %s', (isolation) => {
  it('a worker that runs out of memory is replaced, and says what it died of', () => {
    const script = fileURLToPath(
      new URL('../../fixtures/cluster-out-of-memory.mjs', import.meta.url),
    );
    const args = ['--max-old-space-size=48', script, isolation];
    const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 120_000 });
    const cause = isolation === 'thread' ? /memory/ : /SIGABRT/;
    expect(JSON.parse(stdout)).toEqual({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      cause: expect.stringMatching(cause),
      next: 9,
    });
  });
});

describe('processes', () => {
  it.each([
    ['killsItself', 'SIGKILL'],
    ['crashes', 'SIGABRT'],
  ])('%s: ended by %s, and replaced', async (name, exitSignal) => {
    const cluster = await start('process', 1, { retries: 1 });
    const remote = await cluster.schedule(name);
    await expect(remote.fetch()).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      cause: { exitSignal },
    });
    await expect(cluster.join()).rejects.toThrow(/2 times/);
    expect(cluster.workers).toMatchObject([{ restarts: 2 }]);
    expect(await (await cluster.schedule('square', [3, 0])).fetch()).toBe(9);
  });

  it('that are killed from outside are replaced, again and again', { tags: 'long' }, async () => {
    const cluster = await start('process', 2);
    for (let round = 0; round < 5; round++) {
      const pid = await (await cluster.schedule('pid')).fetch();
      process.kill(pid, 'SIGKILL');
      const all = await squares(cluster, 50);
      expect(await cluster.fetch(all)).toEqual(all.map((_, n) => n * n));
    }
  });
});

it('processes that compute for ever end soon after their parent was killed', async () => {
  const program = fileURLToPath(new URL('../../fixtures/cluster-program.mjs', import.meta.url));
  const parent = spawn(process.execPath, [program, 'process', 'spin'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const busy = Number(line.toString());
  onTestFailed(() => void process.kill(busy, 'SIGKILL'));
  expect(busy).not.toBe(parent.pid);
  parent.kill('SIGKILL');
  // The workers share this standard output: it is closed when the last of them has ended.
  await once(parent.stdout.resume(), 'close');
});

describeKinds(
  kinds.filter(({ hasThreads }) => hasThreads),
  (kind) => {
    const { start: startKind } = useClusters(kind);

    it('one that a function has left busy is replaced when it does not answer', async () => {
      const cluster = startKind(1, { cancelGraceMs: 0 }, module);
      const lost = once(cluster, 'workerLost');
      await cluster.run('leavesItsThreadBusy');
      const late = cluster.run('square', [2, 0], { timeoutMs: 10 });
      await expect(late).rejects.toMatchObject({ code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' });
      const calls = [3, 4].map((n) => cluster.run('square', [n, 0], { retries: 0 }));
      expect(await Promise.all(calls)).toEqual([9, 16]);
      const [, { message }] = (await lost) as [unknown, Error];
      expect(message).toMatch(/did not answer .*: 'leavesItsThreadBusy', which has ended, may/);
    });

    it.runIf(kind.isThread)('the calls that it does not begin go to another', async () => {
      const cluster = startKind(2, {}, module); // with a grace period that does not end
      await cluster.ready();
      await cluster.run('leavesItsThreadBusy');
      for (const n of [2, 3, 4]) expect(await cluster.run('square', [n, 0])).toBe(n * n);
      const states = cluster.workers.map(({ state, restarts }) => `${state} ${restarts}`);
      expect(states).toEqual(expect.arrayContaining(['busy 0', 'idle 0']));
    });
  },
);

describe('an argument that a thread reads for longer than others take to begin', () => {
  const text = 'x'.repeat(1.5e8);
  const items = Array.from({ length: 5e5 }, (_, id) => ({ id }));
  const cases: [string, unknown[], string[]][] = [
    ['a text', [text], ['long']],
    ['in an object', [{ text }], ['long']],
    ['beside bytes', [new Uint8Array(8), text], []],
    ['which cannot be bytes', [new SharedArrayBuffer(8), { text, items }], ['long']],
  ];
  for (const [which, args, tags] of cases) {
    it(`reaches its function: ${which}`, { tags }, () => reaches(args));
  }

  async function reaches(args: unknown[]): Promise<void> {
    const cluster = await start('thread', 2);
    const options = { retries: 0, timeoutMs: 120_000 };
    expect(await cluster.run('lettersOf', args, options)).toBe(text.length);
  }
});

describe('a thread that is blocked in native code', () => {
  it('is abandoned after the grace period, listed as stuck, and not waited for', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'allstop-stuck-'));
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const cluster = await start('thread', 1, { cancelGraceMs: 10 });
    const remote = await cluster.schedule('blockInNativeCode', [pipe], { timeoutMs: 1_000 });
    const deadline = { code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED' };
    await expect(remote.fetch()).rejects.toMatchObject(deadline);
    await cluster.join(); // the deadline of one call is nobody else's failure
    expect(cluster.workers).toContainEqual(expect.objectContaining({ state: 'stuck', running: 0 }));
    expect(await (await cluster.schedule('square', [3, 0])).fetch()).toBe(9);
    await cluster.close();
    writeFileSync(pipe, ''); // ends the blocked thread, which would keep this process alive
    rmSync(folder, { recursive: true });
  });
});
