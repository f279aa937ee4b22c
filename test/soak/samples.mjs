// What the soak measures of its process, once a second.
import { readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const MB = 2 ** 20;
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();

const count = (folder) => (process.platform === 'linux' ? readdirSync(folder).length : 0);

/** Each sample follows a full garbage collection, so that `heapMb` is what is in use. */
export function sample(startedAt) {
  const delayMs = delay.count === 0 ? 0 : delay.percentile(99) / 1e6;
  globalThis.gc();
  delay.reset();
  const { rss, heapUsed, external } = process.memoryUsage();
  return {
    s: Math.round(performance.now() - startedAt) / 1_000,
    rssMb: rss / MB,
    heapMb: heapUsed / MB,
    externalMb: external / MB,
    descriptors: count('/proc/self/fd'),
    threads: count('/proc/self/task'),
    resources: process.getActiveResourcesInfo().length,
    loopDelayP99Ms: delayMs,
  };
}

/** What is open once everything is closed; finalizers and closing handles need a few turns. */
export async function settled(startedAt) {
  for (let round = 0; round < 20; round += 1) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return sample(startedAt);
}
