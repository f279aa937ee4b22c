// Two workers of node:cluster share a port. Each has a request in flight when it is told to stop.
import cluster from 'node:cluster';
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import { text } from 'node:stream/consumers';
import { Coordinator } from 'allstop';
import { closeOnStop } from 'allstop/http';

if (cluster.isPrimary) {
  const workers = [cluster.fork(), cluster.fork()];
  const ports = await Promise.all(
    workers.map(async (worker) => (await once(worker, 'message'))[0]),
  );
  const answers = ports.map(async (port) => {
    const [response] = await once(get({ port, agent: false }), 'response');
    return text(response);
  });
  await Promise.all(workers.map((worker) => once(worker, 'message'))); // each has its request
  for (const worker of workers) worker.send('stop');
  const ended = workers.map((worker) => once(worker, 'exit'));
  console.log((await Promise.all(answers)).join(' '));
  await Promise.all(ended);
  console.log('closed');
} else {
  await Coordinator.run(async (coord) => {
    const server = createServer((_, response) => {
      process.send('asked');
      coord.signal.addEventListener('abort', () => setImmediate(() => response.end('foo')));
    });
    closeOnStop(server, coord);
    server.listen(0, '127.0.0.1', () => process.send(server.address().port));
    process.once('message', () => coord.requestStop());
    await coord.waitForStop();
  });
  cluster.worker.disconnect();
}
