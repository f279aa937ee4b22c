// Native threads that call a JavaScript function of a worker through allstop::ThreadsafeFunction,
// and go on after the worker has ended. Only the worker loads the addon.
// argv: ends | terminated (the worker), or exit (the process).
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { say } from './say.mjs';

const THREADS = 4;

if (isMainThread) await main(process.argv[2]);
else if (workerData === 'later') await look();
else await own(workerData);

async function main(how) {
  const worker = new Worker(new URL(import.meta.url), { workerData: how });
  const exited = once(worker, 'exit');
  const [called] = await once(worker, 'message');
  say('called', { threads: called });
  if (how === 'exit') process.exit(5);
  if (how === 'terminated') await worker.terminate();
  await exited;
  const [result] = await once(
    new Worker(new URL(import.meta.url), { workerData: 'later' }),
    'message',
  );
  say('result', { result });
}

async function own(how) {
  const { addon } = await import('./test-addon.mjs');
  const keepAlive = setInterval(() => {}, 1_000_000); // a ThreadsafeFunction does not
  const seen = new Set();
  const all = new Promise((resolve) => {
    const called = (thread) => {
      seen.add(thread);
      if (seen.size === THREADS) resolve();
    };
    addon.post(called, 'posts', THREADS);
  });
  await all;
  parentPort.postMessage([...seen].toSorted((a, b) => a - b));
  if (how === 'ends') clearInterval(keepAlive);
}

async function look() {
  const { addon } = await import('./test-addon.mjs');
  parentPort.postMessage(addon.result('posts'));
}
