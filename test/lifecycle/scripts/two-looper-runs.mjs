// Two threads, each with a run that only a looper holds up for 11 seconds.
import { isMainThread, Worker } from 'node:worker_threads';
import { Coordinator, LooperThread } from 'allstop';

if (isMainThread) new Worker(new URL(import.meta.url));
await Coordinator.run((coord) => {
  LooperThread.loop(coord, Number.POSITIVE_INFINITY, () => {});
  setTimeout(() => coord.requestStop(), 11_000);
});
