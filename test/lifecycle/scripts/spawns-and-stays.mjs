// A worker that spawns another worker, posts its coordinator's handle, and lives until it is
// terminated.
import { once } from 'node:events';
import { parentPort } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const coord = new Coordinator();
const url = new URL('./dies.mjs', import.meta.url);
await once(coord.spawn(url, { workerData: 'stays' }), 'message');
parentPort.once('message', () => {});
parentPort.postMessage(coord.handle);
