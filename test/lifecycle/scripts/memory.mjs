// The memory in use after a full garbage collection. The script that imports this needs
// --expose-gc.
import { setImmediate } from 'node:timers/promises';

export async function memoryInUse() {
  // Several rounds: finalizers run in later turns of the event loop, and free more objects.
  for (let round = 0; round < 6; ++round) {
    globalThis.gc();
    await setImmediate();
  }
  const { heapUsed, rss } = process.memoryUsage();
  return { heapUsed, rss };
}

/** The growth in MB, rounded to one decimal. */
export function growth(before, after) {
  const mb = (bytes) => Math.round(bytes / 2 ** 20 / 0.1) / 10;
  return { heapMb: mb(after.heapUsed - before.heapUsed), rssMb: mb(after.rss - before.rss) };
}
