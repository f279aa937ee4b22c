// What is still in use after everything that can be collected has been. The script
// runs with --expose-gc.
import { setImmediate } from 'node:timers/promises';

export async function memoryInUse() {
  // Finalizers run in turns of their own and free what holds more.
  for (let round = 0; round < 6; ++round) {
    globalThis.gc();
    await setImmediate();
  }
  const { heapUsed, rss } = process.memoryUsage();
  return { heapUsed, rss };
}

/** In MB, with one digit. */
export function growth(before, after) {
  const mb = (bytes) => Math.round(bytes / 2 ** 20 / 0.1) / 10;
  return { heapMb: mb(after.heapUsed - before.heapUsed), rssMb: mb(after.rss - before.rss) };
}
