/** node --expose-gc children-process.mjs ours|any COUNT: prints { heapMb, stopUs } as JSON. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Coordinator } from '../dist/index.js';

const [, , kind, count] = process.argv;
const parent = new Coordinator();
const controller = new AbortController();
const drop = {
  ours: () => parent.child().signal.aborted,
  any: () => AbortSignal.any([controller.signal]).aborted,
}[kind];
const stop = { ours: () => parent.requestStop(), any: () => controller.abort() }[kind];

for (let index = 0; index < Number(count); index++) {
  drop();
  if (index % 200 === 0) await sleep(0); // finalizers run between turns of the event loop
}
for (let turn = 0; turn < 12; turn++) {
  globalThis.gc();
  await sleep(10);
}
const heapMb = process.memoryUsage().heapUsed / 2 ** 20;
const start = process.hrtime.bigint();
stop();
const stopUs = Number(process.hrtime.bigint() - start) / 1_000;
process.stdout.write(JSON.stringify({ heapMb, stopUs }), () => process.exit());
