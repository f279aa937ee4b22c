// Samples the state of the machine and writes the samples to a file, until a signal. A LooperThread
// enqueues the samples, a QueueRunner dequeues and writes them. If the disk is slow the samples
// wait in the queue; when the queue is full, the looper waits.

import { open } from 'node:fs/promises';
import { availableParallelism, constants, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { BoundedQueue, Coordinator, LooperThread, QueueRunner } from 'allstop';

const USAGE = `Usage: node examples/feed/main.mjs [--interval MS] FILE

Appends a line of JSON to FILE every MS milliseconds (default: 1000), with the load of
the machine and the memory of this process. Ctrl-C ends it, when all that waited in the
queue is written.`;

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
  if (file === undefined || others.length > 0) throw new Error('One file, please');
  const intervalMs = Number(values.interval);
  if (!(intervalMs > 0)) throw new Error(`No interval: ${values.interval}`);
  return { file, intervalMs };
}

/** @param {{ file: string, intervalMs: number }} options */
async function main({ file, intervalMs }) {
  const out = await open(file, 'a');
  const coord = new Coordinator({ name: 'feed' });
  coord.stopOnSignals(); // on SIGINT and SIGTERM; a second signal kills the process
  /** @type {BoundedQueue<Sample>} */
  const samples = new BoundedQueue({ capacity: 100, name: 'samples', coordinator: coord });

  let written = 0;
  /** @param {Sample[]} some */
  const write = async (some) => {
    await out.appendFile(some.map((each) => `${JSON.stringify(each)}\n`).join(''));
    written += some.length;
  };

  LooperThread.loop(coord, intervalMs, () => samples.enqueue(sample()), {
    name: 'sampler',
    missedTicks: 'skip', // after a delay take one sample, not all those that were missed
  });
  const runner = new QueueRunner(samples, [
    async function write_out(queue) {
      await write(await queue.dequeueMany(100));
    },
  ]);
  runner.createThreads({ coordinator: coord, start: true });

  try {
    await coord.join();
    // The samples that are left after the stop.
    for await (const each of samples) await write([each]);
  } finally {
    await out.close();
  }
  console.log(`Samples written: ${written}`);
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
