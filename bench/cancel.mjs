// Cancelling a loop that does not yield, in a worker thread of other libraries: by the library's own
// means, and by the handle of a coordinator in the task's data. Prints a Markdown table: the time
// from the abort until the caller's promise has settled, until the pool has run the next task, and
// whether the same thread did.
//
//   node bench/cancel.mjs [rounds, 20]      BullMQ: needs redis-server on the PATH
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BroadcastChannel } from 'node:worker_threads';
import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { Coordinator } from '../dist/index.js';
import { fetchPeers, importPeer } from './peers.mjs';

const ROUNDS = Number(process.argv[2] ?? 20);
const PATIENCE_MS = 2_000;
const PORT = 6_391;
const file = fileURLToPath(new URL('cancel-tasks.mjs', import.meta.url));
const size = { minThreads: 1, maxThreads: 1 };
const begun = new BroadcastChannel('cancel-tasks');
const hasBegun = () =>
  new Promise((resolve) => begun.addEventListener('message', resolve, { once: true }));

fetchPeers();
const Piscina = await importPeer('piscina');
const Tinypool = await importPeer('tinypool');

// Each pool: run(task, signal) with the library's own means, where it has any, and close().
const pools = {
  Piscina() {
    const pool = new Piscina({ filename: file, ...size });
    return { run: (task, signal) => pool.run(task, { signal }), close: () => pool.destroy() };
  },
  tinypool() {
    const pool = new Tinypool({ filename: file, ...size });
    return { run: (task, signal) => pool.run(task, { signal }), close: () => pool.destroy() };
  },
  async BullMQ() {
    const { Queue, QueueEvents, Worker } = await importPeer('bullmq');
    const connection = { host: '127.0.0.1', port: PORT };
    const queue = new Queue('cancel', { connection });
    const events = new QueueEvents('cancel', { connection });
    const worker = new Worker('cancel', file, { connection, useWorkerThreads: true });
    await Promise.all([events.waitUntilReady(), worker.waitUntilReady()]);
    return {
      async run(task, signal) {
        const job = await queue.add('task', task);
        signal?.addEventListener('abort', () => worker.cancelJob(job.id));
        return job.waitUntilFinished(events);
      },
      async close() {
        await worker.close();
        await events.close();
        await queue.close();
      },
    };
  },
};

/** One row. `way`: 'signal', or 'handle'. */
async function measure(name, way) {
  const pool = await pools[name]();
  const settled = [];
  const next = [];
  let sameThread = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { threadId } = await pool.run({ quick: true });
    const coord = new Coordinator();
    const controller = new AbortController();
    const started = hasBegun();
    const task = pool.run({ stop: coord.handle }, way === 'signal' ? controller.signal : undefined);
    const ended = task.then(
      () => true,
      () => true,
    );
    await started;
    const abortedAt = performance.now();
    if (way === 'signal') controller.abort();
    else coord.requestStop();
    const inTime = await Promise.race([ended, sleep(PATIENCE_MS, false)]);
    settled.push(performance.now() - abortedAt);
    const after = inTime ? await pool.run({ quick: true }) : undefined;
    next.push(performance.now() - abortedAt);
    coord.requestStop();
    await ended;
    await coord[Symbol.asyncDispose]();
    if (!inTime) {
      await pool.close();
      return ['does not end', '', ''];
    }
    if (after.threadId === threadId) sameThread++;
  }
  await pool.close();
  return [spread(settled), spread(next), `${sameThread} of ${ROUNDS}`];
}

async function measureOurs() {
  const module = new URL('cancel-tasks.mjs', import.meta.url);
  const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1 }));
  const settled = [];
  const next = [];
  let sameThread = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { threadId } = await cluster.run('quick');
    const controller = new AbortController();
    const started = hasBegun();
    const task = cluster.run('spin', [], { signal: controller.signal }).catch(() => {});
    await started;
    const abortedAt = performance.now();
    controller.abort();
    await task;
    settled.push(performance.now() - abortedAt);
    if ((await cluster.run('quick')).threadId === threadId) sameThread++;
    next.push(performance.now() - abortedAt);
  }
  await cluster.close();
  return [spread(settled), spread(next), `${sameThread} of ${ROUNDS}`];
}

function spread(times) {
  const sorted = times.toSorted((a, b) => a - b);
  return `${sorted[sorted.length >> 1].toFixed(2)} ms (${sorted.at(-1).toFixed(1)})`;
}

console.log(
  '| a loop in | cancelled by | promise settled: median (worst) | next task done | same thread |',
);
console.log('| --- | --- | --- | --- | --- |');
const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
const redis = hasRedis && spawn('redis-server', ['--port', String(PORT), '--save', '']);
if (redis) await once(redis.stdout, 'data');
for (const [name, own] of [
  ['Piscina', '`signal`'],
  ['tinypool', '`signal`'],
  ['BullMQ', '`cancelJob`'],
]) {
  if (name === 'BullMQ' && !hasRedis) continue;
  console.log(`| ${name} | its own ${own} | ${(await measure(name, 'signal')).join(' | ')} |`);
  console.log(`| ${name} | a handle | ${(await measure(name, 'handle')).join(' | ')} |`);
}
console.log(`| allstop's pool | its own \`signal\` | ${(await measureOurs()).join(' | ')} |`);
if (redis) redis.kill();
process.exit();
