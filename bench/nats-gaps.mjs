/**
 * Functions over NATS while a node's connection is away, its process is stopped, or the coordinator
 * is cut off, for 5 s each: how many were begun again.
 */

import { fileURLToPath } from 'node:url';
import { ClusterCoordinator } from '../dist/cluster/index.js';
import { NatsStrategy } from '../dist/nats/index.js';
import { openLink } from './link.mjs';
import { quick, report, sleep } from './rounds.mjs';
import { startNats, worker } from './servers.mjs';

const GAP_MS = quick ? 200 : 5_000;
const FUNCTION_MS = GAP_MS + (quick ? 400 : 4_000);
const module = new URL('nats-tasks.mjs', import.meta.url);
const path = fileURLToPath(module);
const servers = await startNats();

/** Runs a function meanwhile; returns in how many attempts it ended, less one. */
async function during(name, prepare) {
  const { through = servers, workerThrough = servers, begin, end } = await prepare();
  const node = await worker(path, workerThrough, name);
  const cluster = new ClusterCoordinator(
    new NatsStrategy({ module, servers: through, cluster: name, minWorkers: 1 }),
  );
  await cluster.ready();
  const attempt = cluster.run('nap', [FUNCTION_MS]);
  await sleep(quick ? 100 : 1_000);
  begin(node);
  await sleep(GAP_MS);
  end(node);
  const again = (await attempt) - 1;
  await cluster.close();
  return again;
}

const cases = {
  async connection() {
    const link = await openLink(servers);
    return { workerThrough: link.address, begin: link.cut, end: link.restore };
  },
  stopped: () => ({
    begin: (node) => node.kill('SIGSTOP'),
    end: (node) => node.kill('SIGCONT'),
  }),
  async coordinator() {
    const link = await openLink(servers);
    return { through: link.address, begin: link.cut, end: link.restore };
  },
};
// At the same time: they wait most of it.
const found = await Promise.all(
  Object.entries(cases).map(async ([name, prepare]) => [
    `nats/gap-${name}`,
    { ours: [await during(name, prepare)] },
  ]),
);
report(Object.fromEntries(found));
process.exit();
