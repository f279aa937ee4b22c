// The server of examples/server in which something hangs. argv: what, and the grace.
import { Coordinator } from 'allstop';
import { serve } from '../../../examples/server/server.mjs';
import { hangs, WORKER } from './hangs.mjs';

const [what, grace] = process.argv.slice(2);
const graceMs = Number(grace);
const writer = new URL('./ignores-everything.mjs', import.meta.url);

await Coordinator.run(
  async (coord) => {
    const { app, pool, child } = await serve(coord, {
      port: 0,
      audit: '/dev/null',
      drainMs: 0,
      graceMs,
      files: {
        tasks: new URL('./hanging-tasks.mjs', import.meta.url),
        writer: what === 'a child ignores SIGTERM' ? writer : './audit.mjs',
      },
    });
    await hangs[what]({
      coord,
      app,
      child,
      run: (name, words) => pool.run(name, [words]),
      spawn: (name) => coord.spawn(WORKER, { name, workerData: name }),
    });
    console.log(`hangs, with child ${child.pid}`);
  },
  {
    name: 'server',
    stopOnSignals: ['SIGINT', 'SIGTERM'],
    stopOnUncaught: true,
    exitAfterStopMs: graceMs,
  },
);
