/** Bugs that reviews have found, each with the test that showed it. */
import { afterEach, expect, it } from 'vitest';
import {
  ClusterCoordinator,
  type ClusterOptions,
  LocalStrategy,
  transfer,
} from '../../../dist/cluster/index.js';

const module = new URL('../../fixtures/cluster-broken-once.mjs', import.meta.url);
const clusters: ClusterCoordinator[] = [];
const gates: Int32Array[] = [];

afterEach(async () => {
  for (const words of gates.splice(0)) open(words);
  for (const cluster of clusters.splice(0)) await cluster.close();
});

/** The first word is 1 when the gate is open, the second when a `passGate` waits there. */
function gate(): Int32Array {
  const words = new Int32Array(new SharedArrayBuffer(8));
  gates.push(words);
  return words;
}

function open(words: Int32Array): void {
  Atomics.store(words, 0, 1);
  Atomics.notify(words, 0);
}

function make(workers = 1, options?: ClusterOptions, file = module): ClusterCoordinator {
  const cluster = new ClusterCoordinator(new LocalStrategy({ module: file, workers }), options);
  clusters.push(cluster);
  return cluster;
}

async function start(workers = 1): Promise<ClusterCoordinator> {
  const cluster = make(workers, { cancelGraceMs: 100 });
  await cluster.ready();
  return cluster;
}

/** Runs the function until it is known to be short: then several of them go as one message. */
async function makeShort(cluster: ClusterCoordinator, name: string): Promise<void> {
  for (let n = 0; n < 50; n++) await (await cluster.schedule(name, [gate(), 'pass'])).fetch();
}

it('a data set function is not told to stop from the start', async () => {
  const cluster = await start();
  const found = cluster.createPerWorkerDataset('mayStop').iterator();
  expect(await (await cluster.schedule('next', [found])).fetch()).toBe(false);
});

it('a symbol among the arguments is refused at once, and fails nobody else', async () => {
  const cluster = await start();
  const all = await Promise.allSettled([
    cluster.schedule('echo', [1]),
    cluster.schedule('echo', [Symbol('no copy')]),
    cluster.schedule('echo', [2]),
  ]);
  expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  await cluster.join();
});

it('a data set whose arguments cannot be sent fails its users only', async () => {
  const cluster = await start();
  const { port1, port2 } = new MessageChannel();
  const values = cluster.createPerWorkerDataset('mayStop', [transfer({ port1 }, [port1])]);
  const user = await cluster.schedule('next', [values.iterator()]);
  await expect(user.fetch()).rejects.toMatchObject({ code: 'ERR_ALLSTOP_CLOSURE_INPUT' });
  await expect(cluster.join()).rejects.toMatchObject({ code: 'ERR_ALLSTOP_CLOSURE_INPUT' });
  expect(await (await cluster.schedule('echo', [1])).fetch()).toBe(1);
  port2.close();
});

it('schedule hears its deadline, its signal and close() before a worker is there', async () => {
  const cluster = make(1, {}, new URL('../../fixtures/cluster-never-loads.mjs', import.meta.url));
  await expect(cluster.schedule('any', [], { timeoutMs: 1 })).rejects.toMatchObject({
    code: 'ERR_ALLSTOP_DEADLINE_EXCEEDED',
  });
  const controller = new AbortController();
  const aborted = cluster.schedule('any', [], { signal: controller.signal });
  controller.abort('enough');
  await expect(aborted).rejects.toBe('enough');
  const byFunction = cluster.schedule(() => 1);
  const closed = cluster.close();
  await expect(byFunction).rejects.toMatchObject({ code: 'ERR_ALLSTOP_FAILED_PRECONDITION' });
  await closed;
});

it('join waits for what was scheduled before it, also before a worker is there', async () => {
  const cluster = make();
  const order: string[] = [];
  const scheduled = cluster.schedule('echo', [1]).then(() => order.push('schedule'));
  await cluster.join().then(() => order.push('join'));
  await scheduled;
  expect(order).toEqual(['schedule', 'join']);
});

it('two short functions that need each other run on two workers', async () => {
  const cluster = await start(2);
  await makeShort(cluster, 'passGate');
  const words = gate();
  const all = [
    cluster.schedule('passGate', [words, 'wait']),
    cluster.schedule('passGate', [words, 'open']),
  ];
  expect(await cluster.fetch(await Promise.all(all))).toEqual(['wait', 'open']);
});

it('a result does not wait for the promise of the function after it', async () => {
  const cluster = await start();
  await makeShort(cluster, 'passGateLater');
  const words = gate();
  const [first, second] = await Promise.all([
    cluster.schedule('passGateLater', [words, 'pass']),
    cluster.schedule('passGateLater', [words, 'wait']),
  ]);
  expect(await first?.fetch()).toBe('pass');
  open(words);
  expect(await second?.fetch()).toBe('wait');
});

it('what is taken back is cancelled, also if its arguments were moved', async () => {
  const cluster = await start();
  await makeShort(cluster, 'passGate');
  const words = gate();
  const bytes = new Uint8Array(8);
  const [blocks, moved] = await Promise.all([
    cluster.schedule('passGate', [words, 'wait']),
    cluster.schedule('passGate', [words, transfer(bytes, [bytes.buffer])]),
  ]);
  await Atomics.waitAsync(words, 1, 0).value;
  cluster.coordinator.requestStop(new Error('stopped'));
  await expect(moved?.fetch()).rejects.toMatchObject({ code: 'ERR_ALLSTOP_CANCELLED' });
  open(words);
  await Promise.allSettled([blocks?.fetch()]);
});

it('a message of the module’s own does not end the program', async () => {
  const cluster = await start();
  expect(await (await cluster.schedule('postsNull')).fetch()).toBe('posted');
});

it('a death fails the function that ran, and those whose results it took are queued again', async () => {
  const cluster = make(1, { retries: 1 });
  await cluster.ready();
  for (let n = 0; n < 50; n++) await (await cluster.schedule('dieIf', [false])).fetch();
  await (await cluster.schedule('stopClock')).fetch();
  // They go as few messages; the worker dies before it has sent the results of the last one. (It
  // would send the result of a function that takes long at once.)
  const calls = [...Array.from({ length: 20 }, () => false), true].map((dies) =>
    cluster.schedule('dieIf', [dies]),
  );
  const values = await Promise.all(calls);
  await expect(cluster.join()).rejects.toThrow(
    "'dieIf' lost its worker 2 times in 2 attempts (retries: 1)",
  );
  const states = values.map(({ state }) => state);
  expect(states.at(-1)).toBe('failed');
  expect(new Set(states.slice(0, -1))).toEqual(new Set(['ready']));
  expect(await (await cluster.schedule('echo', [3])).fetch()).toBe(3);
});
