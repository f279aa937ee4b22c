// The parts of the server. Each registers the hook that closes it: the last registered runs first.
import { once } from 'node:events';
import { LooperThread } from 'allstop';
import { closeOnStop } from 'allstop/http';
import { createPool } from 'allstop/pool';
import Fastify from 'fastify';

const FILES = { tasks: './tasks.mjs', writer: './audit.mjs' };

/** Opens everything; `coord` closes it. */
export async function serve(coord, { port, audit, drainMs, graceMs, files = FILES }) {
  const shareMs = Math.max(0, graceMs - drainMs) / 4; // for each that closes, one to spare
  const child = coord.fork(new URL(files.writer, import.meta.url), [audit], { name: 'audit' });
  const closeChild = async () => {
    if (!child.connected) return; // it has ended
    child.disconnect(); // it ends when it has written all
    await once(child, 'exit', { signal: AbortSignal.timeout(shareMs) }).catch(() => {
      console.error(`The child process ${child.pid} has not ended: it is killed`);
      child.kill('SIGKILL');
    });
  };
  coord.onStop(closeChild, { name: 'close audit' });
  await once(child, 'message', { signal: coord.signal }); // a stop ends this function, too

  const options = { workers: 2, cancelGraceMs: shareMs / 2, closeOnStop: coord, drainMs: 0 };
  const pool = createPool(new URL(files.tasks, import.meta.url), options);
  pool.on('workerStuck', ({ index }) => console.error(`Worker ${index} is blocked in native code`));
  coord.stopOnAbort(pool.coordinator.signal); // a pool whose workers cannot start ends the server
  coord.onStop(() => {
    const hanging = pool.workers.flatMap(({ calls }) => calls.map(({ name }) => name));
    if (hanging.length > 0) console.error(`Still running, without a request: ${hanging.join()}`);
  });
  await pool.ready({ signal: coord.signal });

  const app = Fastify();
  app.addHook('onResponse', async ({ method, url }, { statusCode: status }) => {
    if (child.connected) child.send({ method, url, status });
  });
  app.get('/health', (_, reply) => reply.code(coord.shouldStop() ? 503 : 200).send());
  app.post('/primes', ({ body }) => pool.run('countPrimes', [body.below], { timeoutMs: 30_000 }));
  const close = () => app.close();
  const http = closeOnStop(app.server, coord, { drainMs, closeMs: shareMs, close });
  const report = () => console.log(`${http.inFlight} requests in flight`); // the job
  LooperThread.loop(coord, 60_000, report, { name: 'report' });
  console.log(`listening on ${await app.listen({ port, host: '0.0.0.0' })}`);
  return { app, pool, child };
}
