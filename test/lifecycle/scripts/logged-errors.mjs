// Errors that nothing reads: with NODE_DEBUG=allstop each has a line on standard error.
import { Worker } from 'node:worker_threads';
import { Coordinator, OutOfRangeError } from 'allstop';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

const pipeline = new Coordinator({ name: 'pipeline' });
await pipeline.start(() => Promise.reject(new RangeError('the tank is empty')), { name: 'pump' });
pipeline.requestStop(new TypeError('later')); // suppressed
pipeline.requestStop(new RangeError('later still'));
pipeline.requestStop(pipeline.stopRecord.error); // an echo
pipeline.requestStop(); // has no error

const odd = new Coordinator({ name: 'odd' });
odd.requestStop({
  [Symbol.for('nodejs.util.inspect.custom')]() {
    throw new Error('not to be shown');
  },
});

const native = new Coordinator({ name: 'native' });
addon.start(native, 'throw', 'engine', 'disk full');
addon.openGate('engine');
await native.join().catch(() => {});

const remote = new Coordinator({ name: 'remote' });
const code = `
  const { workerData } = require('node:worker_threads');
  import('allstop').then(({ Coordinator }) => {
    Coordinator.attach(workerData).requestStop(new SyntaxError('in a worker'));
  });`;
const worker = new Worker(code, { eval: true, workerData: remote.handle });
await remote.waitForStop();
await new Promise((resolve) => worker.once('exit', resolve));

const notClosed = new RangeError('not closed');
const hooked = new Coordinator({ name: 'hooked' });
hooked.onStop(() => Promise.reject(new TypeError('not flushed')), { name: 'flush' });
hooked.onStop(() => Promise.reject(notClosed), { name: 'second' }); // an echo
hooked.onStop(() => Promise.reject(notClosed), { name: 'first' });
hooked.requestStop();
await hooked.join().catch(() => {});
say('suppressed', { count: hooked.stopRecord.suppressed.length });

const forger = new Coordinator({ name: "forger'\nALLSTOP 1: coordinator 'bank" });
const forged = Object.assign(new Error('in\nALLSTOP 1: vain\r'), { name: 'A\nB' });
forger.requestStop(forged);
const { error } = forger.timeline().events.find(({ type }) => type === 'stop-requested');
say('forged', { error });

const plain = new Coordinator({ name: 'plain' });
plain.requestStop();
plain.clearStop();
plain.requestStop(new OutOfRangeError('a clean stop'));
say('stopped', { message: pipeline.stopRecord.error.message });
