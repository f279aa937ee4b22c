// A process whose cluster runs a function that computes when it is stopped, with exitAfterStop.
// argv: the isolation; 'ended' if the worker is ended by force before the process; 'of another' if
// another coordinator is stopped, and the function is called after that; else 'left'.
import { Coordinator } from 'allstop';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { say } from './say.mjs';

const [isolation, end] = process.argv.slice(2);
const module = new URL('./cluster-tasks.mjs', import.meta.url);
const strategy = new LocalStrategy({ module, workers: 2, isolation });
const cancelGraceMs = end === 'ended' ? 0 : 60_000;
const cluster = new ClusterCoordinator(strategy, { cancelGraceMs });
const stopped = end === 'of another' ? new Coordinator() : cluster.coordinator;
stopped.exitAfterStop(end === 'ended' ? 1_500 : 200);
const spin = () =>
  new Promise((resolve) => {
    void cluster.run('announceAndSpin', [], { onProgress: resolve }).catch(() => {});
  });
await cluster.run('add', [1, 2]);
setInterval(() => {}, 60_000);
if (stopped === cluster.coordinator) await spin();
stopped.requestStop();
if (stopped !== cluster.coordinator) await spin();
say('stopped');
