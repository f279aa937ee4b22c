// A process whose cluster runs a function that computes when it is stopped, with exitAfterStop.
// argv: the isolation; 'ended' if the worker is ended by force before the process, else 'left'; the
// name of the function.
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { say } from './say.mjs';

const [isolation, end, name = 'announceAndSpin'] = process.argv.slice(2);
const module = new URL('./cluster-tasks.mjs', import.meta.url);
const strategy = new LocalStrategy({ module, workers: 2, isolation });
const cancelGraceMs = end === 'ended' ? 0 : 60_000;
const cluster = new ClusterCoordinator(strategy, { cancelGraceMs });
cluster.coordinator.exitAfterStop(end === 'ended' ? 1_500 : 500);
const begun = new Promise((resolve) => {
  void cluster.run(name, [], { onProgress: resolve }).catch(() => {});
});
await cluster.run('add', [1, 2]);
await begun;
setInterval(() => {}, 60_000);
cluster.coordinator.requestStop();
say('stopped');
