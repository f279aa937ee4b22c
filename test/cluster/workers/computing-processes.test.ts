/** Worker processes hear the stop, and the death of the program, while their functions compute. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { ClusterCoordinator, LocalStrategy } from '../../../dist/cluster/index.js';

const module = new URL('../../fixtures/cluster-computing.mjs', import.meta.url);
const clusters: ClusterCoordinator[] = [];

afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.close();
});

/** A cluster of processes in which functions compute. */
async function computing(...calls: [name: string, ...args: unknown[]][]) {
  const strategy = new LocalStrategy({ module, workers: calls.length, isolation: 'process' });
  const cluster = new ClusterCoordinator(strategy, { cancelGraceMs: 20_000 });
  clusters.push(cluster);
  const begun: Promise<unknown>[] = [];
  const values = calls.map(([name, ...args]) => {
    let onProgress = (_value: unknown): void => {};
    begun.push(new Promise((resolve) => (onProgress = resolve)));
    return cluster.run(name, args, { onProgress }) as Promise<any>;
  });
  await Promise.all(begun);
  return { cluster, values };
}

// Without lines (Windows), a process hears of a stop when its event loop turns.
describe.skipIf(process.platform === 'win32')('a function that computes in a process', () => {
  it('sees the stop of the program, with its error', async () => {
    const { cluster, values } = await computing(['untilStopped'], ['untilStopped']);
    cluster.coordinator.requestStop(Object.assign(new TypeError('too hot'), { part: 3 }));
    for (const value of values) {
      expect(await value).toMatchObject({ message: 'too hot', part: 3, pid: process.pid });
    }
    expect(cluster.coordinator.stopRecord?.suppressed).toEqual([]);
  });

  it('sees the stop while the main thread of the program computes, too', async () => {
    const { cluster, values } = await computing(['untilStopped']);
    cluster.coordinator.stopAfter(20);
    const end = Date.now() + 400;
    while (Date.now() < end); // a native thread makes the stop, and a native thread sends it
    const { sawStopAt } = await values[0];
    expect(sawStopAt).toBeLessThan(end);
  });

  it('sees the stop of another process', async () => {
    const { cluster, values } = await computing(['untilStopped']);
    await cluster.resize(2);
    const stopping = cluster.run('stopNow', ['enough']).catch(() => {});
    expect(await values[0]).toMatchObject({ message: 'enough' });
    await stopping;
    expect(cluster.coordinator.stopRecord).toMatchObject({
      requester: { worker: 'worker:1' },
      suppressed: [],
    });
  });

  it('has an error beside the stop, which the program finds suppressed', async () => {
    const { cluster, values } = await computing(['stopLate', 'and more']);
    cluster.coordinator.requestStop(new Error('first'));
    await Promise.allSettled(values);
    const { error, suppressed } = cluster.coordinator.stopRecord ?? {};
    expect(error).toMatchObject({ message: 'first' });
    expect(suppressed).toMatchObject([{ error: { message: 'and more' } }]);
  });

  it.each(['untilOrphaned', 'untilOrphanedAsync'])(
    'is stopped by the death of the program with an UnavailableError, and ends (%s)',
    async (name) => {
      const program = spawn(process.execPath, [fileURLToPath(module), 'parent', name], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let written = '';
      // The worker shares this standard output: it is closed when the worker has ended.
      for await (const text of program.stdout) written += text;
      expect(JSON.parse(written)).toMatchObject({
        name: 'UnavailableError',
        code: 'ERR_ALLSTOP_UNAVAILABLE',
        message: expect.stringContaining(`parent process ${program.pid}`),
      });
    },
  );
});
