// What the patch gives: hash(data, rounds, { signal }) ends at the stop. Run by ../run.mjs in the
// folder of the patched package.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Coordinator } from 'allstop';

const bcrypt = createRequire(import.meta.url)('./bcrypt.js');
const COST = 18; // seconds to minutes

// As before without a signal.
assert.ok(await bcrypt.compare('bacon', await bcrypt.hash('bacon', 4)));
assert.ok(await bcrypt.compare('bacon', await bcrypt.hash('bacon', 4, {})));
await assert.rejects(bcrypt.hash('bacon', 4, { signal: 'no' }), TypeError);

// A plain AbortSignal.
await assert.rejects(bcrypt.hash('bacon', COST, { signal: AbortSignal.timeout(50) }), {
  name: 'AbortError',
  code: 'ABORT_ERR',
});

// A coordinator: two hashes, then a stop.
const times = [];
for (let i = 0; i < 15; i++) {
  const coord = new Coordinator();
  // The hash's own AbortError is expected: without the catch it would be an error of the thread.
  const hash = () =>
    bcrypt.hash('bacon', COST, { signal: coord.signal }).catch((error) => {
      if (error.code !== 'ABORT_ERR') throw error;
    });
  void coord.start(hash);
  void coord.start(hash);
  await new Promise((resolve) => setTimeout(resolve, 50)); // until both are at work
  const start = performance.now();
  coord.requestStop();
  await coord.join();
  times.push(performance.now() - start);
}
times.sort((a, b) => a - b);
const [median, slowest] = [times[7], times[14]].map((each) => each.toFixed(2));
console.log(
  `stop with two hashes of cost 2^${COST} -> join(): ${median} ms, at most ${slowest} ms`,
);
