/** The functions of chaos.mjs. */

import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { currentCall } from '../../dist/cluster/index.js';

export async function square({ number, ms = 0 }) {
  await sleep(ms);
  return number * number;
}

/** Notes in a file that it was made. */
export async function make(number, file) {
  await sleep(20);
  appendFileSync(file, `${number}\n`);
  return number * number;
}

export async function add(total) {
  await total.assignAdd(1);
  await sleep(5);
  return currentCall().attempt;
}
