/**
 * The time from requestStop() in the program until a function that computes in a worker process of a
 * cluster sees the stop.
 */

import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { ClusterCoordinator, currentCall, LocalStrategy } from '../dist/cluster/index.js';
import { quick, report } from './rounds.mjs';

const CLUSTERS = quick ? 1 : 31;

const now = () => performance.timeOrigin + performance.now();

/** Says that it computes, and returns when it sees the stop. */
export async function compute() {
  const task = currentCall();
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

if (isMainThread && process.argv[1] === fileURLToPath(import.meta.url)) {
  const times = [];
  for (let i = 0; i < CLUSTERS; i++) times.push(await measure('process'));
  report({ 'stop/worker-process': { ours: times } });
}
