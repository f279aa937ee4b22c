// Python, in a worker thread, that stops with everything else: a stop is a KeyboardInterrupt there,
// though no Python code looks for it.
import { Coordinator } from 'allstop';

await Coordinator.run(
  async (coord) => {
    const worker = coord.spawn(new URL('./worker.mjs', import.meta.url), { name: 'python' });
    worker.on('message', (text) => console.log(text));
  },
  { name: 'pyodide', stopOnSignals: ['SIGINT', 'SIGTERM'] },
);
