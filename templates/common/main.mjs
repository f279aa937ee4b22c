// Starts a native thread, stops it and waits for its end.
import { createRequire } from 'node:module';
import { Coordinator } from 'allstop';

const addon = createRequire(import.meta.url)('./build/Release/addon.node');

const coord = new Coordinator({ name: 'main' });
coord.stopOnSignals(); // Ctrl-C ends the native thread, too
addon.start(coord);
setTimeout(() => coord.requestStop(), 200); // stands for your program
await coord.join(); // throws what the thread has failed with
console.log(`joined after ${addon.rounds()} rounds`);
