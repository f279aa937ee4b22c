// Stop flags without allstop: nothing here imports the package. Native threads poll the flags of
// AbortSignals; one signal belongs to a worker that ends.
// argv: ends | terminated | exit (the process ends while the threads run)
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

const [how] = isMainThread ? process.argv.slice(2) : workerData;

if (isMainThread) await main();
else own();

async function main() {
  const worker = new Worker(new URL(import.meta.url), { workerData: [how] });
  const exited = once(worker, 'exit');
  const [flag] = await once(worker, 'message');
  addon.watchFlag(flag, 'worker');
  const controller = new AbortController();
  addon.watchFlag(addon.flag(controller.signal), 'main');
  const before = addon.flagShouldStop(flag);
  if (how === 'exit') {
    say('exiting');
    process.exit(5);
  }
  if (how === 'terminated') await worker.terminate();
  else worker.postMessage('end');
  await exited;
  addon.result('worker'); // blocks until the thread has seen the end of the worker
  addon.releaseFlag(flag);
  controller.abort();
  addon.result('main');

  const removed = new AbortController();
  const removals = [];
  const { removeEventListener } = removed.signal;
  removed.signal.removeEventListener = (...args) => {
    removals.push(args[0]);
    return removeEventListener.apply(removed.signal, args);
  };
  const flags = [1, 2, 3].map(() => addon.flag(removed.signal));
  for (const each of flags) addon.releaseFlag(each);
  while (removals.length === 0) await turn();
  say('result', {
    before,
    calls: removals.length,
    main: addon.flagStatus(controller.signal),
    nothing: addon.flagStatus(undefined),
    other: addon.flagStatus({}),
  });
}

function own() {
  const keepAlive = setInterval(() => {}, 1_000_000);
  parentPort.once('message', () => clearInterval(keepAlive));
  parentPort.postMessage(addon.flag(new AbortController().signal));
}
