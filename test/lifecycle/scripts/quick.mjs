// A worker that asks for its coordinator before anything else. workerData, if any: shared
// words, the first of which it sets right before it asks.
import { workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

if (workerData) {
  Atomics.store(workerData, 0, 1);
  Atomics.notify(workerData, 0);
}
const coord = Coordinator.current();
if (coord === undefined) throw new Error('It does not know who spawned it');
coord.child(); // it is usable
