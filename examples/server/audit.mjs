// The child process: writes what the server sends it, a line each, until the server disconnects.
import { openSync, writeSync } from 'node:fs';
import { Coordinator } from 'allstop';

Coordinator.current(); // from now on an uncaught error reaches the server with class and fields
const file = openSync(process.argv[2], 'a');
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {}); // sent to the whole group
process.on('message', (entry) => writeSync(file, `${JSON.stringify(entry)}\n`));
process.send('ready'); // the server sends nothing before this process listens
