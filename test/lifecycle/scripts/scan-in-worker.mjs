// Runs the native scan of examples/find-duplicates in a worker that is terminated during the
// scan. The native threads go on without their worker until a stop.
// argv: the folder to scan, and how many workers to run, one after the other.
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { BoundedQueue, Coordinator } from 'allstop';
import { say } from './say.mjs';

const [directory, rounds] = process.argv.slice(2);

if (isMainThread) await main();
else own();

async function main() {
  for (let round = 1; round <= Number(rounds); ++round) {
    const worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) });
    const [handle] = await once(worker, 'message');
    const coord = Coordinator.attach(handle);
    await worker.terminate();
    const threads = coord.threads.filter(({ alive }) => alive).map(({ name }) => name);
    coord.requestStop();
    await coord.join();
    say(`round ${round}`, { threads });
  }
}

function own() {
  const require = createRequire(import.meta.url);
  const addon = '../../../examples/find-duplicates/build/Release/find_duplicates.node';
  const { scan } = require(addon);
  const coord = new Coordinator();
  const queue = new BoundedQueue({ capacity: 1, codec: 'bytes', coordinator: coord });
  const progress = scan(coord, directory, { hashers: 2, strict: true }, [queue]);
  setInterval(() => {
    if (progress().bytesHashed > 0) parentPort.postMessage(coord.handle);
  });
}
