// The functions of the workers: each worker imports this module, and its exports can be scheduled.

import { currentCall } from 'allstop/cluster';
import { training, validation } from './data.mjs';
import * as model from './model.mjs';
import { createRandom, shuffle } from './random.mjs';

/** @typedef {import('./data.mjs').Example} Example */
/** @typedef {import('allstop/cluster').Variable<Float64Array>} Variable */

/** The data set of a worker: endless mini-batches, in another order for each epoch and each worker.
 * @param {number} seed
 * @param {number} batchSize
 * @returns {Iterable<Example[]>} */
export function miniBatches(seed, batchSize) {
  const random = createRandom(seed + currentCall().workerIndex);
  return (function* () {
    for (;;) {
      const epoch = shuffle([...training], random);
      for (let at = 0; at < epoch.length; at += batchSize) yield epoch.slice(at, at + batchSize);
    }
  })();
}

/** Adds to the parameters. If it is run again, because its worker died, that counts once.
 * @param {Variable} parameters
 * @param {AsyncIterator<Example[]>} batches the data set of the worker that runs the function
 * @param {number} rate
 * @returns {Promise<number>} the loss before */
export async function descend(parameters, batches, rate) {
  const { loss, gradient } = await gradientStep(await parameters.read(), batches);
  await parameters.assignAdd(gradient.map((slope) => -rate * slope));
  return loss;
}

/** @param {Float64Array} parameters
 * @param {AsyncIterator<Example[]>} batches the data set of the worker that runs the function */
async function gradientStep(parameters, batches) {
  const { value } = await batches.next();
  return model.lossAndGradient(parameters, value);
}

/** @param {Float64Array} parameters */
export function validate(parameters) {
  return model.evaluate(parameters, validation);
}

/** Ends the thread that runs it, but only at the first attempt: a function whose worker dies is run
 * again on another worker, and would end all workers one by one. */
export function crash() {
  if (currentCall().attempt === 1) process.exit(1);
}
