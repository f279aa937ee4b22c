// A loop of WebAssembly, in a worker thread, that stops with everything else. It can call nothing of
// allstop while it runs, and need not: the stop is a word in its memory.
import { Coordinator } from 'allstop';

await Coordinator.run(
  async (coord) => {
    const worker = coord.spawn(new URL('./worker.mjs', import.meta.url), { name: 'counter' });
    worker.on('message', (text) => console.log(text));
  },
  { name: 'wasm', stopOnSignals: ['SIGINT', 'SIGTERM'] },
);
