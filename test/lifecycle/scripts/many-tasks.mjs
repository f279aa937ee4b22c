// Like a server, starts many async tasks on one coordinator, and measures the growth of memory.
// argv: how many tasks. Needs --expose-gc.
import { Coordinator } from 'allstop';
import { growth, memoryInUse } from './memory.mjs';
import { say } from './say.mjs';

const coord = new Coordinator();

async function startTasks(count) {
  const BATCH = 500;
  for (let started = 0; started < count; started += BATCH) {
    const batch = Array.from({ length: BATCH }, (_, i) =>
      coord.start(async () => i, { name: `task ${i}` }),
    );
    await Promise.all(batch);
  }
}

await startTasks(10_000);
const before = await memoryInUse();
await startTasks(Number(process.argv[2]));
const after = await memoryInUse();
say('ran', {
  ...growth(before, after),
  threads: coord.threads.length,
  recentlyEnded: coord.explain().recentlyEnded.length,
  stopped: coord.shouldStop(),
});
