// Runs the addon without allstop; test-addons.sh has removed the package from node_modules.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

await assert.rejects(import('allstop'), { code: 'ERR_MODULE_NOT_FOUND' });
const addon = createRequire(import.meta.url)('./build/Release/addon.node');
const hasEnded = async () => {
  while (!addon.ended()) await new Promise(setImmediate);
};

for (const wrong of [1, {}, 'signal', { aborted: true }]) {
  assert.throws(() => addon.spin(wrong), { code: 'ERR_INVALID_ARG_TYPE' });
}

const controller = new AbortController();
addon.spin(controller.signal);
assert.equal(addon.ended(), false);
controller.abort();
await hasEnded();

addon.spin(AbortSignal.abort());
await hasEnded();
addon.spin(AbortSignal.timeout(10));
await hasEnded();

// The end of a worker stops the flags of its signals, and the addon stays in memory.
const path = JSON.stringify(new URL('./build/Release/addon.node', import.meta.url).pathname);
const worker = new Worker(
  `const addon = require(decodeURI(${path})); addon.spin(new AbortController().signal);
   require('node:worker_threads').parentPort.postMessage(addon.ended());`,
  { eval: true },
);
const ended = await new Promise((resolve) => worker.once('message', resolve));
assert.equal(ended, false);
await worker.terminate();
await hasEnded();
