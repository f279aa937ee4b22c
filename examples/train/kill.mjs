// Kills workers and parameter servers, a given number of each, spread evenly over the training steps.

import { createRandom } from './random.mjs';
import { crash } from './tasks.mjs';

/** @typedef {import('allstop/cluster').ClusterCoordinator} ClusterCoordinator */

/** @param {ClusterCoordinator} cluster
 * @param {import('./options.mjs').Options} options
 * @param {ReturnType<import('./history.mjs').createHistory>} history
 */
export function createKiller(cluster, { kill, killPs, steps, seed, isolation }, history) {
  const random = createRandom(seed);
  /** @type {Set<number>} */
  const pids = new Set();

  /** A worker thread has to end itself: the thread that takes this function ends. */
  const killThread = async () => {
    history.killed('worker');
    await cluster.schedule(crash);
  };

  /** Kills a process of this machine, unless all of that job are dead already.
   * @param {'worker' | 'ps'} job */
  const killProcess = (job) => {
    const living = cluster.workers.filter(
      (each) => each.job === job && each.state !== 'lost' && !pids.has(each.pid),
    );
    const victim = living[Math.floor(random() * living.length)];
    if (victim === undefined) return;
    pids.add(victim.pid);
    history.killed(job);
    process.kill(victim.pid, 'SIGKILL');
  };

  /** @param {'worker' | 'ps'} job @param {number} kills @param {number} step */
  const isDue = (job, kills, step) => {
    const before = history.deathsOf(job);
    // In the middle of the n-th part: workers and parameter servers do not die at the same step.
    const part = job === 'ps' ? (before + 0.5) / kills : (before + 1) / (kills + 1);
    return before < kills && step >= part * steps;
  };

  return {
    /** @param {number} step the step that is about to begin */
    async tick(step) {
      if (isDue('worker', kill, step)) {
        if (isolation === 'thread') await killThread();
        else killProcess('worker');
      }
      if (isDue('ps', killPs, step)) killProcess('ps');
    },
  };
}
