/** Variables that native threads of an addon read and update, beside functions of the cluster. */

import { ClusterCoordinator, LocalStrategy, type Variable } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { addon } from '../../support/test-addon.ts';
import { module } from './stories.ts';

const OK = 0;
const UNAVAILABLE = 14;
const INVALID_HANDLE = 100;

const start = (isolation: 'thread' | 'process' = 'thread'): ClusterCoordinator =>
  new ClusterCoordinator(new LocalStrategy({ module, workers: 2, isolation }));

/** Native threads that add 1 to each element `count` times; resolves when all have. */
function addNatively(variable: Variable<any>, threads: number, count: number): () => void {
  const names = Array.from({ length: threads }, (_, at) => `${variable.name} ${at}`);
  for (const name of names) {
    addon.variableAdd(variable, count, name);
    addon.openGate(name);
  }
  return () => {
    for (const name of names) expect(addon.result(name)).toBe(String(OK));
  };
}

describe('a native thread', () => {
  it.each([
    ['a number', 0],
    ['a Float64Array', new Float64Array(3)],
    ['a Float32Array', new Float32Array(3)],
    ['an Int32Array', new Int32Array(3)],
  ])('adds to %s while functions and the coordinator add', async (what, initial) => {
    await using cluster = start();
    const variable = await cluster.variable<any>(what, initial);
    const one = typeof initial === 'number' ? 1 : initial.map(() => 1);
    const joinThreads = addNatively(variable, 3, 1_000);
    for (let at = 0; at < 200; at++) {
      await cluster.schedule('add', [variable, one]);
      await variable.assignAdd(one);
    }
    await cluster.join();
    joinThreads();
    const sum = 3 * 1_000 + 200 + 200;
    const read = await variable.read();
    expect(typeof read === 'number' ? [read] : [...read]).toEqual(
      typeof read === 'number' ? [sum] : [sum, sum, sum],
    );
  });

  it('of a worker adds to the Variable that its function was given', async () => {
    await using cluster = start();
    const sum = await cluster.variable('sum', new Int32Array(2));
    await cluster.run('addNatively', [sum, 1_000]);
    expect([...(await sum.read())]).toEqual([1_000, 1_000]);
  });

  it('keeps the value while the cluster closes', async () => {
    const cluster = start();
    const sum = await cluster.variable('late', 0);
    addon.variableAdd(sum, 1_000, 'late');
    await cluster.close();
    addon.openGate('late');
    expect(addon.result('late')).toBe(String(OK));
  });
});

describe('allstop_variable_from_napi', () => {
  it('says what a variable is', async () => {
    await using cluster = start();
    const scale = await cluster.variable('größe', 1);
    const weights = await cluster.variable('weights', new Float32Array(5));
    expect(addon.variableInfo(scale)).toBe('größe|0|1');
    expect(addon.variableInfo(weights)).toBe('weights|2|5');
  });

  it('refuses what is no Variable', async () => {
    await using cluster = start();
    const sum = await cluster.variable('sum', 0);
    for (const value of [
      undefined,
      null,
      0,
      'sum',
      {},
      { name: 'sum' },
      Object.create(sum),
      new Proxy(sum, {}),
      cluster.coordinator,
      cluster.coordinator.signal,
      addon.decoy(),
      addon.external(),
    ]) {
      expect(addon.variableStatus(value)).toBe(INVALID_HANDLE);
    }
    expect(addon.status(sum)).toBe(INVALID_HANDLE);
    expect(addon.queueStatus(sum)).toBe(INVALID_HANDLE);
    expect(() => addon.variableInfo(cluster.coordinator)).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_ALLSTOP_INVALID_HANDLE',
      }),
    );
    expect(addon.variableStatus(sum)).toBe(OK);
  });

  it('says so if the value is in another process', async () => {
    await using cluster = start('process');
    const sum = await cluster.variable('sum', 0);
    expect(await cluster.run('statusOf', [sum])).toBe(UNAVAILABLE);
    await expect(cluster.run('addNatively', [sum, 1])).rejects.toMatchObject({
      code: 'ERR_ALLSTOP_UNAVAILABLE',
      message: expect.stringContaining('in another process'),
    });
    addNatively(sum, 1, 5)(); // it is in this one
    expect(await sum.read()).toBe(5);
  });
});
