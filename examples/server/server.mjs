// What the server consists of. Each part is opened, and its hook closes it at the stop: the hooks
// run one after the other, the last registered first.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { LooperThread } from 'allstop';
import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
import Fastify from 'fastify';

const TASKS = new URL('./tasks.mjs', import.meta.url);
const AUDIT = new URL('./audit.mjs', import.meta.url);

/**
 * Opens everything; `coord` closes it.
 *
 * @param {import('allstop').Coordinator} coord
 * @param {{ port: number, host: string, auditFile: string, drainMs: number, graceMs: number,
 *   tasksModule?: URL, auditModule?: URL }} options
 */
export async function serve(coord, options) {
  const { port, host, auditFile, drainMs, graceMs } = options;
  const { tasksModule = TASKS, auditModule = AUDIT } = options;
  // What is left of the grace after the drain, in four parts: one for each that closes, one spare.
  const shareMs = Math.max(0, graceMs - drainMs) / 4;

  // The child process writes the audit log. An uncaught error there stops the server.
  const audit = coord.fork(auditModule, [auditFile], { name: 'audit' });
  coord.onStop(() => closeChild(audit, shareMs), { name: 'close audit' });
  await once(audit, 'message', { signal: coord.signal }); // entries sent earlier may be lost

  // Not `{ coordinator: coord }`: the stop would cancel what requests in flight have called.
  const strategy = new LocalStrategy({ module: tasksModule, workers: 2 });
  const pool = new ClusterCoordinator(strategy, { cancelGraceMs: shareMs / 2 });
  pool.on('workerStuck', ({ index }) => {
    console.error(`The pool's worker ${index} is blocked in native code: it cannot be ended`);
  });
  coord.stopOnAbort(pool.coordinator.signal); // a pool whose workers cannot start ends the server
  coord.onStop(() => closePool(pool), { name: 'close pool' });
  await pool.ready({ signal: coord.signal }); // a stop meanwhile ends this function, too

  const app = Fastify();
  let requests = 0;
  let inFlight = 0;
  app.server.on('request', (_, response) => {
    inFlight++;
    response.once('close', () => inFlight--);
  });
  app.addHook('onResponse', async (request, reply) => {
    requests++;
    const { method, url } = request;
    if (audit.connected) audit.send({ method, url, status: reply.statusCode });
  });
  app.get('/health', async (_, reply) => {
    if (coord.shouldStop()) reply.code(503);
    return { status: coord.shouldStop() ? 'stopping' : 'ok' };
  });
  app.post('/primes', async ({ body }) => ({
    primes: await pool.run('countPrimes', [body.below], { timeoutMs: 30_000 }),
  }));
  coord.onStop(() => closeServer(app, shareMs, () => inFlight), { name: 'close http' });
  // The first hook to run: /health says 503 now, and the load balancer has time to notice, while
  // its requests are still answered.
  coord.onStop(() => sleep(drainMs), { name: 'drain' });

  LooperThread.loop(coord, 1_000, () => report(requests, pool), { name: 'report' });

  coord.signal.throwIfAborted();
  return { app, pool, audit, address: await app.listen({ port, host }) };
}

/** The job that runs every second. */
function report(requests, pool) {
  const { queued, inFlight } = pool.stats();
  process.title = `server: ${requests} requests, ${queued + inFlight} in the pool`;
}

/** Stops accepting, and ends when the requests in flight have their answers, or after `ms`. */
async function closeServer(app, ms, inFlight) {
  // Clients keep a connection alive after its answer.
  const idle = setInterval(() => app.server.closeIdleConnections(), 100);
  const force = setTimeout(() => {
    const requests = `requests in flight: ${inFlight()}`; // a connection may have none yet
    console.error(`Connections are open after ${ms} ms (${requests}): they are closed`);
    app.server.closeAllConnections();
  }, ms);
  await app.close();
  clearInterval(idle);
  clearTimeout(force);
}

/** Ends the workers. No request is left, so what still runs is what hangs. */
async function closePool(pool) {
  for (const { index, calls } of pool.workers) {
    for (const { name, startedAt } of calls) {
      console.error(
        `The pool's worker ${index} still runs ${name}, since ${startedAt.toISOString()}`,
      );
    }
  }
  await pool.close();
}

/** Has the child end when it has written what it was sent; kills it after `ms`. */
async function closeChild(child, ms) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const force = setTimeout(() => {
    console.error(`The child process ${child.pid} has not ended after ${ms} ms: it is killed`);
    child.kill('SIGKILL');
  }, ms);
  if (child.connected) child.disconnect();
  await once(child, 'exit');
  clearTimeout(force);
}
