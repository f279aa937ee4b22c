// As under a test runner with jsdom: AbortController and AbortSignal are not those of Node.
import { ForeignController, ForeignSignal } from '../../../support/foreign-abort.mjs';

globalThis.AbortController = ForeignController;
globalThis.AbortSignal = ForeignSignal;
const { Coordinator } = await import('allstop');
const { createPool } = await import('allstop/pool');

const coord = new Coordinator();
const { aborted } = coord.signal;
const heard = new Promise((resolve) => coord.signal.addEventListener('abort', resolve));
const module = new URL('data:text/javascript,export const square = (x) => x * x');
const pool = createPool(module, { workers: 1, closeOnStop: coord });
const squared = await pool.run('square', [7]);
coord.requestStop();
await heard;
await coord.join();
console.log(aborted, squared, coord.signal.aborted);
