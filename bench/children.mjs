/**
 * A parent with many dropped children whose signal was read, beside as many dropped composites of
 * AbortSignal.any(): the heap, and the stop. Each in a process of its own (children-process.mjs).
 */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inTurn, quick, report } from './rounds.mjs';

const COUNT = quick ? 1_000 : 20_000;
const script = fileURLToPath(new URL('children-process.mjs', import.meta.url));

async function measure(kind) {
  const args = ['--expose-gc', script, kind, String(COUNT)];
  return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout);
}

const found = { ours: [], peer: [] };
const memory = await inTurn({
  rounds: 7,
  samples: 1,
  async ours() {
    const one = await measure('ours');
    found.ours.push(one.stopUs);
    return one.heapMb;
  },
  async peer() {
    const one = await measure('any');
    found.peer.push(one.stopUs);
    return one.heapMb;
  },
});
report({ 'children/heap': memory, 'children/stop': found });
