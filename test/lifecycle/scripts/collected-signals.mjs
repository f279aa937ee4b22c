// Coordinators that are never stopped, whose signal was read, and that native threads still owned
// when their JavaScript object was garbage-collected. argv: how many. Needs --expose-gc.
import { setImmediate } from 'node:timers/promises';
import { Coordinator } from 'allstop';
import { growth, memoryInUse } from './memory.mjs';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

const BATCH = 50;
let batches = 0;

function makeBatch(gate) {
  for (let i = 0; i < BATCH; ++i) {
    const coord = new Coordinator();
    coord.signal.addEventListener('abort', () => {});
    coord.child();
    if (i < 5) addon.startUnregistered(coord, 'gate', gate, '');
  }
}

async function make(count) {
  for (let made = 0; made < count; made += BATCH) {
    const gate = `gate ${++batches}`;
    makeBatch(gate);
    globalThis.gc();
    await setImmediate();
    addon.openGate(gate); // the native threads end and release their handles
  }
}

await make(500);
const before = await memoryInUse();
await make(Number(process.argv[2]));
const after = await memoryInUse();
say('made', growth(before, after));
