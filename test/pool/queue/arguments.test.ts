/** Functions and arguments of `schedule`. */

import { InvalidArgumentError, transfer } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import * as tasks from '../../fixtures/cluster-tasks.mjs';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';

class Holder {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

describeKinds(kinds, (kind) => {
  const { start, running } = useClusters(kind);

  describe('which function', () => {
    it('an export itself, its name, or the same of a copy of the module', async () => {
      const cluster = start();
      const copy = (await import(
        '../../fixtures/cluster-tasks.mjs?copy' as string
      )) as typeof tasks;
      expect(copy.add).not.toBe(tasks.add);
      for (const add of [tasks.add, copy.add]) {
        expect(await (await cluster.schedule(add, [1, 2])).fetch()).toBe(3);
      }
      expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
    });

    it.each([
      ['a function that is no export', () => 1, /pass the name of the export$/],
      [
        'one of the same name',
        { add: (a: number) => a }.add,
        /^The function 'add' has another source than the export of that name of file:.*cluster-tasks\.mjs: pass the name 'add'/,
      ],
      ['a name that is not exported', 'subtract', /pass the name/],
      ['the name of something else', 'VERSION', /pass the name/],
      ['the name of an inherited property', 'toString', /pass the name/],
    ])('refuses %s, and says what to pass', async (_what, fn, message) => {
      const cluster = start();
      await cluster.ready(); // a name is checked against those of a worker, if one is there in time
      const error = await errorOf(cluster.schedule(fn as string, [1]));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_INVALID_ARG_TYPE');
      expect(error.message).toMatch(message);
      await cluster.join(); // nothing was queued, and nothing has failed
      expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
    });
  });

  it('an AbortSignal is refused by name, and told where it belongs', async () => {
    const cluster = start();
    const { signal } = new AbortController();
    class OfAPolyfill {
      aborted = false;
      addEventListener(): void {}
      removeEventListener(): void {}
    }
    for (const [value, name] of [
      [signal, 'args[0]'],
      [{ url: 'x', signal }, 'args[0].signal'],
      [new OfAPolyfill(), 'args[0]'],
      [{ signal: new OfAPolyfill() }, 'args[0].signal'],
    ] as const) {
      const error = await errorOf(cluster.run('echo', [value]));
      expect(error).toBeInstanceOf(InvalidArgumentError);
      expect(error.message).toContain(`${name} is an AbortSignal`);
      expect(error.message).toContain('currentCall().signal');
    }
  });

  it('a call that is refused leaves those before and after it alone', async () => {
    const cluster = start(); // no worker is there yet
    const before = cluster.schedule('add', [1, 2]);
    const refused = errorOf(cluster.schedule(() => 1));
    const after = cluster.schedule(tasks.add, [3, 4]);
    expect(await refused).toBeInstanceOf(TypeError);
    expect(await cluster.fetch(await Promise.all([before, after]))).toEqual([3, 7]);
  });

  describe('arguments', () => {
    it('are copied when schedule is called', async () => {
      const cluster = start();
      const { visit } = await running(cluster, 'a');
      const given = { list: [1, 2] };
      const scheduled = [
        cluster.schedule('echo', [given]),
        cluster.schedule(tasks.echo, [given]), // its name has to be looked up first
      ];
      given.list.push(3);
      visit.pass();
      const values = await Promise.all(scheduled);
      expect(await cluster.fetch(values)).toEqual([{ list: [1, 2] }, { list: [1, 2] }]);
    });

    it.each([
      ['in an array', (value: unknown) => [[value]]],
      ['in an object', (value: unknown) => ({ a: { b: value } })],
      ['in one without a prototype', (value: unknown) => ({ __proto__: null, value })],
      ['in a Map', (value: unknown) => new Map([[1, value]])],
      ['as the key of a Map', (value: unknown) => new Map([[value, 1]])],
      ['in a Set', (value: unknown) => new Set([value])],
      ['in an instance of a class', (value: unknown) => new Holder(value)],
      ['in an error', (value: unknown) => [Object.assign(new Error('with more'), { value })]],
    ])('no RemoteValue %s', async (_where, wrap) => {
      const cluster = start();
      const value = await cluster.schedule('add', [1, 2]);
      await expect(cluster.schedule('echo', [wrap(value)])).rejects.toThrow(InvalidArgumentError);
      await cluster.join();
    });

    it('are refused with the very error of their getter, which is called once', async () => {
      const cluster = start();
      for (const error of [Object.assign(new Error('mine'), { code: 'EMINE' }), new TypeError()]) {
        let calls = 0;
        const value = {
          get field(): never {
            calls += 1;
            throw error;
          },
        };
        expect(await errorOf(cluster.run('echo', [value]))).toBe(error);
        expect(calls).toBe(1);
      }
    });

    it('of which two move one buffer are refused, and move nothing', async () => {
      const cluster = start();
      const [one, two] = [new ArrayBuffer(8), new ArrayBuffer(8)];
      const args = [transfer({ two, one }, [two, one]), transfer([one], [one])];
      const remote = await cluster.schedule('add', [1, 2]);
      for (const given of [args, [one, ...args], [remote, ...args]]) {
        expect(await errorOf(cluster.run('echo', given))).toMatchObject({
          name: 'TypeError',
          code: 'ERR_INVALID_ARG_VALUE',
        });
      }
      expect([one.byteLength, two.byteLength]).toEqual([8, 8]);
      expect(await cluster.run('echo', [transfer({ one }, [one])])).toHaveProperty('one');
    });

    it('that cannot be copied are refused by schedule', async () => {
      const cluster = start();
      const deep = [{}, () => {}];
      const refused: [why: string, value: unknown][] = [
        ['args[1] is a function', () => {}],
        ['args[1]: Symbol(a) could not be cloned.', Symbol('a')],
        ['args[1].deep[1] is a function', { deep }],
        ['args[1][0].deep: #<Promise> could not be cloned.', [{ deep: Promise.resolve(1) }]],
      ];
      for (const [why, value] of refused) {
        await expect(cluster.schedule('add', [1, value as never])).rejects.toMatchObject({
          name: 'DataCloneError',
          message: expect.stringContaining(why),
        });
        const buffer = new ArrayBuffer(1);
        const args = [transfer(buffer, [buffer]), value] as never;
        await expect(cluster.schedule('add', args)).rejects.toMatchObject({
          name: 'DataCloneError',
          message: expect.stringContaining(why),
        });
        expect(buffer.byteLength).toBe(1); // nothing was moved
      }
      await cluster.join();
    });
  });
});
