// The peer of server-stop.mjs: Fastify, Piscina and a child process, closed by close-with-grace as
// its README shows. argv: what hangs, and the grace.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import Fastify from 'fastify';
import { Piscina } from 'piscina';
import { hangs, spawnHanging } from '../test/recipes/scripts/hangs.mjs';
import { importPeer } from './peers.mjs';

const closeWithGrace = await importPeer('close-with-grace');
const [what, grace] = process.argv.slice(2);
const path = (name) => fileURLToPath(new URL(name, import.meta.url));

const pool = new Piscina({ filename: path('../test/recipes/scripts/hanging-tasks.mjs') });
const child =
  what === 'a child ignores SIGTERM'
    ? fork(path('../test/recipes/scripts/ignores-everything.mjs'))
    : fork(path('../examples/server/audit.mjs'), ['/dev/null']);
const app = Fastify();
app.post('/primes', ({ body }) => pool.run(body, { name: 'countPrimes' }));
const address = await app.listen({ port: 0 });

const workers = [];
await hangs[what]({
  app,
  child,
  run: (name, words) => pool.run(words, { name }),
  spawn: (name) => {
    workers.push(spawnHanging(name));
    return workers.at(-1);
  },
});

closeWithGrace({ delay: Number(grace) }, async () => {
  await app.close();
  await pool.close();
  for (const worker of workers) await worker.terminate();
  if (child.connected) child.disconnect();
  child.kill('SIGTERM');
  await once(child, 'exit');
});
console.log(`listening on ${address}`);
console.log(`hangs, with child ${child.pid}`);
