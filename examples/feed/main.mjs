// Samples the state of the machine and writes the samples to a file, until a signal. A LooperThread
// enqueues the samples, a QueueRunner dequeues and writes them. If the disk is slow the samples
// wait in the queue; when the queue is full, the looper waits.

import { open } from 'node:fs/promises';
import { availableParallelism, constants, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { BoundedQueue, Coordinator, LooperThread, QueueRunner } from 'allstop';
import cliProgress from 'cli-progress';

const USAGE = `Usage: node examples/feed/main.mjs [--interval MS] FILE

Appends a line of JSON to FILE every MS milliseconds (default: 1000), with the load of
the machine and the memory of this process. Shows how many samples were taken and written,
and how many wait in the queue: in a terminal as one line, otherwise as a line each second.
Ctrl-C ends it, when the samples in the queue are written.`;

/** @typedef {{ at: string, load: number, rss: number, heapUsed: number }} Sample */

/** @returns {Sample} */
function sample() {
  const { rss, heapUsed } = process.memoryUsage();
  const [load] = loadavg();
  return { at: new Date().toISOString(), load: load / availableParallelism(), rss, heapUsed };
}

/** @returns {{ file: string, intervalMs: number } | undefined} */
function parseCommandLine() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      interval: { type: 'string', default: '1000' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new Error('Pass one FILE');
  const intervalMs = Number(values.interval);
  if (!(intervalMs > 0)) throw new Error(`MS must be a number above 0, not '${values.interval}'`);
  return { file, intervalMs };
}

/** A line on standard error: drawn anew in a terminal, else written once a second. */
function createDisplay() {
  return new cliProgress.SingleBar({
    format: 'sampled {sampled}, written {written}, queue {waiting}',
    gracefulExit: false, // it would install a signal handler, but here allstop handles signals
    clearOnComplete: true,
    hideCursor: true,
    noTTYOutput: true,
    notTTYSchedule: 1000,
  });
}

/** @param {{ file: string, intervalMs: number }} options */
async function main({ file, intervalMs }) {
  const out = await open(file, 'a');
  const coord = new Coordinator({ name: 'feed' });
  coord.stopOnSignals(); // on SIGINT and SIGTERM; a second signal kills the process
  /** @type {BoundedQueue<Sample>} */
  const samples = new BoundedQueue({ capacity: 100, name: 'samples', coordinator: coord });

  // The display reads it whenever it draws.
  const state = {
    sampled: 0,
    written: 0,
    get waiting() {
      return samples.size;
    },
  };
  /** @param {Sample[]} some */
  const write = async (some) => {
    await out.appendFile(some.map((each) => `${JSON.stringify(each)}\n`).join(''));
    state.written += some.length;
  };

  LooperThread.loop(
    coord,
    intervalMs,
    async () => {
      await samples.enqueue(sample()); // a stop may refuse it
      state.sampled++;
    },
    {
      name: 'sampler',
      missedTicks: 'skip', // after a delay take one sample, not all those that were missed
    },
  );
  const runner = new QueueRunner(samples, [
    async function write_out(queue) {
      await write(await queue.dequeueMany(100));
    },
  ]);
  runner.createThreads({ coordinator: coord, start: true });

  const display = createDisplay();
  display.start(samples.capacity, 0, state);
  try {
    await coord.join();
    // The samples that are left after the stop.
    for await (const each of samples) await write([each]);
  } finally {
    display.stop(); // else its timer would keep the process alive
    await out.close();
  }
  console.log(`Samples written: ${state.written}`);
  const signal = coord.stopRecord?.requester.signal;
  if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
}

let options;
try {
  options = parseCommandLine();
  if (options === undefined) console.log(USAGE);
} catch (error) {
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}
if (options !== undefined) {
  try {
    await main(options);
  } catch (error) {
    console.error(`Failed: ${error.message}`);
    process.exitCode = 1;
  }
}
