// The child process: writes what the server sends it to a file, a line each. It ends when the server
// disconnects, or dies; not at the stop, when requests in flight are still to be written.
import { openSync, writeSync } from 'node:fs';
import { Coordinator } from 'allstop';

Coordinator.current(); // from now on an uncaught error reaches the server with class and fields
const file = openSync(process.argv[2], 'a');

// Ctrl-C in a terminal goes to this process, too, and so does a signal to the process group.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});

process.on('message', (entry) => {
  writeSync(file, `${JSON.stringify({ at: new Date().toISOString(), ...entry })}\n`);
});
// Node drops what came before the first listener if the channel is closed meanwhile, so the server
// sends nothing before it knows that this process listens.
process.send('ready');
