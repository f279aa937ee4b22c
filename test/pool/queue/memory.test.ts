/** Memory that is moved or shared. */

import { InvalidArgumentError, transfer, UnavailableError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { turn } from '../../support/gate.ts';

type AnyFunction = (...args: any[]) => unknown;

describeKinds(kinds, (kind) => {
  const { start, running } = useClusters(kind);

  describe('memory', () => {
    it('is moved when that is asked for: there and back', async () => {
      const cluster = start();
      const bytes = new Uint8Array(8);
      const value = await cluster.schedule('fill', [transfer(bytes, [bytes.buffer]), 7]);
      expect(bytes.byteLength).toBe(0);
      expect(await value.fetch()).toEqual(new Uint8Array(8).fill(7));
      const kept = new Uint8Array(8);
      expect(await (await cluster.schedule('lengthOf', [kept])).fetch()).toBe(8);
      expect(kept.byteLength).toBe(8);
    });

    it('of arguments is theirs, call after call, whatever becomes of the calls', async () => {
      const cluster = start(2);
      const lengthOf = (value: number): number => (value % 3 === 0 ? 30_000 : 40_000);
      const bytes = (value: number): Uint8Array => new Uint8Array(lengthOf(value)).fill(value);
      const isFilledWith = (own: Uint8Array, value = -1): boolean =>
        own.length === lengthOf(value) && own.every((each) => each === value);
      for (let round = 0; round < 20; round += 1) {
        const values = Array.from({ length: 10 }, (_, at) => 10 * round + at);
        const calls = values.map((value) => cluster.schedule('echo', [bytes(value)]));
        const cancelled = await cluster.schedule('echo', [bytes(255)]);
        const dying = round === 5 ? cluster.schedule('dieOnceWith', [bytes(254)]) : undefined;
        cancelled.cancel();
        cancelled.cancel();
        const results = (await cluster.fetch(await Promise.all(calls))) as Uint8Array[];
        expect(results.filter((own, at) => !isFilledWith(own, values[at]))).toEqual([]);
        if (dying !== undefined) {
          expect(isFilledWith((await (await dying).fetch()) as Uint8Array, 254)).toBe(true);
        }
        await cancelled.fetch().catch(() => {});
        if (round % 5 === 0) {
          // What was sent in advance to a worker comes back when the cluster is closed.
          const other = start(1);
          for (const value of values) await other.run('echo', [bytes(value)]); // it is short
          const many = [...values, ...values, ...values, ...values];
          const sent = many.map((value) => other.run('echo', [bytes(value)]).catch(() => {}));
          await turn();
          await other.close();
          await Promise.all(sent);
        }
      }
    });

    it('many results that are moved', async () => {
      const cluster = start(2);
      const values = [];
      for (let count = 0; count < 300; count += 1) {
        values.push(await cluster.schedule('fill', [new Uint8Array(4), count % 256]));
      }
      const all = (await cluster.fetch(values)) as Uint8Array[];
      expect(all.every((bytes, at) => bytes.length === 4 && bytes[0] === at % 256)).toBe(true);
    });

    it('that was moved before is a DataCloneError, never an empty array', async () => {
      const cluster = start();
      const bytes = new ArrayBuffer(8);
      expect(await cluster.run('lengthOf', [transfer(bytes, [bytes])])).toBe(8);
      const again = await errorOf(cluster.run('lengthOf', [bytes]));
      expect(again).toMatchObject({
        name: 'DataCloneError',
        message: expect.stringContaining('detached'),
      });
      const result = await errorOf(cluster.run('moveTwice'));
      expect(result).toMatchObject({
        name: 'DataCloneError',
        message: expect.stringContaining('detached'),
      });
    });

    it('is not moved by a call that is refused, whatever refuses it', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const bytes = new Uint8Array(8);
      const args: [Uint8Array, number] = [transfer(bytes, [bytes.buffer]), 7];
      const ways = [
        // First, in the turn that starts the worker: it cannot have reported its functions yet.
        () => cluster.schedule('add', args, { timeoutMs: 0 }),
        () => cluster.schedule((() => 1) as AnyFunction, args), // not an export
        () => cluster.schedule('fill', [...args, Symbol('uncopyable')]),
      ];
      for (const way of ways) await errorOf(way());
      const { visit } = await running(cluster, 'a');
      await cluster.schedule('nothing');
      const abort = new AbortController();
      const waiting = errorOf(cluster.schedule('fill', args, abort)); // waits for room
      abort.abort('enough');
      expect(await waiting).toBe('enough');
      visit.fail('broken');
      await expect(cluster.schedule('fill', args)).rejects.toThrow('broken');
      expect(bytes.byteLength).toBe(8);
      const value = await cluster.schedule('fill', args);
      expect(bytes.byteLength).toBe(0);
      expect(await value.fetch()).toEqual(new Uint8Array(8).fill(7));
      await cluster.close();
      const later = new Uint8Array(8);
      await errorOf(cluster.schedule('fill', [transfer(later, [later.buffer]), 7]));
      expect(later.byteLength).toBe(8);
    });

    it('is moved as soon as the function is in line, and not a second time', async () => {
      const cluster = start(1, { maxQueued: 1 });
      const { visit } = await running(cluster, 'a');
      await cluster.schedule('nothing');
      const bytes = new Uint8Array(8);
      const both = [7, 8].map((value) =>
        cluster.schedule('fill', [transfer(bytes, [bytes.buffer]), value]),
      );
      const second = errorOf(both[1] as Promise<unknown>);
      await turn();
      expect(bytes.byteLength).toBe(8);
      visit.pass();
      expect(await (await both[0])?.fetch()).toEqual(new Uint8Array(8).fill(7));
      expect(await second).toMatchObject({ name: 'DataCloneError' });
      expect(bytes.byteLength).toBe(0);
      await cluster.join();
    });

    it('that is shared arrives as it is in threads', async ({ skip }) => {
      skip(!kind.isThread, 'processes share none');
      const cluster = start(2);
      const memory = new SharedArrayBuffer(4);
      for (let count = 0; count < 20; count += 1) {
        await cluster.schedule('increment', [memory]);
      }
      await cluster.join();
      expect(new Int32Array(memory)[0]).toBe(20);
    });

    it('that is shared is refused where it would be copied, in whatever it is', async ({
      skip,
    }) => {
      skip(kind.isThread, 'threads share it');
      const cluster = start();
      const memory = new SharedArrayBuffer(4);
      const given = [
        memory,
        new Int32Array(memory),
        new DataView(memory),
        Buffer.from(memory),
        { deep: [new Map([['key', new Set([new Uint8Array(memory)])]])] },
      ];
      for (const value of given) {
        const error = await errorOf(cluster.schedule('increment', [value]));
        expect(error).toBeInstanceOf(InvalidArgumentError);
        expect(error.message).toContain('Pass a copy');
        expect(() => cluster.createPerWorkerDataset('numbers', [value])).toThrow(
          InvalidArgumentError,
        );
      }
      await cluster.join();
    });

    it('that was moved to a worker that died is lost in threads, and says so', async () => {
      const cluster = start(1, { retries: 2 });
      const bytes = new Uint8Array(8);
      const value = await cluster.schedule('dieWith', [transfer(bytes, [bytes.buffer])]);
      const error = await errorOf(value.fetch());
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.message).toContain(
        kind.isThread
          ? 'were moved to a worker that is lost'
          : 'lost its worker 3 times in 3 attempts (retries: 2)',
      );
      await expect(cluster.join()).rejects.toBe(error);
    });
  });
});
