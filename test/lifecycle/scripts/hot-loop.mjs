// A loop of nothing but shouldStop(), which the compiler has every reason to hoist, sees a
// stop by a native thread; in the main thread and in a worker at once.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

/** How often it looked, and when it saw the stop. No clock, no call in the loop. */
function spin(coord) {
  let looks = 0;
  while (!coord.shouldStop()) ++looks;
  return { looks, at: Date.now() };
}

if (isMainThread) {
  const coord = new Coordinator();
  const worker = new Worker(new URL(import.meta.url), { workerData: coord.handle });
  await once(worker, 'message');
  // Long enough for the loop to be compiled while it runs.
  coord.stopAfter(400);
  const here = spin(coord);
  const [there] = await once(worker, 'message');
  const requestedAt = coord.stopRecord.requestedAt.getTime();
  const ms = ({ at }) => at - requestedAt;
  say('seen', { looks: [here.looks, there.looks], ms: Math.max(ms(here), ms(there)) });
} else {
  const coord = Coordinator.attach(workerData);
  parentPort.postMessage('ready');
  parentPort.postMessage(spin(coord));
}
