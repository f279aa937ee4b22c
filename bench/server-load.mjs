/**
 * A server of node:http that answers 10,000 requests a second, each with a child coordinator and
 * its signal, beside one with `AbortSignal.any`, and one with neither: processor time and memory.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { besidePeers, quick, report } from './rounds.mjs';

const RATE = quick ? 500 : 10_000; // requests a second
const SECONDS = quick ? 0.2 : 2;
const CONNECTIONS = 50;
const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

const script = fileURLToPath(new URL('server-load-process.mjs', import.meta.url));

/** Starts a server of the kind. `load()` resolves to what the load has cost the server. */
async function startServer(kind) {
  const server = fork(script, [kind], { execArgv: ['--expose-gc'] });
  const [{ port }] = await once(server, 'message');
  const sockets = [];
  let awaited = 0; // bytes
  let onAll;
  for (let index = 0; index < CONNECTIONS; index++) {
    const socket = connect(port, '127.0.0.1');
    socket.setNoDelay(true);
    socket.on('data', (data) => {
      awaited -= data.length;
      if (awaited === 0) onAll?.();
    });
    socket.on('end', () => {
      throw new Error('The server has closed a connection');
    });
    await once(socket, 'connect');
    sockets.push(socket);
  }
  // All answers are equally long.
  sockets[0].write(REQUEST);
  const [{ length }] = await once(sockets[0], 'data');
  const ask = async () => {
    server.send('cost');
    return (await once(server, 'message'))[0];
  };
  return {
    async load() {
      await ask();
      const count = RATE * SECONDS;
      awaited = count * length;
      const answered = new Promise((resolve) => {
        onAll = resolve;
      });
      const start = performance.now();
      for (let sent = 0; sent < count; ) {
        const due = Math.min(count, Math.ceil(((performance.now() - start) / 1_000) * RATE));
        for (; sent < due; sent++) sockets[sent % CONNECTIONS].write(REQUEST);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await answered;
      const { cpuUs, rssMb } = await ask();
      return { cpuUs: cpuUs / count, rssMb };
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.disconnect();
      await once(server, 'exit');
    },
  };
}

const servers = {};
const memory = {};
for (const kind of ['ours', 'any', 'none']) {
  servers[kind] = await startServer(kind);
  memory[kind] = [];
}
const cpuOf = (kind) => async () => {
  const { cpuUs, rssMb } = await servers[kind].load();
  memory[kind].push(rssMb);
  return cpuUs;
};
const cpu = await besidePeers({
  rounds: 5,
  samples: 1,
  ours: cpuOf('ours'),
  peers: { any: cpuOf('any'), none: cpuOf('none') },
});
for (const server of Object.values(servers)) await server.stop();
report({
  'server/cpu': { ours: cpu.ours, peer: cpu.peers.any },
  'server/memory': { ours: memory.ours, peer: memory.any },
  'server/bare': { ours: cpu.peers.none },
});
