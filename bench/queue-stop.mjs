/** The time from a stop to the end of a join, with threads blocked on a full or an empty queue. */

import { BoundedQueue, Coordinator } from '../dist/index.js';
import { addon } from './addon.mjs';
import { alone, report, sleep, usSince } from './rounds.mjs';

const EACH = 16;

report({
  'queue/stop': await alone({
    rounds: 15,
    samples: 5,
    ours: async () => {
      const coord = new Coordinator();
      const make = () => new BoundedQueue({ capacity: 1, codec: 'bytes', coordinator: coord });
      const [full, empty] = [make(), make()];
      full.enqueueSync(new Uint8Array(1));
      for (let i = 0; i < EACH; i++) {
        addon.block(full, coord, true);
        addon.block(empty, coord, false);
      }
      await sleep(10); // until they are blocked
      const start = process.hrtime.bigint();
      coord.requestStop();
      await coord.join();
      return usSince(start) / 1000;
    },
  }),
});
