// A server that makes a child with a signal for each request, and drops it. Nothing but V8 decides
// when they are collected. argv: how many. Says how much heap was in use at most.
import { setImmediate } from 'node:timers/promises';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const AT_ONCE = 10;
const coord = new Coordinator();
let most = 0;
for (let made = 0; made < Number(process.argv[2]); made += AT_ONCE) {
  const requests = Array.from({ length: AT_ONCE }, () => ({ signal: coord.child().signal }));
  const onAbort = () => {};
  for (const { signal } of requests) signal.addEventListener('abort', onAbort);
  await setImmediate();
  for (const { signal } of requests) signal.removeEventListener('abort', onAbort);
  if (made % 1_000 === 0) most = Math.max(most, process.memoryUsage().heapUsed);
}
say('made', { mostMb: Math.round(most / 2 ** 20) });
