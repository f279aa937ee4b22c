/** Has V8's counts written of processes that end by a signal, at which Node writes none. */
import { takeCoverage } from 'node:v8';
import { afterAll, expect } from 'vitest';

// The tests of clusters kill most of the processes that they start.
if (expect.getState().testPath?.includes('/test/cluster/') === true) {
  const preload = new URL('write-often.mjs', import.meta.url).href;
  process.env['NODE_OPTIONS'] = `${process.env['NODE_OPTIONS'] ?? ''} --import=${preload}`;
}

// vitest ends the process of a test file by SIGTERM.
afterAll(() => {
  takeCoverage();
});
