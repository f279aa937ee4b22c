// Where the parameters are: in a variable that the workers update, or, over NATS, in the coordinator.

import { initialParameters } from './model.mjs';
import { descend, gradientStep } from './tasks.mjs';

const LEARNING_RATE = 0.05;

/** @typedef {import('allstop/cluster').ClusterCoordinator} ClusterCoordinator */

/** `step` makes one step on any worker, and gives the loss before it. `own` is what a checkpoint
 * has to save besides the variables.
 *
 * @typedef {{ step: (batches: object) => Promise<number>, read: () => Promise<Float64Array>,
 *   own: Float64Array | undefined, restore: (own: Float64Array | undefined) => void }} Parameters */

/** @param {ClusterCoordinator} cluster
 * @param {{ isolation: 'thread' | 'process' | 'nats', seed: number }} options
 * @returns {Promise<Parameters>} */
export async function createParameters(cluster, { isolation, seed }) {
  const initial = initialParameters(seed);
  if (isolation === 'nats') return ownParameters(cluster, initial);
  const variable = await cluster.variable('parameters', initial);
  return {
    own: undefined,
    restore: () => {},
    read: () => variable.read(),
    step: async (batches) => {
      return await (await cluster.schedule(descend, [variable, batches, LEARNING_RATE])).fetch();
    },
  };
}

/** Each step starts with a copy of the parameters as they are now. Whichever worker runs it, and
 * however often, the RemoteValue has one gradient, which is applied once.
 * @param {ClusterCoordinator} cluster
 * @param {Float64Array} own
 * @returns {Parameters} */
function ownParameters(cluster, own) {
  return {
    own,
    restore: (saved) => own.set(saved ?? own),
    read: async () => own,
    step: async (batches) => {
      const result = await cluster.schedule(gradientStep, [own, batches]);
      const { loss, gradient } = await result.fetch();
      for (let i = 0; i < own.length; i += 1) own[i] -= LEARNING_RATE * gradient[i];
      return loss;
    },
  };
}
