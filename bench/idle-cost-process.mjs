/** A process of idle-cost.mjs: starts waits that never end, then prints 'ready'. */

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
await stat(import.meta.dirname); // needs a thread of libuv's pool: hangs if one of the waits holds it
process.stdout.write('ready\n');
