// The server of examples/server in which something hangs. argv: what, and the grace.
import { Coordinator } from 'allstop';
import { serve } from '../../../examples/server/server.mjs';
import { hangs, WORKER } from './hangs.mjs';

const [what, grace] = process.argv.slice(2);
const graceMs = Number(grace);
const auditModule = new URL('./ignores-everything.mjs', import.meta.url);

await Coordinator.run(
  async (coord) => {
    const { app, pool, audit, address } = await serve(coord, {
      port: 0,
      host: '127.0.0.1',
      auditFile: '/dev/null',
      drainMs: 0,
      graceMs,
      tasksModule: new URL('./hanging-tasks.mjs', import.meta.url),
      ...(what === 'a child ignores SIGTERM' && { auditModule }),
    });
    await hangs[what]({
      coord,
      app,
      child: audit,
      run: (name, words) => pool.run(name, [words]),
      spawn: (name) => coord.spawn(WORKER, { name, workerData: name }),
    });
    console.log(`listening on ${address}, with child ${audit.pid}`);
  },
  {
    name: 'server',
    stopOnSignals: ['SIGINT', 'SIGTERM'],
    stopOnUncaught: true,
    exitAfterStopMs: graceMs,
  },
);
