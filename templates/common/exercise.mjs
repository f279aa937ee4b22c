// npm run check: uses the addon in workers, which are ended in every way, at every moment.
import { setTimeout as sleep } from 'node:timers/promises';
import { Coordinator } from 'allstop';

/** Takes a while, so that workers end during a call. (The addons in C and Rust take no function.) */
const onRounds = () => {
  for (const end = performance.now() + 3; performance.now() < end; );
};

export default async (addon) => {
  const coord = new Coordinator();
  addon.start(coord, onRounds);
  addon.start(new Coordinator(), onRounds); // this thread goes on when the worker has ended
  await sleep(20);
  coord.requestStop();
  await coord.join();
};
