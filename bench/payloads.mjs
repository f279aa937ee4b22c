/** Real arguments and results on one worker thread: processor time of the whole process for a call. */

import { fileURLToPath } from 'node:url';
import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { fetchPeers, importPeer } from './peers.mjs';
import { alone, inTurn, quick, report } from './rounds.mjs';

const tasks = new URL('cluster-peers/payloads.mjs', import.meta.url);
const size = { minThreads: 1, maxThreads: 1 };
const objects = (count) =>
  Array.from({ length: count }, (_, id) => ({ id, name: `user${id}`, tags: ['a', 'b'] }));

/** For each payload its value, and how many calls there are at once. */
const payloads = {
  'a small object': [{ id: 1, name: 'user1' }, 2_000],
  '100 objects': [objects(100), 200],
  '10,000 objects': [objects(10_000), 6],
  'a million numbers': [Array.from({ length: 1_000_000 }, () => 7), 2],
  'a buffer of 1 MB': [new Uint8Array(1_000_000), 30],
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

const rows = [];
if (quick) {
  const ours = () => cpu(() => cluster.run('size', [payloads['100 objects'][0]]), 10);
  rows.push({
    what: 'cluster, an argument of 100 objects',
    unit: 'µs',
    ours: await alone({ rounds: 2, samples: 3, ours }),
  });
} else {
  fetchPeers();
  for (const [peerName, name] of [
    ['Piscina', 'piscina'],
    ['tinypool', 'tinypool'],
  ]) {
    const Pool = await importPeer(name);
    const pool = new Pool({ filename: fileURLToPath(tasks), ...size });
    for (const [what, task] of [
      ['argument', 'size'],
      ['result', 'echo'],
    ]) {
      for (const [payload, [value, count]] of Object.entries(payloads)) {
        const ours = () => cpu(() => cluster.run(task, [value]), count);
        const peer = () => cpu(() => pool.run(value, { name: task }), count);
        rows.push({
          what: `cluster, CPU of a call: ${payload} as ${what === 'result' ? 'argument and result' : what}`,
          unit: 'µs',
          peerName,
          goal: { ratio: 1 },
          ...(await inTurn({ rounds: 7, samples: 3, ours, peer })),
        });
      }
    }
    await pool.destroy();
  }
}
await cluster.close();
report(rows);
