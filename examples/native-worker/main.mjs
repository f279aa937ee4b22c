// Starts C++ threads, watches them, and stops them on Ctrl-C.
import { Coordinator } from 'allstop';
import { WorkerPool } from './index.mjs';

const coord = new Coordinator({ name: 'native-worker' });
coord.stopOnSignals();

const pool = new WorkerPool(coord);
for (let job = 1; job <= 64; ++job) pool.push(job * 10_000);
pool.close();

const watch = setInterval(() => console.log(pool.stats), 250);
try {
  await coord.join(); // until the queue is empty or a stop; throws the error of a thread
} finally {
  clearInterval(watch);
}
console.log(pool.stats);
console.log(String(coord.explain()));
