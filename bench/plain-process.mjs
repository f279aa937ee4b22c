/**
 * node plain-process.mjs SUBJECT STORY [quick]: measures one pool, in a process that has nothing else,
 * and prints a number.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { importPeer } from './peers.mjs';
import { median } from './statistics.mjs';

const [, , subject, story, mode] = process.argv;
const isQuick = mode === 'quick';
const few = (count) => (isQuick ? Math.min(count, 64) : count);
const tasks = new URL('cluster-peers/plain.mjs', import.meta.url);
const here = (name) => fileURLToPath(new URL(`cluster-peers/${name}.mjs`, import.meta.url));

/**
 * Each makes a pool: `add(a, b)` resolves to the sum, `run(name, value)` to what that function of
 * plain.mjs returns; `run` may be missing.
 */
const pools = {
  async allstop(workers) {
    const { createPool, transfer } = await import('../dist/pool/index.js');
    const trivial = ['round-trip', 'first', 'in-flight'].includes(story);
    const module = trivial ? new URL('cluster-tasks.mjs', import.meta.url) : tasks;
    const pool = createPool(module, { workers });
    await pool.ready();
    return {
      add: (a, b) => pool.run('add', [a, b]),
      run: (name, value) => pool.run(name, [value]),
      move: (name, value) => pool.run(name, [transfer(value, [value.buffer])]),
      map: (items) => pool.map('increment', items),
    };
  },
  async Piscina(workers) {
    const Piscina = await importPeer('piscina');
    const own = new Piscina({
      filename: fileURLToPath(tasks),
      minThreads: workers,
      maxThreads: workers,
    });
    return {
      add: (a, b) => own.run({ a, b }, { name: 'add' }),
      run: (name, value) => own.run(value, { name }),
      move: (name, value) => own.run(Piscina.move(value), { name }),
    };
  },
  async tinypool(workers) {
    const Tinypool = await importPeer('tinypool');
    const own = new Tinypool({
      filename: fileURLToPath(tasks),
      minThreads: workers,
      maxThreads: workers,
    });
    return {
      add: (a, b) => own.run({ a, b }, { name: 'add' }),
      run: (name, value) => own.run(value, { name }),
    };
  },
  async workerpool(workers) {
    const workerpool = await importPeer('workerpool');
    const options = { minWorkers: workers, maxWorkers: workers, workerType: 'thread' };
    const own = workerpool.pool(here('workerpool'), options);
    return {
      add: (a, b) => own.exec('add', [a, b]),
      run: (_name, item) => own.exec('add', [item, 1]),
    };
  },
  async poolifier(workers) {
    const { FixedThreadPool } = await importPeer('poolifier');
    const own = new FixedThreadPool(workers, here('poolifier'));
    return {
      add: (a, b) => own.execute({ a, b }),
      run: (_name, item) => own.execute({ a: item, b: 1 }),
    };
  },
  /** A Worker and its MessagePort, without a pool. */
  async bare() {
    const source = `require('node:worker_threads').parentPort.on('message', function ({ a, b }) { this.postMessage(a + b); });`;
    const worker = new Worker(source, { eval: true });
    let settle;
    worker.on('message', (value) => settle(value));
    return {
      add: (a, b) =>
        new Promise((resolve) => {
          settle = resolve;
          worker.postMessage({ a, b });
        }),
    };
  },
};

const usSince = (start) => (performance.now() - start) * 1_000;

/** Microseconds of processor time. */
async function cpu(body) {
  const before = process.cpuUsage();
  await body();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Calls with up to `atOnce` in flight. */
async function inFlight({ add }, calls, atOnce) {
  let next = 0;
  const lane = async () => {
    while (next < calls) {
      next += 1;
      if ((await add(next, 1)) !== next + 1 && atOnce === 1) throw new Error('A sum is wrong');
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

const users = Array.from({ length: 100 }, (_, id) => ({ id, name: `user${id}`, tags: ['a', 'b'] }));

/** Microseconds of processor time of a call, of some that are made at once. */
async function costOf(call, calls, atOnce) {
  const wave = () => Promise.all(Array.from({ length: few(atOnce) }, call));
  await wave();
  const rounds = [];
  for (let round = 0; round < few(calls); round++) rounds.push((await cpu(wave)) / few(atOnce));
  return median(rounds);
}

const AWAITS = 300_000;
/** Nanoseconds of processor time of one `await`. */
async function awaitsOf(run) {
  const count = isQuick ? 1_000 : AWAITS;
  await run('awaits', count / 10);
  return ((await cpu(() => run('awaits', count))) * 1_000) / count;
}

/** Nanoseconds of an `await` on the main thread, whose Coordinator was used before, or not. */
async function awaitsHere(isUsed) {
  if (isUsed) {
    const { Coordinator } = await import('../dist/index.js');
    const coord = new Coordinator();
    await coord.start(() => sleep(1));
    await coord.join();
  }
  const { awaits } = await import(tasks.href);
  return awaitsOf((_name, count) => awaits(count));
}

/** Microseconds of a child with a listener of its signal, beside so many megabytes of objects. */
async function childCost(megabytes) {
  const kept = [];
  for (let index = 0; index < (megabytes * 2 ** 20) / 100; index++) kept.push({ a: { b: index } });
  globalThis.kept = kept;
  const { Coordinator } = await import('../dist/index.js');
  const parent = new Coordinator();
  const controller = new AbortController();
  const make =
    subject === 'allstop'
      ? () => parent.child().signal
      : () => AbortSignal.any([controller.signal, new AbortController().signal]);
  const listener = () => {};
  const requests = async (count) => {
    for (let done = 0; done < count; done += 10) {
      const signals = Array.from({ length: 10 }, make);
      for (const signal of signals) signal.addEventListener('abort', listener);
      await new Promise((resolve) => setImmediate(resolve));
      for (const signal of signals) signal.removeEventListener('abort', listener);
    }
  };
  const count = few(20_000);
  await requests(count);
  return (await cpu(() => requests(count))) / count;
}

const stories = {
  async 'round-trip'() {
    const { add } = await pools[subject](2);
    const trips = [];
    for (let trip = 0; trip < few(4_000); trip++) {
      const start = performance.now();
      await add(trip, 1);
      trips.push(usSince(start));
    }
    return median(trips.slice(few(4_000) >> 2));
  },
  async first() {
    const { add } = await pools[subject](2);
    await add(1, 1); // Piscina starts its workers meanwhile
    const start = performance.now();
    for (let call = 0; call < 100; call++) await add(call, 1);
    return usSince(start) / 100;
  },
  async 'in-flight'() {
    const pool = await pools[subject](2);
    await inFlight(pool, few(3_000), 64);
    const waves = [];
    for (let wave = 0; wave < 5; wave++) {
      const start = performance.now();
      await inFlight(pool, few(5_000), 64);
      waves.push(usSince(start) / few(5_000));
    }
    return median(waves);
  },
  /** As many items as the pool's own way takes: `map`, or all calls at once. */
  async map() {
    const { run, map } = await pools[subject](2);
    const count = few(20_000);
    const items = Array.from({ length: count }, (_, index) => index);
    const all = async () => {
      if (map !== undefined) return collect(map(items));
      return await Promise.all(items.map((item) => run('increment', item)));
    };
    const rounds = [];
    for (let round = 0; round < 4; round++) {
      const start = performance.now();
      const results = await all();
      rounds.push(usSince(start) / count);
      if (results.at(-1) !== count) throw new Error('The last result is wrong');
    }
    return median(rounds.slice(1));
  },
  async await() {
    const { run } = await pools[subject](1);
    return awaitsOf(run);
  },
  'await-here': () => awaitsHere(subject === 'allstop'),
  async 'objects-argument'() {
    const { run } = await pools[subject](1);
    return costOf(() => run('size', users), 9, 200);
  },
  async 'objects-result'() {
    const { run } = await pools[subject](1);
    return costOf(() => run('echo', users), 9, 200);
  },
  async move() {
    const { move } = await pools[subject](1);
    return costOf(() => move('size', new Uint8Array(1_000_000)), 15, 20);
  },
  async shared() {
    const { run } = await pools[subject](1);
    const value = new Uint8Array(new SharedArrayBuffer(1_000_000));
    return costOf(() => run('size', value), 15, 500);
  },
  'child-0': () => childCost(0),
  'child-300': () => childCost(isQuick ? 1 : 300),
};

async function collect(mapped) {
  const results = [];
  for await (const each of mapped) results.push(each);
  return results;
}

process.stdout.write(JSON.stringify(await stories[story]()), () => process.exit());
