// Kills a worker that runs nothing. Nothing else keeps this process alive meanwhile.
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { killWorker } from 'allstop/testing';
import { say } from './say.mjs';

const [isolation] = process.argv.slice(2);
const module = new URL('../../fixtures/cluster-tasks.mjs', import.meta.url);
const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 1, isolation }));
await cluster.ready();
const { worker } = await killWorker(cluster, { worker: 0 });
say('killed', { worker });
