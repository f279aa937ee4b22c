// The least server with a pool that ends in order at Ctrl-C and SIGTERM.
import { Coordinator } from 'allstop';
import { closeOnStop } from 'allstop/http';
import { createPool } from 'allstop/pool';
import Fastify from 'fastify';

// biome-ignore format: as in the README
await Coordinator.run(async (coord) => {
  const pool = createPool(new URL('tasks.mjs', import.meta.url), { closeOnStop: coord });
  const app = Fastify();
  app.get('/', () => pool.run('answer'));
  closeOnStop(app.server, coord, { close: () => app.close() });
  console.log(await app.listen({ port: 0 }));
  await coord.waitForStop();
}, { stopOnSignals: ['SIGINT', 'SIGTERM'], exitAfterStopMs: 10_000 });
