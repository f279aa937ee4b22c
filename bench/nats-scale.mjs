/**
 * How much load a coordinator and a NATS server carry with 10, 100 and 1,000 workers, most of them
 * virtual (virtual-workers.mjs), and what a call takes that waits. Run by
 * `node --expose-gc bench/nats-scale.mjs`, each night, too; prints the tables of docs/nats-design.md.
 */

import { cpuUsage } from 'node:process';
import { fileURLToPath } from 'node:url';
import { ClusterCoordinator } from '../dist/cluster/index.js';
import { NatsStrategy } from '../dist/nats/index.js';
import { sleep } from './rounds.mjs';
import { start, startNats } from './servers.mjs';
import { median } from './statistics.mjs';

const COUNTS = [10, 100, 1_000];
const PER_PROCESS = 250;
const QUEUED = 50_000;
const module = new URL('nats-tasks.mjs', import.meta.url);
const path = fileURLToPath(module);
const workers = fileURLToPath(new URL('nats-peers/virtual-workers.mjs', import.meta.url));
const servers = await startNats();

/** Runs `body` and returns the share of one processor that this process used meanwhile. */
async function load(body) {
  const before = cpuUsage();
  const began = performance.now();
  await body();
  const { user, system } = cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - began);
}

function heapUsed() {
  gc();
  return process.memoryUsage().heapUsed;
}

const rows = [];
for (const count of COUNTS) {
  const cluster = `scale-${count}`;
  const children = [];
  for (let left = count; left > 0; left -= PER_PROCESS) {
    const some = String(Math.min(left, PER_PROCESS));
    children.push(await start(process.execPath, [workers, servers, cluster, some, path], /^ready/));
  }
  const heapBefore = heapUsed();
  const began = performance.now();
  const coordinator = new ClusterCoordinator(
    new NatsStrategy({ module, servers, cluster, minWorkers: count }),
  );
  await coordinator.ready();
  const readyMs = performance.now() - began;
  const bytes = heapUsed() - heapBefore;
  const idle = await load(() => sleep(5_000));
  const trips = [];
  for (let sample = 0; sample < 300; sample++) {
    const sent = performance.now();
    await (await coordinator.schedule('add', [1, 2])).fetch();
    trips.push(performance.now() - sent);
  }
  const calls = 20_000;
  const scheduled = performance.now();
  const remotes = [];
  for (let index = 0; index < calls; index++) {
    remotes.push(await coordinator.schedule('add', [index, 1]));
  }
  const values = await Promise.all(remotes.map((remote) => remote.fetch()));
  if (!values.every((value, index) => value === index + 1)) throw new Error('A result is wrong');
  const perSecond = calls / ((performance.now() - scheduled) / 1_000);
  rows.push({
    workers: count,
    'ready, ms': Math.round(readyMs),
    'idle coordinator, % of a processor': Number((idle * 100).toFixed(1)),
    'KB of it a worker': Number((bytes / count / 1_024).toFixed(1)),
    'round trip, ms': Number(median(trips).toFixed(2)),
    'calls/s': Math.round(perSecond),
  });
  process.stderr.write(`${JSON.stringify(rows.at(-1))}\n`);
  await coordinator.close();
  for (const child of children) {
    child.removeAllListeners('exit');
    child.kill();
  }
}

/** How many bytes a call takes that waits, since no worker is there. */
async function bytesOfQueued(make) {
  const coordinator = new ClusterCoordinator(
    new NatsStrategy({ module, servers, cluster: 'scale-queued', minWorkers: 0 }),
    { maxQueued: QUEUED },
  );
  await coordinator.ready();
  const before = heapUsed();
  for (let index = 0; index < QUEUED; index++) {
    await make(coordinator, index);
    if (index % 1_000 === 0) await sleep(0);
  }
  while (coordinator.stats().queued < QUEUED) await sleep(10);
  const bytes = (heapUsed() - before) / QUEUED;
  coordinator.close().catch(() => {});
  return Math.round(bytes);
}

const queued = [
  {
    call: '`run`',
    bytes: await bytesOfQueued((coordinator, index) => {
      coordinator.run('add', [index, 1]).catch(() => {});
    }),
  },
  {
    call: '`schedule`',
    bytes: await bytesOfQueued(async (coordinator, index) => {
      await coordinator.schedule('add', [index, 1]);
    }),
  },
];

const line = (cells) => `| ${cells.join(' | ')} |`;
const tableOf = (all) => {
  const columns = Object.keys(all[0]);
  const rule = line(columns.map(() => '---:'));
  return [line(columns), rule, ...all.map((row) => line(Object.values(row)))].join('\n');
};
process.stdout.write(`${tableOf(rows)}\n\n${tableOf(queued)}\n`);
process.exit();
