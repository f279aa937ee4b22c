/**
 * node --expose-gc server-load-process.mjs ours|any|none: a server; answers each message of its
 * parent process with what it has used since the last one.
 */

import { createServer } from 'node:http';
import { Coordinator } from '../dist/index.js';

const kind = process.argv[2];
const coord = new Coordinator({ name: 'server' });
const controller = new AbortController();

/** Answers in the next turn, as after a query that listened to the signal meanwhile. */
function answer(response, signal) {
  const onAbort = () => response.destroy();
  signal?.addEventListener('abort', onAbort);
  setImmediate(() => {
    signal?.removeEventListener('abort', onAbort);
    response.end('ok');
  });
}

const handlers = {
  none: (_, response) => answer(response),
  ours: (_, response) => answer(response, coord.child().signal),
  any(_, response) {
    const own = new AbortController(); // as a child, which can be stopped by itself
    answer(response, AbortSignal.any([controller.signal, own.signal]));
  },
};

const server = createServer(handlers[kind]).listen(0, '127.0.0.1', () => {
  process.send({ port: server.address().port });
});
server.keepAliveTimeout = 0; // a connection waits while the other servers are measured
let before = process.cpuUsage();
process.on('message', () => {
  const { user, system } = process.cpuUsage(before);
  process.send({ cpuUs: user + system, rssMb: process.memoryUsage.rss() / 2 ** 20 });
  before = process.cpuUsage();
});
process.on('disconnect', () => process.exit());
