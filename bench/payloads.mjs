/** Real arguments and results on one worker thread: processor time of the whole process for a call. */

import { fileURLToPath } from 'node:url';
import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { fetchPeers, importPeer } from './peers.mjs';
import { besidePeers, quick, report, wants } from './rounds.mjs';

const tasks = new URL('cluster-peers/payloads.mjs', import.meta.url);
const size = { minThreads: 1, maxThreads: 1 };
const objects = (count) =>
  Array.from({ length: count }, (_, id) => ({ id, name: `user${id}`, tags: ['a', 'b'] }));

/** For each payload its value, and how many calls there are at once. */
const payloads = {
  object: [{ id: 1, name: 'user1' }, 2_000],
  '100-objects': [objects(100), 200],
  '10000-objects': [objects(10_000), 6],
  numbers: [Array.from({ length: 1_000_000 }, () => 7), 2],
  buffer: [new Uint8Array(1_000_000), 30],
};

const cluster = new ClusterCoordinator(new LocalStrategy({ module: tasks, workers: 1 }));
await cluster.ready();

/** Microseconds of processor time for one of `count` calls at once. */
async function cpu(call, count) {
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: count }, call));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

if (!quick) fetchPeers();
const pools = {};
for (const name of quick ? [] : ['Piscina', 'tinypool']) {
  const Pool = await importPeer(name.toLowerCase());
  pools[name] = new Pool({ filename: fileURLToPath(tasks), ...size });
}
const rows = {};
for (const [kind, task] of [
  ['argument', 'size'],
  ['result', 'echo'],
]) {
  for (const [payload, [value, calls]] of Object.entries(payloads)) {
    const name = `pool/${kind}-${payload}`;
    if (!wants(name)) continue;
    const count = quick ? 1 : calls;
    const peers = Object.entries(pools).map(([peer, pool]) => [
      peer,
      () => cpu(() => pool.run(value, { name: task }), count),
    ]);
    rows[name] = await besidePeers({
      rounds: 5,
      samples: 3,
      ours: () => cpu(() => cluster.run(task, [value]), count),
      peers: Object.fromEntries(peers),
    });
  }
}
for (const pool of Object.values(pools)) await pool.destroy();
await cluster.close();
report(rows);
