// A worker registers a promise to which nothing else refers, waits until its Coordinator object
// is garbage-collected, and ends.
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

async function collect(isGone) {
  while (!isGone()) {
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

if (isMainThread) {
  const coord = new Coordinator();
  new Worker(new URL(import.meta.url), { workerData: coord.handle });
  await coord.waitForStop(15_000);
  await coord.join().catch(() => {});
  say('joined', { code: coord.stopRecord?.error?.code, threads: coord.threads.length });
} else {
  let gone = false;
  const registry = new FinalizationRegistry(() => {
    gone = true;
  });
  (() => {
    const coord = Coordinator.attach(workerData);
    registry.register(coord, undefined);
    coord.registerThread(new Promise(() => {}), { name: 'lost' });
  })();
  await collect(() => gone);
}
