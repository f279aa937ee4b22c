/** Objects of Node's own and WebAssembly's: threads share and clone them; to a process none goes. */

import { BlockList } from 'node:net';
import { transfer } from 'allstop/cluster';
import { describe, expect, it } from 'vitest';
import { describeKinds, errorOf, kinds, useClusters } from '../../support/clusters.ts';
import { wasmModule } from '../../support/wasm-module.ts';

class Own {
  readonly #hidden = 1;
  get hidden(): number {
    return this.#hidden;
  }
}

class Emitter extends EventTarget {
  static override get name(): string {
    throw new Error('nobody needs it');
  }
}

/** Of these structuredClone makes `{}`: in Node 20 of all, later of most. */
const emptied = [
  ['signal', new AbortController().signal],
  ['event', new Event('e')],
  ['url', new URL('data:,')],
  ['decoder', new TextDecoder()],
] as const;

const nodeValues = [
  ['blob', 'Blob', new Blob(['text'])],
  ['blockList', 'BlockList', new BlockList()],
  ['module', 'Module', wasmModule],
  ['reason', 'DOMException', AbortSignal.abort().reason as DOMException],
] as const;

describeKinds(
  kinds,
  (kind) => {
    const { start } = useClusters(kind);

    const refusesProgress = (name: string): void =>
      it('is refused as progress', async () => {
        expect(await errorOf(start().run('reportNodeValue', [name]))).toMatchObject({
          name: 'DataCloneError',
          message: expect.stringContaining('value.list[1]'),
        });
      });

    describe.each(nodeValues)('%s', (name, className, value) => {
      const given = { list: [{}, value] };

      // In Node 20 structuredClone makes an empty object of a DOMException.
      const isCloned =
        className !== 'DOMException' || structuredClone(value) instanceof DOMException;

      it.runIf(kind.isThread && isCloned)('arrives as an argument, and as a result', async () => {
        const cluster = start();
        expect(await cluster.run('classOf', [given])).toMatch(className);
        const got = (await cluster.run('nodeValue', [name])) as { list: object[] };
        expect(got.list[1]).toBeInstanceOf(value.constructor);
      });

      it.runIf(!kind.isThread)('is refused as an argument', async () => {
        const cluster = start();
        for (const args of [[given], [new Uint8Array(9), given]]) {
          const at = args.length - 1;
          await expect(cluster.schedule('both', args)).rejects.toMatchObject({
            name: 'DataCloneError',
            message: expect.stringContaining(`args[${at}].list[1]`),
          });
        }
        await cluster.join();
      });

      it.runIf(!kind.isThread)('is refused as an argument beside a moved one', async () => {
        const moved = new ArrayBuffer(8);
        const run = start().run('both', [transfer(moved, [moved]), given]);
        expect(await errorOf(run)).toMatchObject({
          name: 'DataCloneError',
          message: expect.stringContaining(`#<${className}> could not be cloned.`),
        });
      });

      it.runIf(!kind.isThread)('is an error of the function as a result', async () => {
        const remote = await start().schedule('nodeValue', [name]);
        expect(await errorOf(remote.fetch())).toMatchObject({
          name: 'DataCloneError',
          message: expect.stringContaining('result.list[1]'),
        });
      });

      refusesProgress(name);
    });

    describe.each(emptied)('%s, of which a clone would be an empty object', (name, value) => {
      it('is refused as an argument, and leaves the moved ones', async () => {
        const cluster = start();
        const moved = new ArrayBuffer(8);
        const { port1: port } = new MessageChannel();
        const firsts = [1, Array.from({ length: 200 }, () => ({})), transfer(moved, [moved])];
        const ofThreads = [new SharedArrayBuffer(8), transfer({ port }, [port])];
        for (const first of [...firsts, ...(kind.isThread ? ofThreads : [])]) {
          expect(await errorOf(cluster.run('both', [first, { list: [value] }]))).toMatchObject({
            name: 'DataCloneError',
            message: expect.stringContaining('args[1].list[0]'),
          });
        }
        expect(moved.byteLength).toBe(8);
        port.close();
      });

      it('is an error of the function as a result', async () => {
        expect(await errorOf(start().run('nodeValue', [name]))).toMatchObject({
          name: 'DataCloneError',
          message: expect.stringContaining('result.list[1]'),
        });
      });

      refusesProgress(name);
    });

    it('an instance of a class of the program is copied as a plain object', async () => {
      const { hidden } = new Own();
      expect(hidden).toBe(1);
      const odd = { constructor: null, list: [Object.create(ArrayBuffer.prototype)] };
      const got = await start().run('both', [
        new Own(),
        [Object.assign(new EventTarget(), { hidden }), new Emitter(), odd],
      ]);
      expect(got).toEqual([{}, [{ hidden: 1 }, {}, { constructor: null, list: [{}] }]]);
    });

    it('a value that contains itself and what is refused is refused', async () => {
      const error = await errorOf(start().run('globalObject'));
      expect(error.name).toBe('DataCloneError');
    });

    it('an empty object is one', async () => {
      const cluster = start();
      const got = await cluster.run('both', [new Map([[{}, {}]]), { list: [{}, new Date(0)] }]);
      expect(got).toEqual([new Map([[{}, {}]]), { list: [{}, new Date(0)] }]);
      expect(await cluster.run('nodeValue', ['empty'])).toEqual({ list: [{}, {}] });
      await cluster.run('reportNodeValue', ['empty']);
    });
  },
  ['thread', 'process'],
);
