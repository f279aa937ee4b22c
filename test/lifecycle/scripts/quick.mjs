// A worker that calls Coordinator.current() before anything else. workerData, if given: an
// Int32Array of shared memory, whose first word the worker sets right before that call.
import { workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

if (workerData) {
  Atomics.store(workerData, 0, 1);
  Atomics.notify(workerData, 0);
}
const coord = Coordinator.current();
if (coord === undefined) throw new Error('It does not know who spawned it');
coord.child(); // throws if the coordinator cannot be used yet
