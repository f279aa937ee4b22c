/**
 * The latency of `run` under load: functions of 100 µs that are due at random moments, at a
 * rate that keeps two workers half busy, beside Piscina. A latency counts from the moment at which
 * the call was due.
 */

import { fileURLToPath } from 'node:url';
import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { fetchPeers, importPeer } from './peers.mjs';
import { besidePeers, quick, report } from './rounds.mjs';
import { quantile } from './statistics.mjs';

const WORKERS = 2;
const RATE = 3_000; // calls a second
const CALLS = quick ? 100 : 9_000;
const QUANTILES = { p50: 0.5, p99: 0.99, p999: 0.999 };
const module = new URL('cluster-peers/spin.mjs', import.meta.url);

const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: WORKERS }));
await cluster.ready();
const runs = { ours: () => cluster.run('spin', [100]) };
let piscina;
if (!quick) {
  fetchPeers();
  const Piscina = await importPeer('piscina');
  const size = { minThreads: WORKERS, maxThreads: WORKERS };
  piscina = new Piscina({ filename: fileURLToPath(module), ...size });
  runs.piscina = () => piscina.run(100, { name: 'spin' });
}

/** The same moments for all: exponential gaps from a fixed seed. */
function dueTimes() {
  let seed = 1;
  const random = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return (seed + 1) / 2 ** 32;
  };
  let at = 0;
  return Array.from({ length: CALLS }, () => {
    at -= (Math.log(random()) / RATE) * 1_000;
    return at;
  });
}

const due = dueTimes();
async function latencies(run) {
  const found = [];
  const pending = [];
  const start = performance.now();
  for (let next = 0; next < CALLS; ) {
    const elapsed = performance.now() - start;
    for (; next < CALLS && due[next] <= elapsed; next++) {
      const dueAt = start + due[next];
      pending.push(run().then(() => found.push((performance.now() - dueAt) * 1_000)));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pending);
  return found;
}

const values = {};
const measure = (name) => async () => {
  const found = await latencies(runs[name]);
  for (const [key, q] of Object.entries(QUANTILES)) {
    values[key] ??= { ours: [], piscina: [] };
    values[key][name].push(quantile(found, q));
  }
  return 0;
};
await latencies(runs.ours);
const peers = quick ? {} : { piscina: measure('piscina') };
await besidePeers({ rounds: 7, samples: 1, warmUp: 0, ours: measure('ours'), peers });
await cluster.close();
await piscina?.destroy();
const row = ({ ours, piscina: peer }) => ({ ours, peer: quick ? undefined : peer });
report(
  Object.fromEntries(Object.keys(values).map((key) => [`pool/latency-${key}`, row(values[key])])),
);
