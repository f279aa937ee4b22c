// Kills a given number of workers, spread evenly over the training steps.

import { createRandom } from './random.mjs';
import { crash } from './tasks.mjs';

/** @typedef {import('allstop/cluster').ClusterCoordinator} ClusterCoordinator */

/** @param {ClusterCoordinator} cluster
 * @param {{ kill: number, steps: number, seed: number, isolation: 'thread' | 'process' | 'nats' }} options
 * @param {{ kills: number[], seconds: () => number }} history
 */
export function createKiller(cluster, { kill, steps, seed, isolation }, history) {
  const random = createRandom(seed);
  /** @type {Set<number>} */
  const pids = new Set();

  /** A worker thread has to end itself: the thread that takes this function ends. */
  const killThread = async () => {
    await cluster.schedule(crash);
    return true;
  };

  /** Kills a worker process of this machine. Returns false if all are dead already. */
  const killProcess = () => {
    const living = cluster.workers.filter(({ state, pid }) => state !== 'lost' && !pids.has(pid));
    const victim = living[Math.floor(random() * living.length)];
    if (victim === undefined) return false;
    pids.add(victim.pid);
    process.kill(victim.pid, 'SIGKILL');
    return true;
  };

  return {
    /** @param {number} step the step that is about to begin */
    async tick(step) {
      const { kills } = history;
      if (kills.length === kill || step < ((kills.length + 1) * steps) / (kill + 1)) return;
      kills.push(history.seconds());
      const hasKilled = isolation === 'thread' ? await killThread() : killProcess();
      if (!hasKilled) kills.pop();
    },
  };
}
