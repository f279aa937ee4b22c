// Native threads check for a stop, wait for one, and request stops while the process ends. No
// thread joins them. argv: exit | naturally | worker (process.exit() in a worker that has native
// threads, too).
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { addon } from './test-addon.mjs';

const mode = process.argv[2];

const quiet = new Coordinator(); // never stopped
addon.startUnregistered(quiet, 'poll', 'poller', '');
addon.startUnregistered(quiet, 'wait', 'waiter', '');
addon.start(quiet, 'wait', 'registered waiter', '');

const hammered = new Coordinator();
hammered.signal.addEventListener('abort', () => {});
addon.hammer(hammered, 'hammer', 2, 2 ** 31 - 1);
await hammered.waitForStop(); // the native threads have begun to request stops
// A pending join, except where the process ends naturally: a join keeps the event loop alive.
if (mode !== 'naturally') void hammered.join([new Promise(() => {})], { ignoreLiveThreads: true });

if (mode === 'naturally') {
  process.exitCode = 9;
} else if (mode === 'exit') {
  process.exit(9);
} else if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { argv: [mode] });
  worker.on('message', () => process.exit(9));
} else {
  parentPort.postMessage('hammering');
  process.exit(3);
}
