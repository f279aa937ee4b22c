// A server that does not keep its process alive has a request in flight when the coordinator stops.
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import { text } from 'node:stream/consumers';
import { Coordinator } from 'allstop';
import { closeOnStop } from 'allstop/http';

const coord = new Coordinator();
const server = createServer((_, response) => {
  coord.requestStop();
  setTimeout(() => response.end('foo'), 50).unref();
});
closeOnStop(server, coord, { name: 'unref' });
server.listen(0, '127.0.0.1').unref();
await once(server, 'listening');
const sent = get({ port: server.address().port, agent: false });
sent.on('socket', (socket) => socket.unref());
server.on('connection', (socket) => socket.unref());
sent.on('response', async (response) => console.log(await text(response)));
process.on('exit', () => console.log('closed'));
await coord.waitForStop();
