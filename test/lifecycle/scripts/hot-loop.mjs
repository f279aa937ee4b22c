// A loop of nothing but shouldStop() sees a stop by a native thread, in the main thread and in a
// worker at the same time: the compiler must not move the check out of the loop.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

/**
 * Loops until the stop, without a clock or another call in the loop.
 * @returns how often it checked, and when it saw the stop
 */
function spin(coord) {
  let looks = 0;
  while (!coord.shouldStop()) ++looks;
  return { looks, at: Date.now() };
}

if (isMainThread) {
  const coord = new Coordinator();
  const worker = new Worker(new URL(import.meta.url), { workerData: coord.handle });
  await once(worker, 'message');
  // 400 ms: long enough for V8 to optimize the loop while it runs.
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
