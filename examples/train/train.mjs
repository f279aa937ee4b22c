// Asynchronous stochastic gradient descent, as in parameter-server training: the coordinator has
// the parameters, the workers have the data.

import { initialParameters } from './model.mjs';
import { gradientStep, miniBatches, validate } from './tasks.mjs';

const BATCH_SIZE = 16;
const LEARNING_RATE = 0.05;
/**
 * The steps in flight for each worker: more than one, so that no worker waits for its next step.
 */
const STEPS_AHEAD = 2;
const POINTS = 100; // in the plot

/** @typedef {import('allstop/cluster').ClusterCoordinator} ClusterCoordinator */
/** @typedef {import('./plot.mjs').Point} Point */

/**
 * Trains the network. Rejects with the error that stopped the cluster, if there was one.
 *
 * @param {ClusterCoordinator} cluster
 * @param {{ workers: number, steps: number, seed: number }} options
 * @param {{ tick: (step: number) => Promise<void> }} killer
 * @param {(step: number, loss: number) => void} onStep
 */
export async function train(cluster, { workers, steps, seed }, killer, onStep) {
  const parameters = initialParameters(seed);
  const batches = cluster.createPerWorkerDataset(miniBatches, [seed, BATCH_SIZE]).iterator();
  /** @type {Point[]} */
  const points = [];
  const window = Math.ceil(steps / POINTS);
  let begun = 0;
  let applied = 0;
  let lossOfWindow = 0;

  /** @param {{ loss: number, gradient: Float64Array }} result */
  const apply = ({ loss, gradient }) => {
    for (let i = 0; i < parameters.length; i += 1) parameters[i] -= LEARNING_RATE * gradient[i];
    applied += 1;
    lossOfWindow += loss;
    onStep(applied, loss);
  };

  const observe = async () => {
    const step = applied;
    points.push({ step, loss: lossOfWindow / window, of: 'training' });
    lossOfWindow = 0;
    const validated = await cluster.schedule(validate, [parameters]);
    points.push({ step, loss: (await validated.fetch()).loss, of: 'validation' });
  };

  // Each step starts with a copy of the parameters as they are now, while other steps change them:
  // that is what makes the training asynchronous. Whichever worker runs the function, and however
  // often it is retried, the RemoteValue has one gradient, which is applied once.
  const descend = async () => {
    while (begun < steps) {
      begun += 1;
      await killer.tick(begun);
      const result = await cluster.schedule(gradientStep, [parameters, batches]);
      apply(await result.fetch());
      if (applied % window === 0) await observe();
    }
  };
  await Promise.all(Array.from({ length: workers * STEPS_AHEAD }, descend));
  await cluster.join();

  const validated = await cluster.schedule(validate, [parameters]);
  const replaced = cluster.workers.reduce((sum, { restarts }) => sum + restarts, 0);
  points.sort((a, b) => a.step - b.step); // validations may end in another order
  return { points, replaced, ...(await validated.fetch()) };
}
