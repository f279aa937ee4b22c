// The program of docs/hang.svg: a server, and a worker that never looks at the stop flag.
import { createServer } from 'node:http';
import { Coordinator } from 'allstop';
import { closeOnStop } from 'allstop/http';

const options = { name: 'shop', stopOnSignals: ['SIGINT', 'SIGTERM'], exitAfterStopMs: 3_000 };

await Coordinator.run(async (coord) => {
  const server = createServer((_, response) => response.end('hello\n'));
  closeOnStop(server, coord);
  coord.spawn('for (;;);', { eval: true, name: 'indexer' });
  server.listen(0, () => console.log('listening'));
  await coord.waitForStop();
}, options);
