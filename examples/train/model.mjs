// A perceptron with one hidden layer: tanh, then softmax with cross-entropy loss. All parameters
// are in one array, so that they, and their gradient, are sent as one value.

import { createRandom } from './random.mjs';

/** @typedef {import('./data.mjs').Example} Example */

const INPUTS = 4;
const HIDDEN = 8;
const CLASSES = 3;
const SIZE = HIDDEN * (INPUTS + 1) + CLASSES * (HIDDEN + 1);

/** The layers as views of the array: the weights row by row, then the biases.
 * @param {Float64Array} all parameters, or their gradient */
function split(all) {
  let from = 0;
  /** @param {number} length */
  const next = (length) => all.subarray(from, (from += length));
  return {
    hiddenWeights: next(HIDDEN * INPUTS),
    hiddenBiases: next(HIDDEN),
    outputWeights: next(CLASSES * HIDDEN),
    outputBiases: next(CLASSES),
  };
}

/** Initial parameters: small random weights (Glorot's), biases of 0.
 * @param {number} seed */
export function initialParameters(seed) {
  const random = createRandom(seed);
  const parameters = new Float64Array(SIZE);
  const { hiddenWeights, outputWeights } = split(parameters);
  for (const [weights, ends] of [
    [hiddenWeights, INPUTS + HIDDEN],
    [outputWeights, HIDDEN + CLASSES],
  ]) {
    const limit = Math.sqrt(6 / ends);
    for (let i = 0; i < weights.length; i += 1) weights[i] = (2 * random() - 1) * limit;
  }
  return parameters;
}

/** weights · inputs + biases
 * @param {Float64Array} weights
 * @param {Float64Array} biases
 * @param {ArrayLike<number>} inputs */
function affine(weights, biases, inputs) {
  return biases.map((bias, row) => {
    let sum = bias;
    for (let i = 0; i < inputs.length; i += 1) sum += weights[row * inputs.length + i] * inputs[i];
    return sum;
  });
}

/** @param {Float64Array} values */
function softmax(values) {
  const largest = Math.max(...values); // subtracted, so that exp() does not overflow
  const powers = values.map((value) => Math.exp(value - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** @param {ReturnType<typeof split>} layers
 * @param {number[]} features */
function forward(layers, features) {
  const hidden = affine(layers.hiddenWeights, layers.hiddenBiases, features).map(Math.tanh);
  return {
    hidden,
    probabilities: softmax(affine(layers.outputWeights, layers.outputBiases, hidden)),
  };
}

/** Adds the outer product of a layer's errors and inputs to its gradient.
 * @param {Float64Array} weights
 * @param {Float64Array} biases
 * @param {Float64Array} errors
 * @param {ArrayLike<number>} inputs */
function accumulate(weights, biases, errors, inputs) {
  for (let row = 0; row < errors.length; row += 1) {
    biases[row] += errors[row];
    for (let i = 0; i < inputs.length; i += 1) {
      weights[row * inputs.length + i] += errors[row] * inputs[i];
    }
  }
}

/** The mean loss of some examples, and its gradient by the parameters.
 * @param {Float64Array} parameters
 * @param {Example[]} examples */
export function lossAndGradient(parameters, examples) {
  const layers = split(parameters);
  const gradient = new Float64Array(SIZE);
  const slopes = split(gradient);
  let loss = 0;
  for (const { features, label } of examples) {
    const { hidden, probabilities } = forward(layers, features);
    loss -= Math.log(probabilities[label]);
    const outputErrors = probabilities.map((p, i) => (i === label ? p - 1 : p));
    const hiddenErrors = hidden.map((value, i) => {
      let sum = 0;
      for (let row = 0; row < CLASSES; row += 1) {
        sum += outputErrors[row] * layers.outputWeights[row * HIDDEN + i];
      }
      return sum * (1 - value * value);
    });
    accumulate(slopes.outputWeights, slopes.outputBiases, outputErrors, hidden);
    accumulate(slopes.hiddenWeights, slopes.hiddenBiases, hiddenErrors, features);
  }
  return {
    loss: loss / examples.length,
    gradient: gradient.map((slope) => slope / examples.length),
  };
}

/** @param {Float64Array} parameters
 * @param {Example[]} examples */
export function evaluate(parameters, examples) {
  const layers = split(parameters);
  let loss = 0;
  let correct = 0;
  for (const { features, label } of examples) {
    const { probabilities } = forward(layers, features);
    loss -= Math.log(probabilities[label]);
    if (probabilities.indexOf(Math.max(...probabilities)) === label) correct += 1;
  }
  return { loss: loss / examples.length, accuracy: correct / examples.length };
}
