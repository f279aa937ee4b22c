/** A process of idle-cost.mjs: waits for what never comes, and says when it does. */

import { stat } from 'node:fs/promises';
import { Coordinator } from '../dist/index.js';

setInterval(() => {}, 2 ** 30);

const kept = [];
if (process.argv[2] === 'ours') {
  for (let i = 0; i < 100; i++) {
    const coordinator = new Coordinator();
    coordinator.registerThread(new Promise(() => {}));
    void coordinator.waitForStop();
    void coordinator.join();
    coordinator.signal.addEventListener('abort', () => {});
    kept.push(coordinator);
  }
}
await stat(import.meta.dirname); // takes a turn in libuv's pool
process.stdout.write('ready\n');
