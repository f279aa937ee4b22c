// Trains a small neural network on several workers, any of which may die.

import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import cliProgress from 'cli-progress';
import { createKiller } from './kill.mjs';
import { parseCommandLine, USAGE } from './options.mjs';
import { plotLoss } from './plot.mjs';
import { train } from './train.mjs';

/** @param {import('./options.mjs').Options} options */
async function main(options) {
  const { workers, isolation, servers, steps, out } = options;
  const module = new URL('./tasks.mjs', import.meta.url);
  const strategy =
    isolation === 'nats'
      ? new NatsStrategy({ module, servers, cluster: 'train', minWorkers: workers })
      : new LocalStrategy({ module, workers, isolation });
  const cluster = new ClusterCoordinator(strategy);
  cluster.coordinator.stopOnSignals(); // on SIGINT and SIGTERM; a second signal kills the process

  const progress = new cliProgress.SingleBar({
    format: '[{bar}] {value} of {total} steps  loss {loss}  workers killed {killed}',
    stream: process.stderr,
    noTTYOutput: true, // a line from time to time
    notTTYSchedule: 500,
    gracefulExit: false, // would install a signal handler, but here allstop handles signals
    hideCursor: true,
  });
  const killer = createKiller(cluster, options);
  const began = performance.now();
  let trained;
  let failure;
  progress.start(steps, 0, { loss: '-', killed: 0 });
  try {
    trained = await train(cluster, options, killer, (step, loss) => {
      progress.update(step, { loss: loss.toFixed(3), killed: killer.kills.length });
    });
  } catch (error) {
    failure = error;
  }
  progress.stop();
  await cluster.close();

  const signal = cluster.coordinator.stopRecord?.requester.signal;
  if (signal !== undefined) {
    console.error(cluster.coordinator.explain().toString());
    process.exitCode = 128 + constants.signals[signal];
    return;
  }
  if (trained === undefined) throw failure;

  const { points, replaced, accuracy, loss } = trained;
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  await writeFile(out, await plotLoss(points, killer.kills));
  console.log(`Steps: ${steps}, on ${workers} workers (${isolation}), in ${seconds} s.`);
  console.log(`Workers killed: ${killer.kills.length}, replaced: ${replaced}.`);
  console.log(`Validation: accuracy ${(100 * accuracy).toFixed(1)} %, loss ${loss.toFixed(3)}.`);
  console.log(`The loss, step by step: ${out}`);
}

let options;
try {
  options = parseCommandLine();
  if (options === undefined) console.log(USAGE);
} catch (error) {
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}
if (options !== undefined) {
  try {
    await main(options);
  } catch (error) {
    console.error(`Failed: ${error.message}`);
    process.exitCode = 1;
  }
}
