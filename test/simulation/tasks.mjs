/** The functions of the simulated cluster: each tells the history when it begins and ends. */

import { history, tell } from './history.mjs';

/** The package under test: the simulation has put it here. */
const { coordinator, crashHere, currentCall } = globalThis[Symbol.for('allstop:simulation')];

const sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    setTimeout(resolve, ms);
    signal.addEventListener('abort', () => reject(signal.reason));
  });

/** Takes `ms`, and gives the square of the number. `needs`: what it has of a resource meanwhile. */
export async function square({ id, number, ms, needs }) {
  const { attempt, signal } = currentCall();
  tell('begins', { id, attempt, needs });
  try {
    await sleep(ms, signal);
  } finally {
    if (needs !== undefined) tell('frees', { id });
  }
  tell('ends', { id, attempt });
  return number * number;
}

/** Under a name of its own: so the coordinator knows that it is short. */
export const brief = square;

/** Takes `ms`, or less if its worker is about to leave. */
export async function patient({ id, number, ms }) {
  const { attempt, signal, leaving } = currentCall();
  tell('begins', { id, attempt });
  await new Promise((resolve) => {
    setTimeout(resolve, ms);
    signal.addEventListener('abort', resolve);
    const hear = () => {
      tell('hears', { id });
      resolve();
    };
    if (leaving.aborted) hear();
    leaving.addEventListener('abort', hear);
  });
  tell('ends', { id, attempt });
  return number;
}

/** Takes `ms`, and gives back the bytes. */
export async function echo({ id, ms, bytes }) {
  const { attempt, signal } = currentCall();
  tell('begins', { id, attempt });
  await sleep(ms, signal);
  tell('ends', { id, attempt });
  return bytes;
}

/** Fails after `ms`. */
export async function fail({ id, ms }) {
  const { attempt, signal } = currentCall();
  tell('begins', { id, attempt });
  await sleep(ms, signal);
  tell('ends', { id, attempt });
  throw new RangeError(id);
}

/** Stops the cluster. */
export async function stop({ id }) {
  const { attempt, signal } = currentCall();
  tell('begins', { id, attempt });
  tell('stops', { id });
  coordinator().requestStop(new RangeError(id));
  await sleep(60_000, signal);
}

/** A data set: numbered items of this generator alone. */
export function* numbers({ count }) {
  const made = `d${history().length}`;
  tell('makes', { made });
  try {
    for (let number = 0; number < count; number += 1) yield { made, number };
  } finally {
    tell('returns', { made });
  }
}

/** Takes the next item of its worker's iterator. */
export async function draw({ id }, iterator) {
  tell('begins', { id, attempt: currentCall().attempt });
  const { value, done } = await iterator.next();
  if (!done) tell('draws', { id, ...value });
}

/** Ends the process of its worker, whenever it runs. */
export async function poison({ id }) {
  const { attempt } = currentCall();
  tell('begins', { id, attempt });
  crashHere();
  await new Promise(() => {});
}

/** Adds one to the variable. */
export async function add({ id, name, ms }) {
  const { attempt, signal } = currentCall();
  tell('begins', { id, attempt });
  await currentCall().variable(name).assignAdd(1);
  await sleep(ms, signal);
  tell('ends', { id, attempt });
}
