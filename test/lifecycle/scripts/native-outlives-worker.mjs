// Native threads run on after the end of their worker, which was the only environment that had
// loaded the addons and that had a Coordinator object. The main thread never loads an addon.
// argv: ends | terminated (the worker), and naturally | exit (how the process ends).
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { say } from './say.mjs';

if (isMainThread) await main(process.argv[2], process.argv[3]);
else if (workerData === 'later') await look();
else await own(workerData);

async function main(how, end) {
  const owner = new Worker(new URL(import.meta.url), { workerData: how });
  const exited = once(owner, 'exit'); // before the message: both events may come in one turn
  await once(owner, 'message');
  if (how === 'terminated') await owner.terminate();
  await exited;
  const later = new Worker(new URL(import.meta.url), { workerData: 'later' });
  const [results] = await once(later, 'message');
  say('results', { results });
  if (end === 'exit') process.exit(5); // while native threads request stops all the time
  process.exitCode = 5;
  later.postMessage('end');
}

async function own(how) {
  const { Coordinator } = await import('allstop');
  const { addon } = await import('./test-addon.mjs');
  const coord = new Coordinator();
  // With this listener, each stop rings the doorbell of this worker.
  coord.signal.addEventListener('abort', () => {});
  addon.startUnregistered(coord, 'poll', 'poller', '');
  addon.startUnregistered(coord, 'wait', 'waiter', '');
  addon.startUnregistered(coord, 'request', 'requester', '');
  const hammered = new Coordinator();
  hammered.signal.addEventListener('abort', () => {});
  void hammered.waitForStop();
  void hammered.join([new Promise(() => {})], { ignoreLiveThreads: true });
  addon.hammer(hammered, 'hammer', 2, 2 ** 31 - 1);
  parentPort.postMessage('started');
  if (how === 'ends') process.exit();
  parentPort.once('message', () => {}); // keeps the worker alive until it is terminated
}

async function look() {
  const { addon } = await import('./test-addon.mjs');
  addon.openGate('requester');
  const names = ['requester', 'poller', 'waiter'];
  parentPort.postMessage(Object.fromEntries(names.map((name) => [name, addon.result(name)])));
  await once(parentPort, 'message');
}
