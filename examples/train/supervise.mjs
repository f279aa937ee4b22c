// A small supervisor: starts the program, kills it at random as often as it was told, and starts it
// again, as systemd or Kubernetes would; also when a parameter server was lost.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { startNodes } from './nodes.mjs';
import { createRandom } from './random.mjs';

const SUPERVISED = 'TRAIN_SUPERVISED';
/** The exit code of a program that has lost a parameter server: as in sysexits.h, "try again". */
export const TRY_AGAIN = 75;

/** What the supervisor tells the program that it has started. `end`: of the program before it.
 * @typedef {import('./history.mjs').Known & { servers?: string,
 *   end?: { at: number, step: number } }} Supervision */

/** @returns {Supervision | undefined} undefined without a supervisor */
export function supervision() {
  const text = process.env[SUPERVISED];
  return text === undefined ? undefined : JSON.parse(text);
}

/** @param {import('./options.mjs').Options} options */
export function needsSupervisor({ isolation, servers, killCoordinator }) {
  return killCoordinator > 0 || (isolation === 'nats' && servers === undefined);
}

/** The steps at which somebody is killed. @param {() => number} random */
function killSteps(random, count, steps) {
  const at = Array.from({ length: count }, () => Math.ceil(random() * (steps - 1)));
  return at.toSorted((one, other) => one - other);
}

/** @param {string} program
 * @param {import('./options.mjs').Options} options
 * @returns {Promise<number>} the exit code */
export async function supervise(program, options) {
  const { steps, seed, workers, isolation } = options;
  const random = createRandom(seed + 1);
  const coordinatorDies = killSteps(random, options.killCoordinator, steps);
  const serverDies = killSteps(random, options.killServer, steps);
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child;
  // The program ends in order; then so does the supervisor. Ctrl-C goes to both.
  process.on('SIGINT', () => {});
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => child?.kill(signal));
  }
  /** @type {Error | undefined} */
  let failure;
  const onFailure = (error) => {
    failure ??= error;
    child?.kill();
  };
  const isLocal = isolation === 'nats' && options.servers === undefined;
  const nodes = isLocal ? await startNodes(workers, onFailure) : undefined;
  /** @type {Supervision} */
  const known = { began: Date.now(), deaths: [], restarts: [] };
  if (nodes !== undefined) known.servers = nodes.servers;
  try {
    for (;;) {
      const env = { ...process.env, [SUPERVISED]: JSON.stringify(known) };
      child = fork(program, process.argv.slice(2), { env });
      let last = 0;
      let isKilled = false;
      child.on('message', ({ step, death, restart }) => {
        if (death !== undefined) known.deaths.push(death);
        if (restart !== undefined) known.restarts.push(restart);
        if (step === undefined || isKilled) return;
        last = step;
        if (step >= (serverDies[0] ?? Infinity)) {
          serverDies.shift();
          const server = /** @type {const} */ ({ of: 'server', at: Date.now() });
          known.deaths.push(server);
          child?.send({ death: server }, () => {}); // it may have ended
          nodes?.killServer();
        }
        if (step >= (coordinatorDies[0] ?? Infinity)) {
          coordinatorDies.shift();
          known.deaths.push({ of: 'coordinator', at: Date.now() });
          isKilled = true;
          child?.kill('SIGKILL');
        }
      });
      const [code] = await once(child, 'close');
      if (failure !== undefined) throw failure;
      if (!isKilled && code !== TRY_AGAIN) return code ?? 1;
      const fatal = known.deaths.findLast(({ of }) => of === (isKilled ? 'coordinator' : 'ps'));
      known.end = { at: fatal?.at ?? Date.now(), step: last };
    }
  } finally {
    await nodes?.close();
  }
}
