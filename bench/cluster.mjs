/** Trivial functions on two worker threads: throughput and latency. */

import { fileURLToPath } from 'node:url';
import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { fetchPeers, importPeer } from './peers.mjs';
import { besidePeers, quick, report, usSince, wants } from './rounds.mjs';

const WORKERS = 2;
const WAVE = 5_000;
const here = (name) => fileURLToPath(new URL(`cluster-peers/${name}.mjs`, import.meta.url));

const strategy = new LocalStrategy({
  module: new URL('cluster-tasks.mjs', import.meta.url),
  workers: WORKERS,
});
const cluster = new ClusterCoordinator(strategy);
await cluster.ready();

/** The peers. Each has `run(a, b)`, which resolves to the sum. */
const peers = {
  async Piscina() {
    const Piscina = await importPeer('piscina');
    const size = { minThreads: WORKERS, maxThreads: WORKERS };
    const pool = new Piscina({ filename: here('default-export'), ...size });
    return { run: (a, b) => pool.run({ a, b }), close: () => pool.destroy() };
  },
  async tinypool() {
    const Tinypool = await importPeer('tinypool');
    const size = { minThreads: WORKERS, maxThreads: WORKERS };
    const pool = new Tinypool({ filename: here('default-export'), ...size });
    return { run: (a, b) => pool.run({ a, b }), close: () => pool.destroy() };
  },
  async workerpool() {
    const workerpool = await importPeer('workerpool');
    const options = { minWorkers: WORKERS, maxWorkers: WORKERS, workerType: 'thread' };
    const pool = workerpool.pool(here('workerpool'), options);
    return { run: (a, b) => pool.exec('add', [a, b]), close: () => pool.terminate() };
  },
  async poolifier() {
    const { FixedThreadPool } = await importPeer('poolifier');
    const pool = new FixedThreadPool(WORKERS, here('poolifier'));
    return { run: (a, b) => pool.execute({ a, b }), close: () => pool.destroy() };
  },
};

function check(values) {
  for (const [index, value] of values.entries()) {
    if (value !== index + 1) throw new Error(`${index} + 1 is not ${value}`);
  }
}

async function ourWave() {
  const start = process.hrtime.bigint();
  const remotes = [];
  for (let index = 0; index < WAVE; index++) remotes.push(cluster.schedule('add', [index, 1]));
  const values = await Promise.all((await Promise.all(remotes)).map((remote) => remote.fetch()));
  const us = usSince(start) / WAVE;
  check(values);
  return us;
}

async function peerWave({ run }) {
  const start = process.hrtime.bigint();
  const promises = [];
  for (let index = 0; index < WAVE; index++) promises.push(run(index, 1));
  const values = await Promise.all(promises);
  const us = usSince(start) / WAVE;
  check(values);
  return us;
}

async function ourRoundTrip() {
  const start = process.hrtime.bigint();
  await (await cluster.schedule('add', [1, 2])).fetch();
  return usSince(start);
}

async function peerRoundTrip({ run }) {
  const start = process.hrtime.bigint();
  await run(1, 2);
  return usSince(start);
}

if (!quick) fetchPeers();
const pools = {};
for (const [name, start] of Object.entries(quick ? {} : peers)) pools[name] = await start();
const each = (measure) =>
  Object.fromEntries(Object.entries(pools).map(([name, pool]) => [name, () => measure(pool)]));
const rows = {};
if (wants('pool/calls')) {
  rows['pool/calls'] = await besidePeers({
    rounds: 11,
    samples: 5,
    ours: ourWave,
    peers: each(peerWave),
  });
}
if (wants('pool/round-trip')) {
  rows['pool/round-trip'] = await besidePeers({
    rounds: 21,
    samples: 401,
    ours: ourRoundTrip,
    peers: each(peerRoundTrip),
  });
}
for (const pool of Object.values(pools)) await pool.close();
await cluster.close();
report(rows);
