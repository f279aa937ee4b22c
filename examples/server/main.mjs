// A server with worker threads, a child process and a job, which ends in order: see README.md.
import { Coordinator } from 'allstop';
import { serve } from './server.mjs';

const { PORT = 8080, AUDIT = 'audit.log', DRAIN_MS = 0, GRACE_MS = 10_000 } = process.env;
const [port, drainMs, graceMs] = [PORT, DRAIN_MS, GRACE_MS].map(Number);

await Coordinator.run((coord) => serve(coord, { port, audit: AUDIT, drainMs, graceMs }), {
  name: 'server',
  stopOnSignals: ['SIGINT', 'SIGTERM'],
  stopOnUncaught: true, // an uncaught error closes everything in order, too
  exitAfterStopMs: graceMs, // whatever hangs
});
