// A worker that computes, a task, a looper and a hook, with one coordinator. Press Ctrl-C, or wait
// ten seconds until the worker fails: either way, all of them end. To run it: node main.mjs
import { setTimeout } from 'node:timers/promises';
import { Coordinator, LooperThread } from 'allstop';

const inWorker = Coordinator.current(); // the coordinator that has spawned this worker
if (inWorker) {
  const end = Date.now() + 10_000;
  while (!inWorker.shouldStop()) if (Date.now() > end) throw new RangeError('out of numbers');
} else {
  const download = async (signal) => {
    console.log('task: waiting an hour for an answer');
    await setTimeout(3_600_000, 'the answer', { signal }); // rejects at the stop
  };
  const program = (coord) => {
    coord.onStop(() => console.log(`\n${coord.explain()}`));
    process.stdout.on('error', () => coord.requestStop()); // nobody reads any more: | head
    coord.spawn(new URL(import.meta.url), { name: 'searcher' });
    coord.start(() => download(coord.signal), { name: 'download' });
    LooperThread.loop(coord, 1_000, () => console.log('looper: still here'), { name: 'ticker' });
  };
  await Coordinator.run(program, { name: 'demo', stopOnSignals: ['SIGINT', 'SIGTERM'] });
}
