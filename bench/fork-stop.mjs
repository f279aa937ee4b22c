/** The time from requestStop() in the parent until a forked child that computes sees the stop. */

import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Coordinator } from '../dist/index.js';
import { quick, report } from './rounds.mjs';

const CHILDREN = quick ? 1 : 41;
const now = () => performance.timeOrigin + performance.now();

if (process.argv.includes('child')) {
  const coord = Coordinator.current();
  await new Promise((resolve) => process.send('computing', resolve));
  while (!coord.shouldStop());
  const at = now();
  process.send(at, () => process.disconnect());
} else {
  const times = [];
  for (let i = 0; i < CHILDREN; i++) {
    const coord = new Coordinator();
    const child = coord.fork(fileURLToPath(import.meta.url), ['child']);
    await once(child, 'message');
    const requested = now();
    coord.requestStop();
    const [seen] = await once(child, 'message');
    times.push(seen - requested);
    await coord.join();
  }
  report({ 'stop/fork': { ours: times } });
}
