// What the workers can do: the exports of this module, which each of them imports.

import { currentTask } from 'allstop/cluster';
import { training, validation } from './data.mjs';
import * as model from './model.mjs';
import { createRandom, shuffle } from './random.mjs';

/** @typedef {import('./data.mjs').Example} Example */

/** A worker's data set: mini-batches without end, each epoch in another order, which is
 * the worker's own.
 * @param {number} seed
 * @param {number} batchSize
 * @returns {Iterable<Example[]>} */
export function miniBatches(seed, batchSize) {
  const random = createRandom(seed + currentTask().workerIndex);
  return (function* () {
    for (;;) {
      const epoch = shuffle([...training], random);
      for (let at = 0; at < epoch.length; at += batchSize) yield epoch.slice(at, at + batchSize);
    }
  })();
}

/** @param {Float64Array} parameters
 * @param {AsyncIterator<Example[]>} batches of the worker that this runs on */
export async function gradientStep(parameters, batches) {
  const { value } = await batches.next();
  return model.lossAndGradient(parameters, value);
}

/** @param {Float64Array} parameters */
export function validate(parameters) {
  return model.evaluate(parameters, validation);
}

/** Ends the thread that it runs on. Only at the first attempt: a function whose worker dies
 * is run again, and would end one after the other. */
export function crash() {
  if (currentTask().attempt === 1) process.exit(1);
}
