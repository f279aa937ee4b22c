// @module-tag nats
/** Large variables, whose elements are shared out among several parameter servers. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { serialize } from 'node:v8';
import { Checkpoint, type ClusterCoordinator, ClusterSpec, type Variable } from 'allstop/cluster';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NodeLine } from '../../../lib/nats/variables/parameter-servers.ts';
import { ParameterServers } from '../../../lib/nats/variables/parameter-servers.ts';
import { unpackToNode } from '../../../lib/nats/wire/session-messages.ts';
import { encode } from '../../../lib/record/encoded-error.ts';
import { module } from '../../cluster/variables/stories.ts';
import { type CounterEvent, faultsOf } from '../../support/counter-history.ts';
import { NatsScene } from '../../support/nats-scene.ts';

/** More than 1 MiB for each of three servers, and not the same number of elements. */
const LENGTH = 400_003;
const MIB = 2 ** 20;
const unavailable = { code: 'ERR_ALLSTOP_UNAVAILABLE' };

const spec = (servers: number): ClusterSpec => {
  const ps = Array.from({ length: servers }, (_, at) => `ps${at}:1`);
  return new ClusterSpec({ ps, worker: ['worker:1'] });
};

/** As `toEqual`, which takes seconds for arrays of this length. */
function expectSame(value: ArrayBufferView, other: ArrayBufferView): void {
  expect(value.constructor).toBe(other.constructor);
  const [one, two] = [value, other].map(({ buffer, byteOffset, byteLength }) =>
    Buffer.from(buffer, byteOffset, byteLength),
  );
  expect(one?.equals(two as Buffer)).toBe(true);
}

/** Whether the promise settles before `other` resolves, and all that follows from that at once. */
async function settlesBefore(promise: Promise<unknown>, other: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  const settle = (): void => void (isSettled = true);
  promise.then(settle, settle);
  await other;
  await setImmediate();
  return isSettled;
}

describe('a large variable', () => {
  let scene: NatsScene;
  beforeEach(async () => (scene = await NatsScene.open()));
  afterEach(() => scene.close());

  async function start(servers: number, cluster = 'test'): Promise<ClusterCoordinator> {
    const made = scene.coordinator({ module, cluster, expect: spec(servers) });
    for (let task = 0; task < servers; task += 1) {
      scene.spawn({ module, cluster, job: 'ps', task });
    }
    scene.spawn({ module, cluster, task: 0 });
    await made.ready();
    return made;
  }

  it('is on several servers, and each operation is whole though one is behind', async () => {
    const cluster = scene.coordinator({
      module,
      minWorkers: 0,
      expect: new ClusterSpec({ ps: ['a:1', 'b:1'] }),
      lostAfterMs: 60_000,
    });
    const proxies = [await scene.proxy(), await scene.proxy()];
    for (const [task, { address }] of proxies.entries()) {
      scene.spawn({ module, job: 'ps', task, servers: address });
    }
    const large = await cluster.variable('large', new Int32Array(MIB / 2));
    const whole = await cluster.variable('whole', new Int32Array(MIB / 2), { ps: 0 });
    const near = [
      await cluster.variable('on 0', 0, { ps: 0 }),
      await cluster.variable('on 1', 0, { ps: 1 }),
    ];
    const one = new Int32Array(MIB / 2).fill(1);
    for (const [away, proxy] of proxies.entries()) {
      await large.assign(new Int32Array(MIB / 2));
      proxy.swallow();
      const first = large.assignAdd(one);
      const values = [large.read()];
      const second = large.assignAdd(one);
      values.push(large.read());
      // What goes to the other server is answered; the ranges there were updated.
      const other = near[1 - away] as Variable<number>;
      expect(await settlesBefore(Promise.race([first, second, ...values]), other.read())).toBe(
        false,
      );
      if (away === 1) expect(await settlesBefore(whole.assignAdd(one), other.read())).toBe(true);
      proxy.restore();
      await Promise.all([first, second]);
      const seen = (await Promise.all(values)).map((value) => [...new Set(value)]);
      expect(seen).toEqual([[1], [2]]);
    }
  });

  it('has each element once, at both ends', async () => {
    await hasEachOnce(await start(2), 'Float64Array', new Float64Array(LENGTH));
  });
  it('has each element once, whatever its type', { tags: 'long' }, async () => {
    const cluster = await start(3);
    await hasEachOnce(cluster, 'Float64Array', new Float64Array(LENGTH));
    await hasEachOnce(cluster, 'Float32Array', new Float32Array(LENGTH));
    await hasEachOnce(cluster, 'Int32Array', new Int32Array(LENGTH));
  });

  async function hasEachOnce(
    cluster: ClusterCoordinator,
    name: string,
    initial: Float64Array | Float32Array | Int32Array,
  ): Promise<void> {
    const numbers = initial.map((_, at) => at) as typeof initial;
    const large = await cluster.variable(name, numbers);
    const initially = await large.read();
    expectSame(initially, numbers);
    expect(initially.buffer.byteLength).toBe(numbers.byteLength);
    await cluster.run('add', [large, numbers]);
    await large.assignAdd(numbers);
    const both = await Promise.all([large.read(), large.read()]);
    const tripled = numbers.map((each) => 3 * each) as typeof initial;
    for (const each of both) expectSame(each, tripled);
    expect(both[0]?.buffer).not.toBe(both[1]?.buffer);
    expectSame(await cluster.run<any>('read', [large]), tripled);
    await cluster.run('set', [large, numbers]);
    expectSame(await large.read(), numbers);
    // What an array says of itself counts as little as for a small one.
    const odd = Object.assign(numbers.slice(), { subarray: () => new Float64Array(1) });
    await large.assignAdd(odd);
    expect((await large.read()).at(-1)).toBe(2 * (LENGTH - 1));
  }

  it('is updated and read as a whole while its workers die', { tags: 'long' }, async () => {
    const cluster = await start(3);
    const length = 3 * (MIB / 4);
    const large = await cluster.variable('large', new Int32Array(length));
    const one = new Int32Array(length).fill(1);
    const calls = Array.from({ length: 6 }, (_, at) =>
      cluster.run<any>('addAndRead', [large, 4, at % 3 === 0, one], { retries: 20 }),
    );
    const own: CounterEvent[] = [];
    const clock = (): number => Number(process.hrtime.bigint());
    for (let read = 0; read < 12; read++) {
      const begin = clock();
      const seen = new Set(await large.read());
      expect(seen.size).toBe(1);
      own.push({ kind: 'read', begin, end: clock(), value: [...seen][0] as number });
      if (read === 4)
        void scene.workers
          .at(-1)
          ?.kill()
          .then(() => scene.spawn({ module, task: 0 }));
    }
    const history = [...own, ...(await Promise.all(calls)).flat()];
    expect(faultsOf(history)).toEqual([]);
    expect(new Set(await large.read())).toEqual(new Set([24]));
  });

  it('is saved as one, and restored to another number of servers', { tags: 'long' }, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'allstop-ranges-'));
    const cluster = await start(3);
    const large = await cluster.variable('large', new Float64Array(LENGTH));
    const sum = await cluster.variable('sum', 0);
    const checkpoint = new Checkpoint(cluster, { directory });
    const one = new Float64Array(LENGTH).fill(1);
    const updates = [large.assignAdd(one), sum.assignAdd(1)];
    const saved = checkpoint.save(1);
    updates.push(large.assignAdd(one), sum.assignAdd(1));
    await Promise.all([...updates, saved]);
    await cluster.close();
    const other = await start(2, 'other');
    const again = await other.variable('large', new Float64Array(LENGTH));
    const sumAgain = await other.variable('sum', 0);
    expect(await new Checkpoint(other, { directory }).restoreLatest()).toBe(1);
    const value = await again.read();
    expect([new Set(value).size, value[0]]).toEqual([1, await sumAgain.read()]);
    await rm(directory, { recursive: true });
  });

  it('is lost with each of its servers', { tags: 'long' }, async () => {
    const cluster = await start(2);
    const large = await cluster.variable('large', new Float64Array(LENGTH));
    await scene.workers[1]?.kill();
    await expect(large.read()).rejects.toMatchObject(unavailable);
    await expect(large.assignAdd(new Float64Array(LENGTH))).rejects.toMatchObject(unavailable);
    await expect(cluster.join()).rejects.toMatchObject({
      ...unavailable,
      message: 'The parameter server ps:1 is lost',
    });
  });

  it('waits for all of its servers', async () => {
    const cluster = scene.coordinator({ module, minWorkers: 0, expect: spec(2) });
    scene.spawn({ module, job: 'ps', task: 1 });
    await cluster.variable('small', 0, { ps: 1 });
    const initial = new Float64Array(LENGTH).fill(7);
    await expect(cluster.variable('large', initial, { timeoutMs: 200 })).rejects.toMatchObject({
      ...unavailable,
      message: expect.stringContaining('ps:0 is not ready'),
    });
    const large = cluster.variable('large', initial);
    scene.spawn({ module, job: 'ps', task: 0 });
    expectSame(await (await large).read(), initial);
  });
});

describe('a definition that a coordinator sends', () => {
  it('names no memory, which would be of another machine', () => {
    const definition = { name: 'large', type: 1, length: 5 };
    const message = { kind: 'defined', definitions: [definition] };
    expect(unpackToNode(serialize(message))).toEqual(message);
    const forged = { ...definition, path: '/proc/1/fd/3' };
    expect(unpackToNode(serialize({ ...message, definitions: [forged] }))).toBe(undefined);
  });
});

describe('a server that refuses its part of an update', () => {
  it('ends the variables before a read could see it', async () => {
    const sent: [NodeLine, number, string][] = [];
    const lines = [0, 1].map(() => {
      const line: NodeLine = {
        post: (message) => {
          if (message.kind === 'operate') sent.push([line, message.id, message.request[0]]);
        },
        isRunning: () => true,
      };
      return line;
    });
    const servers = new ParameterServers(
      {
        servers: lines.map((session, index) => ({ index, session })),
        expectedServers: [0, 1],
      },
      new Map(),
      { state: () => ({ phase: 'ready' }), assertHeld: async () => {} },
    );
    const answerAll = (refusing?: NodeLine): void => {
      for (const [line, id, operation] of sent.splice(0)) {
        const isRefused = line === refusing && operation === 'assignAdd';
        const record = encode(new RangeError('Array buffer allocation failed')).bytes;
        const value = operation === 'read' ? new Float64Array(MIB / 8) : undefined;
        servers.answered(line, id, isRefused ? [undefined, record] : [value]);
      }
    };
    const making = servers.variable('large', new Float64Array(MIB / 4));
    await setImmediate();
    answerAll();
    const large = await making;
    const update = large.assignAdd(new Float64Array(MIB / 4));
    const read = large.read();
    await setImmediate();
    expect(sent).toHaveLength(4);
    answerAll(lines[1]);
    const gone = { ...unavailable, message: expect.stringContaining("variable 'large'") };
    await expect(read).rejects.toMatchObject(gone);
    await expect(update).rejects.toThrow('Array buffer allocation failed');
    await expect(large.assign(new Float64Array(MIB / 4))).rejects.toMatchObject(gone);
  });
});
