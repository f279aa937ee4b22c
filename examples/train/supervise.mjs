// A small supervisor: starts the program, kills it at random as often as it was told, and starts it
// again, as systemd or Kubernetes would.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createRandom } from './random.mjs';

const SUPERVISED = 'TRAIN_SUPERVISED';

/** What the supervisor tells the program that it has started; undefined without a supervisor.
 * @returns {{ began: number, restarts: number[] } | undefined} */
export function supervision() {
  const text = process.env[SUPERVISED];
  return text === undefined ? undefined : JSON.parse(text);
}

/** @param {string} program
 * @param {{ killCoordinator: number, steps: number, seed: number }} options
 * @returns {Promise<number>} the exit code */
export async function supervise(program, { killCoordinator, steps, seed }) {
  const random = createRandom(seed + 1);
  /** @type {number[]} */
  const killAt = Array.from({ length: killCoordinator }, () => Math.ceil(random() * (steps - 1)));
  killAt.sort((one, other) => one - other);
  const began = Date.now();
  /** @type {number[]} */
  const restarts = [];
  // Ctrl-C goes to the program, too, which ends in order; then so does the supervisor.
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, () => {});
  for (;;) {
    const env = { ...process.env, [SUPERVISED]: JSON.stringify({ began, restarts }) };
    const child = fork(program, process.argv.slice(2), { env });
    child.on('message', ({ step }) => {
      if (child.killed || step < (killAt[restarts.length] ?? Infinity)) return;
      child.kill('SIGKILL');
    });
    const [code] = await once(child, 'exit');
    if (!child.killed) return code ?? 1;
    restarts.push(Date.now());
  }
}
