/** The time from a native thread's stop request until a JavaScript promise has resolved. */

import { Coordinator } from '../dist/index.js';
import { addon } from './addon.mjs';
import { inTurn, report, sleep, usSince } from './rounds.mjs';

const coordinator = new Coordinator();
let resolveBare;
addon.setBare(() => resolveBare());
const keepAlive = setInterval(() => {}, 1_000_000); // the peer's thread-safe function does not keep the loop alive

const result = await inTurn({
  rounds: 31,
  samples: 40,
  warmUp: 300,
  ours: async () => {
    const stopped = coordinator.waitForStop();
    addon.requestStop(coordinator);
    await stopped;
    const us = usSince(addon.start());
    coordinator.clearStop();
    return us;
  },
  peer: async () => {
    const called = new Promise((resolve) => {
      resolveBare = resolve;
    });
    addon.callBare();
    await called;
    return usSince(addon.start());
  },
});

clearInterval(keepAlive);
await sleep(10);
report({ 'wake/promise': result });
