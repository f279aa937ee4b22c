// A worker that creates Coordinators, posts their handles, and keeps no reference to the objects.
// Messages in: 'end', 'dispose'; out: { name: handle }, then 'disposed'.
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const collected = [];
const registry = new FinalizationRegistry((name) => collected.push(name));

function make(name) {
  const coord = new Coordinator({ name });
  registry.register(coord, name);
  return coord.handle;
}

const handles = { alone: make('alone'), attached: make('attached') };
while (collected.length < 2) {
  globalThis.gc();
  await setImmediate();
}
let disposable = new Coordinator({ name: 'disposable' });
parentPort.postMessage({ ...handles, disposable: disposable.handle });

for (;;) {
  const [message] = await once(parentPort, 'message');
  if (message === 'end') break;
  await disposable[Symbol.asyncDispose]();
  disposable = undefined;
  parentPort.postMessage('disposed');
}
