// npm run check: uses the addon in workers, which are ended in every way, at every moment.
import { setTimeout as sleep } from 'node:timers/promises';
import { Coordinator } from 'allstop';

/**
 * Now and then takes a while, so that workers end during a call. If each call did, calls would come
 * quicker than they end, and nothing else would run. (The addons in C and Rust take no function.)
 */
const onRounds = (rounds) => {
  if (rounds % 8 > 0) return;
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
