// Asynchronous stochastic gradient descent, as in parameter-server training: the workers have the
// data, and update the parameters.

import { LooperThread } from 'allstop';
import { Checkpoint } from 'allstop/cluster';
import { initialParameters } from './model.mjs';
import { descend, miniBatches, validate } from './tasks.mjs';

const BATCH_SIZE = 16;
const LEARNING_RATE = 0.05;
/**
 * The steps in flight for each worker: more than one, so that no worker waits for its next step.
 */
const STEPS_AHEAD = 2;
const POINTS = 100; // in the plot
/** What a program that is killed loses, at most. */
const CHECKPOINT_MS = 500;

/** @typedef {import('allstop/cluster').ClusterCoordinator} ClusterCoordinator */
/** @typedef {import('./options.mjs').Options} Options */

/**
 * Trains the network. Rejects with the error that stopped the cluster, if there was one.
 *
 * @param {ClusterCoordinator} cluster
 * @param {Options} options
 * @param {ReturnType<import('./history.mjs').createHistory>} history
 * @param {{ tick: (step: number) => Promise<void> }} killer
 * @param {{ at: number, step: number } | undefined} end of the program that this one goes on for
 * @param {(step: number, loss: number) => void} onStep
 */
export async function train(cluster, options, history, killer, end, onStep) {
  const { workers, steps, seed, checkpoints, isolation } = options;
  const parameters = await cluster.variable('parameters', initialParameters(seed));
  let isOver = false;
  /** @type {Promise<void> | undefined} */
  let saving;
  if (checkpoints !== undefined) {
    const checkpoint = new Checkpoint(cluster, {
      ...(isolation === 'nats' ? { bucket: checkpoints } : { directory: checkpoints }),
      state: () => history.save(),
      load: (saved) => history.restore(/** @type {any} */ (saved)),
    });
    await checkpoint.restoreLatest();
    LooperThread.loop(cluster.coordinator, CHECKPOINT_MS, async () => {
      if (!isOver) await (saving = checkpoint.save(history.applied));
    });
  }
  if (end !== undefined) history.goOn(end);
  const batches = cluster.createPerWorkerDataset(miniBatches, [seed, BATCH_SIZE]).iterator();
  const window = Math.ceil(steps / POINTS);
  let begun = history.applied;

  const observe = async () => {
    history.points.push({
      seconds: history.seconds(),
      loss: history.lossOfWindow / window,
      of: 'training',
    });
    history.lossOfWindow = 0;
    const validated = await cluster.schedule(validate, [await parameters.read()]);
    const { loss } = await validated.fetch();
    history.points.push({ seconds: history.seconds(), loss, of: 'validation' });
  };

  // Steps begin while others change the parameters: that is what makes the training asynchronous.
  const go = async () => {
    while (begun < steps) {
      begun += 1;
      await killer.tick(begun);
      const step = await cluster.schedule(descend, [parameters, batches, LEARNING_RATE]);
      const loss = await step.fetch();
      history.applied += 1;
      history.lossOfWindow += loss;
      history.count(cluster.workers);
      onStep(history.applied, loss);
      if (history.applied % window === 0) await observe();
    }
  };
  await Promise.all(Array.from({ length: workers * STEPS_AHEAD }, go));
  await cluster.join();
  isOver = true;
  await saving; // before the cluster is closed, when a save fails

  const validated = await cluster.schedule(validate, [await parameters.read()]);
  const replaced = cluster.workers.reduce((sum, { restarts }) => sum + restarts, 0);
  history.points.sort((a, b) => a.seconds - b.seconds);
  return { replaced, ...(await validated.fetch()) };
}
