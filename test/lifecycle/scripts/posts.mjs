// Native threads that call a JavaScript function of a worker through a thread-safe function of the
// lifetime kit, and go on after the worker has ended. Only the workers load the addon.
// argv: ends | terminated | closed (the worker closes the function, then ends), or exit (the
// process); the addon: test_addon (C++) | survivor (C).
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { say } from './say.mjs';

const THREADS = 4;
const [how, name, isLater] = isMainThread ? process.argv.slice(2) : workerData;
const load = () =>
  createRequire(import.meta.url)(`../../addons/test-addon/build/Release/${name}.node`);

if (isMainThread) await main();
else if (isLater) look();
else await own();

async function main() {
  const worker = new Worker(new URL(import.meta.url), { workerData: [how, name] });
  const exited = once(worker, 'exit');
  const [called] = await once(worker, 'message');
  say('called', { threads: called });
  if (how === 'exit') process.exit(5);
  if (how === 'terminated') await worker.terminate();
  await exited;
  const [said] = await once(
    new Worker(new URL(import.meta.url), { workerData: [how, name, true] }),
    'message',
  );
  say('result', said);
}

async function own() {
  const addon = load();
  const keepAlive = setInterval(() => {}, 1_000_000); // the thread-safe function does not
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
  if (how !== 'closed') return;
  addon.closePosts();
  process.exit(); // in the same turn: the environment ends before Node has freed the function
}

function look() {
  const addon = load();
  const result = addon.result('posts');
  parentPort.postMessage({ result, environmentEnds: addon.environmentEnds() });
}
