// Trains a small neural network on several workers, any of which may die.

import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import cliProgress from 'cli-progress';
import { createHistory } from './history.mjs';
import { createKiller } from './kill.mjs';
import { parseCommandLine, USAGE } from './options.mjs';
import { plot } from './plot.mjs';
import { needsSupervisor, supervise, supervision, TRY_AGAIN } from './supervise.mjs';
import { train } from './train.mjs';

/** @param {import('./options.mjs').Options} options */
async function main(options) {
  const { workers, isolation, steps, out } = options;
  const supervised = supervision();
  const servers = supervised?.servers ?? options.servers ?? '';
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
  const known = supervised ?? { began: Date.now(), deaths: [], restarts: [] };
  const history = createHistory(known, (news) => process.send?.(news));
  process.on('message', ({ death }) => history.deaths.push(death));
  process.channel?.unref(); // the supervisor's messages keep nothing alive
  const killer = createKiller(cluster, options, history);
  let trained;
  let failure;
  progress.start(steps, 0, { loss: '-', killed: 0 });
  try {
    trained = await train(cluster, options, history, killer, supervised?.end, (step, loss) => {
      progress.update(step, { loss: loss.toFixed(3), killed: history.deathsOf('worker') });
      process.send?.({ step });
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
  if (trained === undefined) {
    // Without its parameters the program can do nothing but begin again, from its checkpoint.
    if (failure.code === 'ERR_ALLSTOP_UNAVAILABLE') process.exitCode = TRY_AGAIN;
    throw failure;
  }

  const { replaced, accuracy, loss } = trained;
  const seconds = history.seconds().toFixed(1);
  await writeFile(out, await plot(history));
  console.log(`Steps: ${steps}, on ${workers} workers (${isolation}), in ${seconds} s.`);
  console.log(`Workers killed: ${history.deathsOf('worker')}, replaced: ${replaced}.`);
  for (const [of, name, count] of /** @type {const} */ ([
    ['coordinator', 'Coordinator', options.killCoordinator],
    ['ps', 'Parameter server', options.killPs],
    ['server', 'NATS server', options.killServer],
  ])) {
    if (count > 0) console.log(`${name} killed and started again: ${history.deathsOf(of)}.`);
  }
  const { restarts } = history;
  if (restarts.length > 0) {
    const most = (Math.max(...restarts.map(({ lostMs }) => lostMs)) / 1000).toFixed(2);
    const lost = restarts.reduce((sum, { lostSteps }) => sum + lostSteps, 0);
    console.log(
      `Restarts: ${restarts.length}; lost at each: at most ${most} s; steps made twice: ${lost}.`,
    );
  }
  console.log(`Validation: accuracy ${(100 * accuracy).toFixed(1)} %, loss ${loss.toFixed(3)}.`);
  console.log(`The loss and the workers, second by second: ${out}`);
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
    if (needsSupervisor(options) && supervision() === undefined) {
      process.exitCode = await supervise(process.argv[1], options);
    } else {
      await main(options);
    }
  } catch (error) {
    console.error(`Failed: ${error.message}`);
    process.exitCode ??= 1;
  }
}
