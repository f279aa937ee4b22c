// A worker that registers objects which only this worker can watch, and ends on the message 'end'.
// workerData: { handle }. Messages in: 'end'; out: 'registered'.
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const never = new Promise(() => {});
const coord = Coordinator.attach(workerData.handle);
coord.registerThread(never, { name: 'a promise' });
coord.registerThread({ name: 'a custom thread', join: () => never });
void coord.start(() => never, { name: 'a task' });
parentPort.postMessage('registered');
await once(parentPort, 'message');
