// A worker that has registered a task, and dies in the way that its workerData names once it is
// told to.
import { parentPort, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const coord = Coordinator.current();
void coord.start(() => new Promise(() => {}), { name: 'a task of the worker' });

const ways = {
  throws() {
    throw new TypeError('the true cause');
  },
  exits: () => process.exit(3),
  'runs out of memory'() {
    for (const kept = []; ; ) kept.push(Array.from({ length: 100_000 }, () => kept.length));
  },
};

parentPort.once('message', () => ways[workerData]());
parentPort.postMessage('there');
