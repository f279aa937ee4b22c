// An HTTP server with worker threads, a child process and a job that runs every second, which ends
// in order at SIGTERM or Ctrl-C. README.md says what happens then.
import { parseArgs } from 'node:util';
import { Coordinator } from 'allstop';
import { serve } from './server.mjs';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '8080' },
    host: { type: 'string', default: '127.0.0.1' },
    audit: { type: 'string', default: 'audit.log' },
    'drain-ms': { type: 'string', default: '0' }, // what the load balancer wants, such as 5000
    'grace-ms': { type: 'string', default: '10000' }, // less than the orchestrator gives
  },
});

await Coordinator.run(
  async (coord) => {
    const { address } = await serve(coord, {
      port: Number(values.port),
      host: values.host,
      auditFile: values.audit,
      drainMs: Number(values['drain-ms']),
      graceMs: Number(values['grace-ms']),
    });
    console.log(`listening on ${address}`);
  },
  {
    name: 'server',
    stopOnSignals: ['SIGINT', 'SIGTERM'],
    stopOnUncaught: true, // an uncaught error closes everything in order, too
    exitAfterStopMs: Number(values['grace-ms']), // whatever hangs
  },
);
