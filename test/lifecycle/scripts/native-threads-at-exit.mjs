// Native threads poll, wait and hammer while the process ends, and nobody joins them.
// argv: exit | naturally | worker (process.exit() in a worker that has threads, too).
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { addon } from './test-addon.mjs';

const mode = process.argv[2];

const quiet = new Coordinator(); // never stopped, until the end
addon.startUnregistered(quiet, 'poll', 'poller', '');
addon.startUnregistered(quiet, 'wait', 'waiter', '');
addon.start(quiet, 'wait', 'registered waiter', '');

const hammered = new Coordinator();
hammered.signal.addEventListener('abort', () => {});
addon.hammer(hammered, 'hammer', 2, 2 ** 31 - 1);
await hammered.waitForStop(); // it is under way
// A join keeps the process alive, so not where it is to end by itself.
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
