/** Memory that is moved or shared. */

import { transfer, UnavailableError } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { errorOf, kinds, useClusters } from '../support/clusters.ts';

describe.each(kinds)('workers as $name', (kind) => {
  const { start } = useClusters(kind);

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

    it('many results that are moved', async () => {
      const cluster = start(2);
      const values = [];
      for (let count = 0; count < 300; count += 1) {
        values.push(await cluster.schedule('fill', [new Uint8Array(4), count % 256]));
      }
      const all = (await cluster.fetch(values)) as Uint8Array[];
      expect(all.every((bytes, at) => bytes.length === 4 && bytes[0] === at % 256)).toBe(true);
    });

    it('that is shared arrives as it is in threads, and never in processes', async () => {
      const cluster = start(2);
      const memory = new SharedArrayBuffer(4);
      if (!kind.isThread) {
        const value = await cluster.schedule('increment', [memory]);
        const error = await errorOf(value.fetch());
        expect(error).toMatchObject({ name: 'DataCloneError' });
        expect(await errorOf(cluster.join())).toBe(error);
        expect(await (await cluster.schedule('add', [1, 2])).fetch()).toBe(3);
        return;
      }
      for (let count = 0; count < 20; count += 1) {
        await cluster.schedule('increment', [memory]);
      }
      await cluster.join();
      expect(new Int32Array(memory)[0]).toBe(20);
    });

    it('that was moved to a worker that died is lost in threads, and says so', async () => {
      const cluster = start(1, { retries: 2 });
      const bytes = new Uint8Array(8);
      const value = await cluster.schedule('dieWith', [transfer(bytes, [bytes.buffer])]);
      const error = await errorOf(value.fetch());
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.message).toContain(
        kind.isThread ? 'were moved to a worker that is lost' : 'was started 3 times',
      );
      await expect(cluster.join()).rejects.toBe(error);
    });
  });
});
