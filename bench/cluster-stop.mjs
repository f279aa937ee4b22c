// The time from requestStop() in the program until a function that computes in a worker process of
// a cluster sees the stop, of 100 clusters, one after the other: the median and the worst.
//
//   node bench/cluster-stop.mjs [clusters] [process|thread]

import { fileURLToPath } from 'node:url';
import { threadId } from 'node:worker_threads';
import { ClusterCoordinator, currentTask, LocalStrategy } from '../dist/cluster/index.js';

const now = () => performance.timeOrigin + performance.now();

/** Says that it computes, and returns when it sees the stop. */
export async function compute() {
  const task = currentTask();
  task.report('computing');
  // The report leaves with the next turn of the event loop, which does not turn again after it.
  await new Promise((resolve) => setTimeout(resolve, 20));
  while (!task.shouldStop());
  return now();
}

async function measure(isolation) {
  const module = new URL(import.meta.url);
  const strategy = new LocalStrategy({ module, workers: 1, isolation });
  const cluster = new ClusterCoordinator(strategy, { cancelGraceMs: 20_000 });
  let begun;
  const computing = new Promise((resolve) => {
    begun = resolve;
  });
  const value = cluster.run('compute', [], { onProgress: begun });
  await computing;
  await new Promise((resolve) => setTimeout(resolve, 40)); // until it computes
  const requested = now();
  cluster.coordinator.requestStop();
  const seen = await value.catch((error) => error);
  await cluster.close();
  if (typeof seen !== 'number') throw seen;
  return seen - requested;
}

const isProgram = threadId === 0 && process.argv[1] === fileURLToPath(import.meta.url);
if (isProgram) {
  const count = Number(process.argv[2] ?? 100);
  const isolation = process.argv[3] ?? 'process';
  const times = [];
  for (let i = 0; i < count; i++) times.push(await measure(isolation));
  times.sort((a, b) => a - b);
  const text = (ms) => `${ms.toFixed(2)} ms`;
  console.log(
    `${count} clusters, isolation '${isolation}': median ${text(times[count >> 1])}, worst ${text(times.at(-1))}`,
  );
}
