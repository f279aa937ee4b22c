// A process that forks.mjs has started with coord.fork(). argv: what it does.
import { writeSync } from 'node:fs';
import { Coordinator } from 'allstop';

const coord = Coordinator.current();

/** Computes, so that the event loop does not turn: until the coordinator is stopped. */
const acts = {
  async compute() {
    await new Promise((resolve) => process.send('computing', resolve));
    while (!coord.shouldStop());
    const sawStopAt = performance.timeOrigin + performance.now(); // one clock for all processes
    const { error } = coord.stopRecord;
    process.send({ sawStopAt, message: error?.message, part: error?.part });
    process.disconnect();
  },
  fail() {
    coord.requestStop(Object.assign(new RangeError('the fork is bent'), { part: 7 }));
  },
  throw() {
    throw Object.assign(new RangeError('the fork broke'), { part: 8 });
  },
  exit() {
    process.exit(3);
  },
  /** Writes the error of the stop to standard output: nothing listens to its messages then. */
  async alone() {
    process.on('error', () => {});
    await new Promise((resolve) => process.send('computing', resolve));
    while (!coord.shouldStop());
    const { code, message } = coord.stopRecord.error;
    writeSync(1, JSON.stringify({ code, message }));
    process.exit();
  },
};
await acts[process.argv[2]]();
