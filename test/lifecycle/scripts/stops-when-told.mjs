// A worker that attaches to a coordinator, and requests its stop on a message.
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const coord = Coordinator.attach(workerData);
await once(parentPort, 'message');
coord.requestStop();
