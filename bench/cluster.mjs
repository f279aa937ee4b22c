/** Trivial functions on two worker threads: throughput and latency, by `run` and by `schedule`. */

import { fileURLToPath } from 'node:url';
import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { createPool } from '../dist/pool/index.js';
import { fetchPeers, importPeer } from './peers.mjs';
import { besidePeers, quick, report, usSince, wants } from './rounds.mjs';

const WORKERS = 2;
const WAVE = 5_000;
const here = (name) => fileURLToPath(new URL(`cluster-peers/${name}.mjs`, import.meta.url));

const module = new URL('cluster-tasks.mjs', import.meta.url);
const ownPool = createPool(module, { workers: WORKERS });
await ownPool.ready();
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: WORKERS }));
await cluster.ready();
const ours = { run: (a, b) => ownPool.run('add', [a, b]) };

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

async function scheduledWave() {
  const start = process.hrtime.bigint();
  const remotes = [];
  for (let index = 0; index < WAVE; index++) remotes.push(cluster.schedule('add', [index, 1]));
  const values = await Promise.all((await Promise.all(remotes)).map((remote) => remote.fetch()));
  const us = usSince(start) / WAVE;
  check(values);
  return us;
}

async function wave({ run }) {
  const start = process.hrtime.bigint();
  const promises = [];
  for (let index = 0; index < WAVE; index++) promises.push(run(index, 1));
  const values = await Promise.all(promises);
  const us = usSince(start) / WAVE;
  check(values);
  return us;
}

async function scheduledRoundTrip() {
  const start = process.hrtime.bigint();
  await (await cluster.schedule('add', [1, 2])).fetch();
  return usSince(start);
}

async function roundTrip({ run }) {
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
/** Measures `run`, `schedule` and the peers in turn: a row for each of the first two. */
async function compare(name, measure, scheduled, times) {
  if (!wants(`pool/${name}`) && !wants(`pool/scheduled-${name}`)) return;
  const peersAndScheduled = { ...each(measure), scheduled };
  const found = await besidePeers({
    ...times,
    ours: () => measure(ours),
    peers: peersAndScheduled,
  });
  const { scheduled: own, ...others } = found.peers;
  rows[`pool/${name}`] = { ours: found.ours, peers: others };
  rows[`pool/scheduled-${name}`] = { ours: own, peers: others };
}
await compare('calls', wave, scheduledWave, { rounds: 11, samples: 5 });
await compare('round-trip', roundTrip, scheduledRoundTrip, { rounds: 21, samples: 401 });
for (const peer of Object.values(pools)) await peer.close();
await ownPool.close();
await cluster.close();
report(rows);
