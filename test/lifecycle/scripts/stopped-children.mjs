// Like a server, makes a child with a hook and a listener for each request, stops and joins it, and
// drops it. The hook and the listener refer to the child. argv: how many. Needs --expose-gc.
import { Coordinator } from 'allstop';
import { growth, memoryInUse } from './memory.mjs';
import { say } from './say.mjs';

const app = new Coordinator();
let ran = 0;

async function serve(count) {
  for (let served = 0; served < count; served += 1) {
    const request = app.child();
    request.onStop(() => (ran += Number(request.shouldStop())));
    request.signal.addEventListener('abort', () => (ran += Number(request.shouldStop())));
    request.requestStop();
    await request.join();
  }
}

await serve(1_000);
const before = await memoryInUse();
await serve(Number(process.argv[2]));
const after = await memoryInUse();
say('served', { ...growth(before, after), ran, stopped: app.shouldStop() });
