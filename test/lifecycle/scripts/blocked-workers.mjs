// Ends workers that are blocked in waitForStopSync(), and measures how long that takes.
// argv: terminate | exit | stop | clear (how the workers are ended), and how many workers.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

// The workers' own timeout: if the wait does not give way to terminate() or exit(), they end then.
const FAILURE_MS = 40_000;

if (isMainThread) await main(process.argv[2], Number(process.argv[3] ?? 1));
else block();

function block() {
  const coord = Coordinator.attach(workerData);
  parentPort.postMessage('blocking');
  const stopped = coord.waitForStopSync(FAILURE_MS);
  parentPort.postMessage(stopped);
}

async function main(mode, count) {
  const coord = new Coordinator();
  const workers = Array.from(
    { length: count },
    () => new Worker(new URL(import.meta.url), { workerData: coord.handle }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  // waitForStopSync waits in slices. After this wait, all workers are in the middle of one.
  coord.waitForStopSync(120);
  const startedAt = performance.now();
  if (mode === 'exit') {
    process.on('exit', () => say('exiting', { at: Date.now() }));
    process.exit(7);
  }
  if (mode === 'terminate') {
    const codes = await Promise.all(workers.map((worker) => worker.terminate()));
    say('terminated', { ms: Math.round(performance.now() - startedAt), codes });
    return;
  }
  const answers = workers.map((worker) => once(worker, 'message'));
  coord.requestStop();
  if (mode === 'clear') coord.clearStop();
  const stopped = (await Promise.all(answers)).map(([answer]) => answer);
  say('woken', { ms: Math.round(performance.now() - startedAt), stopped });
}
