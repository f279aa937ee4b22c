// Starts a native thread, which ends by Ctrl-C, or when the program stops it, and waits for its end.
import { createRequire } from 'node:module';
import { Coordinator } from 'allstop';

const addon = createRequire(import.meta.url)('./build/Release/addon.node');

await Coordinator.run(
  (coord) => {
    addon.start(coord);
    setTimeout(() => coord.requestStop(), 200); // stands for your program
  }, // run() waits for the thread, and throws what it has failed with
  { name: 'main', stopOnSignals: ['SIGINT', 'SIGTERM'] },
);
console.log(`joined after ${addon.rounds()} rounds`);
