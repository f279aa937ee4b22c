/**
 * Eight workers read a variable of 40 MB at once, on each strategy: until the last one has it. Beside
 * it, eight threads that copy as many bytes of shared memory at once.
 */

import { fileURLToPath } from 'node:url';
import { ClusterCoordinator, LocalStrategy } from '../dist/cluster/index.js';
import { NatsStrategy } from '../dist/nats/index.js';
import { inTurn, quick, report, wants } from './rounds.mjs';
import { startNats, worker } from './servers.mjs';

const WORKERS = 8;
const FLOATS = quick ? 1_000 : 5_000_000;
const module = new URL('variables-tasks.mjs', import.meta.url);

async function natsStrategy() {
  const servers = await startNats();
  const path = fileURLToPath(module);
  for (let index = 0; index < WORKERS; index++) await worker(path, servers, 'variables');
  await worker(path, servers, 'variables', ['--job', 'ps']);
  return new NatsStrategy({ module, servers, cluster: 'variables', minWorkers: WORKERS });
}

const strategies = {
  threads: () => new LocalStrategy({ module, workers: WORKERS }),
  processes: () => new LocalStrategy({ module, workers: WORKERS, isolation: 'process' }),
  nats: natsStrategy,
};

const threads = new ClusterCoordinator(strategies.threads());
await threads.ready();
const shared = new Float64Array(new SharedArrayBuffer(FLOATS * 8)).fill(1);

/** Milliseconds until each worker has returned from the function, which tells how many floats it has. */
async function onAll(cluster, name, value) {
  const start = process.hrtime.bigint();
  const lengths = await Promise.all(
    Array.from({ length: WORKERS }, (_, index) => cluster.run(name, [value], { worker: index })),
  );
  const ms = Number(process.hrtime.bigint() - start) / 1e6;
  if (lengths.some((length) => length !== FLOATS)) throw new Error(`not all: ${lengths.join()}`);
  return ms;
}

const rows = {};
for (const [name, strategy] of Object.entries(strategies)) {
  const row = `variables/read-${name}`;
  if (!wants(row)) continue;
  const cluster = name === 'threads' ? threads : new ClusterCoordinator(await strategy());
  await cluster.ready({ timeoutMs: 60_000 });
  const parameters = await cluster.variable('parameters', new Float64Array(FLOATS).fill(1));
  rows[row] = await inTurn({
    rounds: 5,
    samples: 1,
    ours: () => onAll(cluster, 'readAll', parameters),
    peer: () => onAll(threads, 'copyAll', shared),
  });
  if (cluster !== threads) await cluster.close();
}
report(rows);
await threads.close();
process.exit(); // ends the servers and the workers, too
