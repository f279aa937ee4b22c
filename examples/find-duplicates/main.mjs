// Finds files with the same bytes. C++ threads walk and hash, JavaScript workers
// compare what hashes alike, and one coordinator stops and joins them all.

import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, constants } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Coordinator } from 'allstop';
import { createProgress } from './progress.mjs';
import { toJson, toTable } from './summary.mjs';

const VERIFIERS = 2;

const USAGE = `Usage: npm start [-- [--strict] [--json] [DIR]]

Finds files with the same bytes below DIR (default: this repository's node_modules).

  --strict   a file or directory that cannot be read is an error
  --json     all groups, as JSON, instead of a table of the largest
  --help     this text

Ctrl-C stops all threads and says what was stopped.`;

/** @typedef {import('./verify-worker.mjs').Group} Group */
/** @typedef {import('./verify-worker.mjs').HashedFile} HashedFile */
/**
 * @typedef {object} Report  What the C++ threads have done since the report before.
 * @property {number} files
 * @property {number} bytesToHash
 * @property {number} bytesHashed
 * @property {HashedFile[]} hashed
 * @property {string[]} unreadable  messages; empty if strict
 */

/** @returns {{ directory: string, strict: boolean, json: boolean } | undefined} */
function parseCommandLine() {
  const { values, positionals } = parseArgs({
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
 * Returns early, with what there is, once the coordinator is stopped.
 *
 * @param {Coordinator} coord
 * @param {{ directory: string, strict: boolean }} options
 */
async function findDuplicates(coord, { directory, strict }) {
  const { scan } = createRequire(import.meta.url)('./build/Release/find_duplicates.node');
  const found = {
    files: 0,
    bytesToHash: 0,
    bytesHashed: 0,
    groups: /** @type {Group[]} */ ([]),
    unreadable: /** @type {string[]} */ ([]),
  };

  // spawn() registers: join() waits for these workers, and their errors stop all.
  const verifiers = Array.from({ length: VERIFIERS }, (_, i) =>
    coord.spawn(new URL('./verify-worker.mjs', import.meta.url), {
      name: `verifier ${i + 1}`,
      workerData: { strict },
    }),
  );
  const verified = verifiers.map((worker) => {
    worker.on('message', ({ groups, unreadable }) => {
      found.groups = [...found.groups, ...groups];
      found.unreadable = [...found.unreadable, ...unreadable];
    });
    return new Promise((ended) => worker.once('exit', ended));
  });

  const progress = createProgress(process.stderr);
  try {
    // The addon takes the coordinator itself, and registers its C++ threads there.
    await scan(
      coord,
      directory,
      { hashers: availableParallelism(), strict },
      (/** @type {Report} */ report) => {
        found.files += report.files;
        found.bytesToHash += report.bytesToHash;
        found.bytesHashed += report.bytesHashed;
        for (const message of report.unreadable) found.unreadable.push(message);
        progress.update(found);
        // Files that hash alike must meet in one worker.
        const shares = verifiers.map(() => /** @type {HashedFile[]} */ ([]));
        for (const file of report.hashed) {
          shares[Number.parseInt(file.hash.slice(-2), 16) % VERIFIERS].push(file);
        }
        verifiers.forEach((worker, i) => {
          if (shares[i].length > 0) worker.postMessage(shares[i]);
        });
      },
    );
    for (const worker of verifiers) worker.postMessage('no more');
    await Promise.all(verified);
  } finally {
    progress.end();
  }
  return found;
}

/** @param {{ directory: string, strict: boolean, json: boolean }} options */
async function main(options) {
  const coord = new Coordinator({ name: 'find-duplicates' });
  coord.stopOnSignals(); // SIGINT, SIGTERM; a second one kills

  let found;
  try {
    found = await coord.stopOnException(() => findDuplicates(coord, options));
    await coord.join();
  } catch (error) {
    const type = error.nativeType || error.name;
    const thread = coord.stopRecord?.requester.threadName;
    console.error(`Failed: ${type} in the thread '${thread}': ${error.message}`);
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
