// What a call is given to call back runs in the async context of that call (AsyncLocalStorage),
// whichever worker's message it is that asks for it.

import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import { describeKinds, kinds, useClusters } from '../../support/clusters.ts';

const request = new AsyncLocalStorage<string>();

describeKinds(kinds, (kind) => {
  const { start, visits } = useClusters(kind);

  describe('a cluster whose workers were started for another request', () => {
    const reportTwice = (name: string): unknown[] => [['half', 'all'], visits.path, name];
    const pass = async (name: string): Promise<void> => (await visits.next(name)).pass();
    async function started(): Promise<ReturnType<typeof start>> {
      return await request.run('the first', async () => {
        const cluster = start(1, { retries: 0 });
        await cluster.run('add', [1, 2]);
        return cluster;
      });
    }

    it('calls onProgress for the caller', async () => {
      const cluster = await started();
      const seen = await Promise.all(
        ['b', 'c'].map((name) =>
          request.run(name, async () => {
            const found: unknown[] = [];
            const onProgress = (value: unknown): unknown => found.push([request.getStore(), value]);
            const running = cluster.run('reportAndHold', reportTwice(name), { onProgress });
            await Promise.all([running, pass(name)]);
            return found;
          }),
        ),
      );
      for (const [at, name] of ['b', 'c'].entries()) {
        expect(seen[at]).toEqual([
          [name, 'half'],
          [name, 'all'],
        ]);
      }
    });

    it.each(['a generator', 'an async generator'])(
      'pulls the items of %s for the caller of map',
      async (how) => {
        const cluster = await started();
        const pulled: unknown[] = [];
        async function* later(): AsyncGenerator<number> {
          for (let item = 0; item < 20; item += 1) {
            pulled.push(request.getStore());
            yield item;
          }
        }
        function* now(): Generator<number> {
          for (let item = 0; item < 20; item += 1) {
            pulled.push(request.getStore());
            yield item;
          }
        }
        const results = request.run('b', () =>
          cluster.map('double', how === 'a generator' ? now() : later(), { concurrency: 2 }),
        );
        for await (const result of results) expect(result).toBeGreaterThanOrEqual(0);
        expect(pulled).toEqual(Array(20).fill('b'));
      },
    );

    it('calls onProgress of ready() for the caller', async () => {
      const cluster = request.run('the first', () => start(1));
      const seen = new Set<unknown>();
      await request.run('b', () =>
        cluster.ready({ onProgress: () => seen.add(request.getStore()) }),
      );
      expect([...seen]).toEqual(['b']);
    });
  });
});
