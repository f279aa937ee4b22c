// The time from requestStop() in the parent until a forked child that computes sees the stop, of
// 100 children, one after the other: the median and the worst.
//
//   node bench/fork-stop.mjs [children]
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Coordinator } from '../dist/index.js';

const now = () => performance.timeOrigin + performance.now();

if (process.argv[2] === 'child') {
  const coord = Coordinator.current();
  await new Promise((resolve) => process.send('computing', resolve));
  while (!coord.shouldStop());
  const at = now();
  process.send(at, () => process.disconnect());
} else {
  const times = [];
  const children = Number(process.argv[2] ?? 100);
  for (let i = 0; i < children; i++) {
    const coord = new Coordinator();
    const child = coord.fork(fileURLToPath(import.meta.url), ['child']);
    await once(child, 'message');
    const requested = now();
    coord.requestStop();
    const [seen] = await once(child, 'message');
    times.push(seen - requested);
    await coord.join();
  }
  times.sort((a, b) => a - b);
  const text = (ms) => `${ms.toFixed(2)} ms`;
  console.log(
    `${children} children: median ${text(times[children >> 1])}, worst ${text(times.at(-1))}`,
  );
}
