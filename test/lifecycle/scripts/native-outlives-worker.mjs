// Native threads whose worker, the only one that had loaded the addons and the only one
// with a Coordinator object, has ended. The main thread never loads an addon.
// argv: ends | terminated, and how the process ends: naturally | exit.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { say } from './say.mjs';

if (isMainThread) await main(process.argv[2], process.argv[3]);
else if (workerData === 'later') await look();
else await own(workerData);

async function main(how, end) {
  const owner = new Worker(new URL(import.meta.url), { workerData: how });
  const exited = once(owner, 'exit'); // may come together with the message
  await once(owner, 'message');
  if (how === 'terminated') await owner.terminate();
  await exited;
  const later = new Worker(new URL(import.meta.url), { workerData: 'later' });
  const [results] = await once(later, 'message');
  say('results', { results });
  if (end === 'exit') process.exit(5); // the hammering threads are busy
  process.exitCode = 5;
  later.postMessage('end');
}

async function own(how) {
  const { Coordinator } = await import('allstop');
  const { addon } = await import('./test-addon.mjs');
  const coord = new Coordinator();
  // The worker wants to be told of stops, so that they reach for its doorbell.
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
  parentPort.once('message', () => {}); // lives until it is terminated
}

async function look() {
  const { addon } = await import('./test-addon.mjs');
  addon.openGate('requester');
  const names = ['requester', 'poller', 'waiter'];
  parentPort.postMessage(Object.fromEntries(names.map((name) => [name, addon.result(name)])));
  await once(parentPort, 'message');
}
