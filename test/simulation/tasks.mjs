/** The functions of the simulated cluster: each tells the history when it begins and ends. */

import { tell } from './history.mjs';

/** The package under test: the simulation has put it here. */
const { currentCall } = globalThis[Symbol.for('allstop:simulation')];

const sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    setTimeout(resolve, ms);
    signal.addEventListener('abort', () => reject(signal.reason));
  });

/** Takes `ms`, and gives the square of the number. */
export async function square({ id, number, ms }) {
  const { attempt, signal } = currentCall();
  tell('begins', { id, attempt });
  await sleep(ms, signal);
  tell('ends', { id, attempt });
  return number * number;
}

/** Ends the process of its worker, whenever it runs. */
export async function poison({ id }) {
  const { attempt } = currentCall();
  tell('begins', { id, attempt });
  globalThis[Symbol.for('allstop:simulation')].crashHere();
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
