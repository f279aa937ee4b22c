// A cluster's coordinator that a newer coordinator of the same cluster replaces. argv: the NATS
// servers, and the socket path of support/visits.ts.
import { ClusterCoordinator } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { say } from './say.mjs';

const [servers, path] = process.argv.slice(2);
const module = new URL('../../fixtures/cluster-nats-faults.mjs', import.meta.url);
const cluster = new ClusterCoordinator(new NatsStrategy({ module, servers, cluster: 'test' }));
const value = await cluster.schedule('hold', [path, 'old']);
say('scheduled');
const codes = {};
for (const [name, call] of Object.entries({
  fetch: () => value.fetch(),
  schedule: () => cluster.schedule('square', [1]),
  join: () => cluster.join(),
  done: () => cluster.done(),
})) {
  codes[name] = await call().then(
    (result) => String(result),
    (error) => error.code,
  );
}
say('superseded', codes);
await cluster.close();
