// npm run check: uses the addon in workers, which are ended in every way, at every moment.
import { setTimeout as sleep } from 'node:timers/promises';
import { Coordinator } from 'allstop';

export default async (addon) => {
  const coord = new Coordinator();
  addon.start(coord, () => {}); // the addon in C++ takes a function
  addon.start(new Coordinator(), () => {}); // this thread goes on when the worker has ended
  await sleep(20);
  coord.requestStop();
  await coord.join();
};
