// Coordinator objects are garbage-collected while native threads request stops on them.
// argv: how many coordinators. Needs --expose-gc.
import { setImmediate } from 'node:timers/promises';
import { Coordinator } from 'allstop';
import { growth, memoryInUse } from './memory.mjs';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

const rounds = Number(process.argv[2]);
const WARM_UP = 1_000;

let collected = 0;
const registry = new FinalizationRegistry(() => ++collected);
let heard = 0;

// Uses of a Coordinator that leave something behind in its JavaScript thread.
const habits = [
  () => {},
  (coord) => coord.signal,
  (coord) => coord.signal.addEventListener('abort', () => ++heard),
  (coord) => void coord.waitForStop(),
  (coord) => coord.stopAfter(500),
  (coord) => coord.child().signal,
  (coord) => coord.requestStop(new Error('kept with the record')),
  (coord) => void coord.join([Promise.resolve()]),
];

// Coordinators that are never stopped. Their stop words may be reused ones of collected
// coordinators, and must not take over the stops of those.
const quiet = [];

function checkQuiet(round) {
  quiet[round % 32] = new Coordinator();
  if (!quiet.some((coord) => coord.shouldStop())) return;
  say('stopped by nobody', { round });
  process.exit(1);
}

async function collectWhileStopping(count) {
  for (let round = 0; round < count; ++round) {
    checkQuiet(round);
    const coord = new Coordinator();
    registry.register(coord);
    habits[round % habits.length](coord);
    addon.hammer(coord, 'hammer', 1, 4);
    void globalThis.gc(round % 50 === 0 ? undefined : { type: 'minor' });
    if (round % 10 === 0) await setImmediate();
  }
}

await collectWhileStopping(WARM_UP);
const before = await memoryInUse();
await collectWhileStopping(rounds);
const after = await memoryInUse();
say('collected', { rounds, ...growth(before, after), left: rounds + WARM_UP - collected, heard });
