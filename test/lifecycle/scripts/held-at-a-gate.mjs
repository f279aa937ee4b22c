// Holds a worker at a gate; then calls process.exit(3), or opens the gate and ends by itself.
import { Worker } from 'node:worker_threads';
import { Gate } from 'allstop/testing';

const [how, end] = process.argv.slice(2);
const gate = new Gate();
new Worker(new URL('../../fixtures/gate-worker.mjs', import.meta.url), {
  workerData: { handle: gate.handle, how },
});
await gate.arrived();
console.log(JSON.stringify({ event: 'held' }));
if (end === 'exit') process.exit(3);
gate.open();
