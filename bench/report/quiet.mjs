/** Whether others use the machine, measured while the benchmarks do not run. */

import { cpus } from 'node:os';
import { sleep } from '../rounds.mjs';

const WATCH_MS = 1_000;
/** Processors in use from which on the machine counts as busy. */
export const BUSY = 0.2;

function times() {
  let total = 0;
  let idle = 0;
  for (const { times: of } of cpus()) {
    total += of.user + of.nice + of.sys + of.idle + of.irq;
    idle += of.idle;
  }
  return { total, idle };
}

/** How many processors are in use: 0 to their number. */
async function processorsInUse() {
  const before = times();
  await sleep(WATCH_MS);
  const after = times();
  const total = after.total - before.total;
  return (cpus().length * (total - (after.idle - before.idle))) / total;
}

/**
 * Waits until the machine is quiet, for at most `seconds`: processes of the last benchmark may still
 * end. Returns how many processors were in use at last.
 */
export async function useOfOthers(seconds) {
  let use;
  for (let second = 0; second < seconds; second++) {
    use = await processorsInUse();
    if (use < BUSY) break;
  }
  return use;
}
