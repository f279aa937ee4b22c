// Reads the command line.

import { statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';

export const USAGE = `Usage: node examples/train/main.mjs [OPTIONS]

Trains a small neural network to tell three species of iris, by asynchronous stochastic
gradient descent on several workers.

  --workers N      the number of workers (default: as many as processors)
  --isolation HOW  thread (default), process, or nats: the workers, a parameter server and
                   a nats-server, which has to be installed, are programs of this machine
  --servers URL    workers elsewhere, of these NATS servers, as many as --workers says;
                   start each by: npx allstop worker --module examples/train/tasks.mjs
                   --cluster train --servers URL
                   and a parameter server by the same with --job ps
  --steps N        the number of steps of gradient descent (default: 2000)
  --kill N         kill a worker at random, N times in all (default: 0)
  --checkpoints DIR   saves the training there twice a second, and goes on from what is there;
                   over NATS the name of an object store in JetStream
  --kill-coordinator N  kill the whole program at random, N times in all, and start it again
                   (default: 0); needs --checkpoints
  --kill-ps N      kill the parameter server, N times in all, and start it and the program again
                   (default: 0); needs --isolation nats and --checkpoints
  --kill-server N  kill the NATS server at random, N times in all, and start it again
                   (default: 0); needs --isolation nats
  --seed N         of the initial parameters, the mini-batches and the kills (default: 1)
  --out FILE       where the plot goes (default: loss.svg)
  --help           this text

Ctrl-C stops it and says what was stopped.`;

/** @typedef {{ workers: number, isolation: 'thread' | 'process' | 'nats', servers?: string,
 *   steps: number, kill: number, killCoordinator: number, killPs: number, killServer: number,
 *   checkpoints?: string, seed: number, out: string }} Options */

/** @param {string} option
 * @param {string} text
 * @param {number} least
 * @param {number} most */
function parseInteger(option, text, least, most = Number.MAX_SAFE_INTEGER) {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
  throw new Error(`--${option} takes an integer ${range}, not '${text}'`);
}

/** @returns {Options | undefined} undefined: the user asks for help */
export function parseCommandLine() {
  const { values } = parseArgs({
    options: {
      workers: { type: 'string', default: `${availableParallelism()}` },
      isolation: { type: 'string', default: 'thread' },
      servers: { type: 'string' },
      steps: { type: 'string', default: '2000' },
      kill: { type: 'string', default: '0' },
      checkpoints: { type: 'string' },
      'kill-coordinator': { type: 'string', default: '0' },
      'kill-ps': { type: 'string', default: '0' },
      'kill-server': { type: 'string', default: '0' },
      seed: { type: 'string', default: '1' },
      out: { type: 'string', default: 'loss.svg' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const { isolation, servers, checkpoints } = values;
  if (isolation !== 'thread' && isolation !== 'process' && isolation !== 'nats') {
    throw new Error(`--isolation is thread, process or nats, not '${isolation}'`);
  }
  const workers = parseInteger('workers', values.workers, 1, 1024);
  const steps = parseInteger('steps', values.steps, 1);
  const kill = parseInteger('kill', values.kill, 0);
  const seed = parseInteger('seed', values.seed, 0, 2 ** 32 - 1);
  if (kill >= steps) throw new Error(`--kill ${kill} takes more than ${steps} steps`);
  const killCoordinator = parseInteger('kill-coordinator', values['kill-coordinator'], 0);
  if (killCoordinator > 0 && checkpoints === undefined) {
    throw new Error('--kill-coordinator needs --checkpoints: else the training would begin anew');
  }
  const killPs = parseInteger('kill-ps', values['kill-ps'], 0);
  const killServer = parseInteger('kill-server', values['kill-server'], 0);
  if (killPs > 0 && checkpoints === undefined) {
    throw new Error('--kill-ps needs --checkpoints: else the training would begin anew');
  }
  if (killPs + killServer > 0 && (isolation !== 'nats' || servers !== undefined)) {
    const option = killPs > 0 ? '--kill-ps' : '--kill-server';
    throw new Error(
      `${option} needs --isolation nats without --servers: who is killed is started again`,
    );
  }
  if (checkpoints === '') throw new Error('--checkpoints takes a name');
  // Check now that the file can be written, not after the training.
  const out = resolve(values.out);
  if (!statSync(dirname(out), { throwIfNoEntry: false })?.isDirectory()) {
    throw new Error(`No such folder: ${dirname(out)}`);
  }
  if (statSync(out, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Error(`--out takes a file, not a folder: ${out}`);
  }
  const numbers = { workers, steps, kill, killCoordinator, killPs, killServer, checkpoints, seed };
  if (servers !== undefined) return { ...numbers, isolation: 'nats', servers, out };
  return { ...numbers, isolation, out };
}
