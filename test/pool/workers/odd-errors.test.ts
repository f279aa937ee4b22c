// A worker that dies of a value that is no error, whose own methods are not carried.

import { ClusterCoordinator, LocalStrategy, type LocalStrategyOptions } from 'allstop/cluster';
import { expect, it } from 'vitest';
import { describeIsolations } from '../../support/clusters.ts';

const ODD = `({ message: 'bad month', toString() { return 'UserException: ' + this.message; } })`;
const moduleOf = (code: string): URL => new URL(`data:text/javascript,${encodeURIComponent(code)}`);

describeIsolations('an object with a toString, on a', (isolation) => {
  const start = (code: string, options: Partial<LocalStrategyOptions> = {}): ClusterCoordinator =>
    new ClusterCoordinator(
      new LocalStrategy({ module: moduleOf(code), workers: 1, isolation, ...options }),
      { retries: 0 },
    );

  it('ends its worker and nothing else', async () => {
    await using cluster = start(`
      export const fine = () => 'fine';
      export const bad = () => { setTimeout(() => { throw ${ODD}; }); return new Promise(() => {}); };`);
    await expect(cluster.run('bad')).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining("'bad' lost its worker"),
    });
    expect(await cluster.run('fine')).toBe('fine');
  });

  it('that the module throws fails the calls', async () => {
    await using cluster = start(`export const fine = () => 'fine'; throw ${ODD};`);
    await expect(cluster.run('fine')).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining('bad month'),
    });
  });

  it('that setup throws fails the calls', async () => {
    const code = `export const open = () => { throw ${ODD}; }; export const fine = () => 'fine';`;
    await using cluster = start(code, { setup: 'open' });
    await expect(cluster.run('fine')).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining('bad month'),
    });
  });

  it('that teardown throws is a warning, and the cluster closes', async () => {
    const code = `export const end = () => { throw ${ODD}; }; export const fine = () => 'fine';`;
    const cluster = start(code, { teardown: 'end' });
    expect(await cluster.run('fine')).toBe('fine');
    const warned = new Promise<NodeJS.ErrnoException>((resolve) => {
      process.on('warning', function listen(warning: NodeJS.ErrnoException) {
        if (warning.code !== 'ALLSTOP_TEARDOWN') return;
        process.off('warning', listen);
        resolve(warning);
      });
    });
    await cluster.close();
    expect((await warned).message).toContain('bad month');
  });

  it.each([
    ['with a toString', ODD],
    ['without a prototype', 'Object.create(null)'],
  ])('%s, that a data set function throws: fails those who use it', async (_, thrown) => {
    await using cluster = start(`
      export const numbers = () => { throw ${thrown}; };
      export const first = async (iterator) => (await iterator.next()).value;`);
    const iterator = cluster.createPerWorkerDataset<number>('numbers').iterator();
    await expect(cluster.run('first', [iterator])).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_CLOSURE_INPUT',
    });
  });
});
