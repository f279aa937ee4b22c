// A load for the sanitizers (scripts/test-sanitized.sh). In each round two workers and two native
// threads begin together at a barrier, and create, share, stop and release a coordinator.
// Meanwhile C++ threads request and clear stops of one coordinator that all share, and call a
// thread-safe function. argv: how many rounds.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

const WORKERS = 4;

if (isMainThread) await main(Number(process.argv[2]));
else await work(workerData);

async function main(rounds) {
  const shared = new Coordinator({ name: 'shared' });
  const barrier = new Int32Array(new SharedArrayBuffer(4));
  const workers = Array.from({ length: WORKERS }, (_, index) => {
    const data = { handle: shared.handle, barrier, rounds: rounds / WORKERS, index };
    return new Worker(new URL(import.meta.url), { workerData: data });
  });
  addon.hammer(shared, 'hammer', 2, 2_000);
  addon.post(() => {}, 'posts', 2);
  const done = await Promise.all(workers.map(async (worker) => (await once(worker, 'exit'))[0]));
  addon.result('hammer');
  say('done', { exits: done });
}

async function work({ handle, barrier, rounds, index }) {
  const shared = Coordinator.attach(handle);
  Atomics.add(barrier, 0, 1);
  Atomics.notify(barrier, 0);
  for (let there = 0; (there = Atomics.load(barrier, 0)) < WORKERS; ) {
    Atomics.wait(barrier, 0, there);
  }
  for (let round = 0; round < rounds; round++) {
    const coord = new Coordinator();
    const name = `worker ${index} round ${round}`;
    addon.start(coord, 'wait', name, '');
    addon.startUnregistered(coord, 'request-error', name, 'TypeError|why|CODE');
    void shared.waitForStop(0);
    addon.openGate(name);
    await coord.join().catch(() => {});
    void coord.explain().toString();
    await coord[Symbol.asyncDispose]().catch(() => {});
    if (round % 50 === 0) globalThis.gc?.();
  }
  parentPort.close();
}
