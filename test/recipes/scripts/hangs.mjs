// What hangs in the servers that have to end all the same. Each function resolves when its part
// hangs.
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

const words = new Int32Array(new SharedArrayBuffer(4));
export const WORKER = new URL('./hanging-worker.mjs', import.meta.url);

/**
 * Plants the hang. It is given `run(function, arg)` of the pool,
 * `spawn(way)` of hanging-worker.mjs, the server `app`, the process `child`, and allstop's `coord`.
 */
export const hangs = {
  nothing: async () => {},
  // Its client sends a head and never the body.
  'a request hangs': async ({ app }) => {
    app.server.prependListener('request', () => writeSync(1, 'in flight\n'));
  },
  'a pool worker spins': async ({ run }) => begun(run('spin', words)),
  'a pool worker is blocked in native code': async ({ run }) => begun(run('block', words)),
  'a worker thread spins': async ({ spawn }) => once(spawn('spinner'), 'message'),
  'a native thread is blocked': async ({ coord, spawn }) => {
    if (coord === undefined) await once(spawn('blocked'), 'message');
    else {
      const require = createRequire(import.meta.url);
      const addon = require('../../addons/test-addon/build/Release/test_addon.node');
      addon.start(coord, 'gate', 'reader'); // waits at a gate that nobody opens
    }
  },
  // It is ignores-everything.mjs, in the place of the server's own child.
  'a child ignores SIGTERM': async ({ child }) => {
    child.send('do you ignore signals?'); // audited by a child that does not
    await once(child, 'message');
  },
  'the main thread computes': async ({ app }) => {
    app.server.prependListener('request', ({ url }) => {
      if (url !== '/spin') return;
      writeSync(1, 'spinning\n');
      for (;;);
    });
  },
};

function begun(promise) {
  promise.catch(() => {}); // the stop cancels it
  const { async, value } = Atomics.waitAsync(words, 0, 0);
  return async ? value : undefined;
}

export const spawnHanging = (name) => new Worker(WORKER, { workerData: name });
