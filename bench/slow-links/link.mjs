/**
 * A TCP link to a server, in a process of its own, which carries so many bytes a second to the
 * server. argv: the server's address, bytes a second. Writes its address, and answers each line
 * on standard input with the bytes that it has carried to the server, and its connections.
 */

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** How often a second the link carries a slice. */
const SLICES = 50;

const [address, rate] = process.argv.slice(2);
const [host, port] = address.split(':');
let bytes = 0;
let connections = 0;

async function carrySlowly(from, to) {
  const slice = Math.ceil(Number(rate) / SLICES);
  for await (const data of from) {
    const began = performance.now();
    bytes += data.length;
    for (let at = 0; at < data.length; at += slice) {
      to.write(data.subarray(at, at + slice));
      const carried = Math.min(at + slice, data.length);
      // By the clock, so that late timers make the link no slower.
      await sleep(began + (carried / Number(rate)) * 1_000 - performance.now());
    }
  }
  to.end();
}

const server = createServer((near) => {
  connections += 1;
  const far = connect(Number(port), host);
  const end = () => {
    near.destroy();
    far.destroy();
  };
  for (const socket of [near, far]) socket.on('error', end).on('close', end);
  carrySlowly(near, far).catch(end);
  far.pipe(near);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.stdout.write(`127.0.0.1:${server.address().port}\n`);
createInterface(process.stdin)
  .on('line', () => process.stdout.write(`${JSON.stringify({ bytes, connections })}\n`))
  .on('close', () => process.exit());
