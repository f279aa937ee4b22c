// A program that scripts/test-bundlers.mjs bundles. Its worker is a second entry point.
import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';
import { BoundedQueue, Coordinator, LooperThread, QueueRunner } from 'allstop';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';

async function main() {
  const coord = new Coordinator();
  coord.spawn(new URL(process.env.BUNDLED_WORKER, `file://${process.argv[1]}`));
  await assert.rejects(coord.join(), { name: 'TypeError', message: 'disk gone', code: 'E_DISK' });

  coord.clearStop();
  const queue = new BoundedQueue({ capacity: 2, coordinator: coord });
  let next = 0;
  const fill = (to) => {
    if (next === 5) throw Object.assign(new Error('No more'), { name: 'OutOfRangeError' });
    return to.enqueue(next++);
  };
  new QueueRunner(queue, [fill]).createThreads({ coordinator: coord, start: true });
  const numbers = [];
  for await (const number of queue) numbers.push(number);
  assert.deepEqual(numbers, [0, 1, 2, 3, 4]);

  const ticks = new BoundedQueue({ capacity: 1, coordinator: coord });
  if (process.env.BUNDLED_TICK) {
    // The package's worker loads a module of the program: both are further entry points.
    const url = new URL(process.env.BUNDLED_TICK, `file://${process.argv[1]}`);
    LooperThread.loop(coord, 1, url, { args: [ticks.handle] });
  } else LooperThread.loop(coord, 1, () => ticks.enqueue('tick'));
  assert.equal(await ticks.dequeue(), 'tick');
  coord.requestStop();
  await coord.join();

  if (process.env.BUNDLED_APPLICATION) {
    // Node's `fork` would run the application itself, which would start others.
    const strategy = { module: pathToFileURL(process.argv[1]), isolation: 'process' };
    const cluster = new ClusterCoordinator(new LocalStrategy(strategy));
    await assert.rejects(cluster.ready(), /A single executable application has no worker process/);
    await cluster.close();
  }
  console.log('it ran');
}

// Not a top-level await, which CommonJS does not have.
main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
