// Finds files with the same bytes. C++ threads walk the directory and hash files, JavaScript
// workers compare files with the same hash, and one coordinator stops and joins all of them.

import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, constants } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { BoundedQueue, Coordinator, LooperThread } from 'allstop';
import { createProgress } from './progress.mjs';
import { toJson, toTable } from './summary.mjs';

const VERIFIERS = 2;
const OPTIONS = ['--strict', '--json', '--help', '-h', '--'];

// It fits a terminal of 40 columns.
const USAGE = `Usage: npm start -- [OPTIONS] [DIR]

Finds files with the same bytes below
DIR (default: this repository's
node_modules).

  --strict   a file or directory that
             cannot be read is an error
  --json     all groups, as JSON, not a
             table of the largest
  --help     this text

Ctrl-C stops all threads and says what
was stopped.`;

/** @typedef {import('./verify-worker.mjs').Result} Result */

/** @returns {{ directory: string, strict: boolean, json: boolean } | undefined} */
function parseCommandLine() {
  const args = process.argv.slice(2);
  const unknown = args.find((arg) => arg.startsWith('-') && !OPTIONS.includes(arg));
  if (unknown !== undefined) throw new Error(`Unknown option '${unknown}'`);
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      strict: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  if (positionals.length > 1) throw new Error(`One directory, not ${positionals.length}`);
  const directory = resolve(
    positionals[0] ?? fileURLToPath(new URL('../../node_modules', import.meta.url)),
  );
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Error(`Not a directory: ${directory}`);
  }
  return { directory, strict: values.strict, json: values.json };
}

/**
 * C++ threads walk and hash. They put the files into a queue for each worker, and wait when a queue
 * is full. Throws the error that stopped the scan, if there was one.
 *
 * @param {Coordinator} coord
 * @param {{ directory: string, strict: boolean }} options
 */
async function findDuplicates(coord, { directory, strict }) {
  const { scan } = createRequire(import.meta.url)('./build/Release/find_duplicates.node');
  /** @type {BoundedQueue<Result>} */
  const results = new BoundedQueue({ capacity: VERIFIERS });

  // A queue for each worker, because files with the same hash must reach the same worker.
  const queues = Array.from({ length: VERIFIERS }, (_, i) => {
    const files = new BoundedQueue({ capacity: 256, codec: 'bytes', coordinator: coord });
    // spawn() registers the worker: join() waits for it, and its error stops all threads.
    coord.spawn(new URL('./verify-worker.mjs', import.meta.url), {
      name: `verifier ${i + 1}`,
      workerData: { strict, files: files.handle, results: results.handle },
    });
    return files;
  });
  // The addon takes the Coordinator and BoundedQueue objects, and registers its C++ threads.
  const progressOf = scan(coord, directory, { hashers: availableParallelism(), strict }, queues);

  // A child coordinator, because the display must run until the scan has ended: join() of `coord`
  // does not wait for the looper, and a stop of `coord` stops it, too.
  const screen = coord.child({ name: 'screen' });
  const progress = createProgress(process.stderr);
  LooperThread.loop(screen, 100, () => progress.update(progressOf()));
  try {
    await coord.join();
  } finally {
    screen.requestStop();
    try {
      await screen.join(); // throws the error of `coord`, if it has one
    } finally {
      progress.end(); // else the bar's timer would keep the process alive, with the cursor hidden
    }
  }

  /** @type {Result} */
  const all = { groups: [], unreadable: [] };
  results.close();
  for await (const { groups, unreadable } of results) {
    all.groups = [...all.groups, ...groups];
    all.unreadable = [...all.unreadable, ...unreadable];
  }
  return { files: progressOf().files, ...all };
}

/** @param {{ directory: string, strict: boolean, json: boolean }} options */
async function main(options) {
  const coord = new Coordinator({ name: 'find-duplicates' });
  coord.stopOnSignals(); // on SIGINT and SIGTERM; a second signal kills the process

  let found;
  try {
    found = await findDuplicates(coord, options);
  } catch (error) {
    const type = error.nativeType || error.name;
    const thread = coord.stopRecord?.requester.threadName;
    const where = thread === undefined ? '' : ` in the thread '${thread}'`; // before the first thread
    console.error(`Failed: ${type}${where}: ${error.message}`);
    process.exitCode = 1;
    return;
  }

  const signal = coord.stopRecord?.requester.signal;
  if (signal !== undefined) {
    console.error(coord.explain().toString());
    process.exitCode = 128 + constants.signals[signal];
    return;
  }
  console.log(options.json ? toJson(options.directory, found) : toTable(options.directory, found));
}

/** @type {ReturnType<typeof parseCommandLine>} */
let options;
try {
  options = parseCommandLine();
  if (options === undefined) console.log(USAGE);
} catch (error) {
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}
if (options !== undefined) await main(options);
