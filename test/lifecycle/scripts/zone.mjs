// A pool in a program that has loaded zone.js.
import { importPeer } from '../../../bench/peers.mjs';

await importPeer('zone.js/node');
const { createPool } = await import('allstop/pool');

const module = new URL('data:text/javascript,export const square = (x) => x * x');
const pool = createPool(module, { workers: 2 });
console.log(await pool.run('square', [7]));
await pool.close();
