// The process that fuzzes one target written in TypeScript, guided by the branches that run:
//   loop.mjs JOB.json
// An input that runs a branch for the first time, or clearly more often than all before it, is
// kept and changed again. Before each execution the input is in the file `current`, so that the
// parent process has it even if this process hangs, is killed or runs out of memory. Each second,
// and at the end, a line of JSON goes to stdout.
import { createHash } from 'node:crypto';
import { mkdirSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import v8 from 'node:v8';
import { dictionaryOf, mutate, randomOf } from './mutate.mjs';

const job = JSON.parse(readFileSync(process.argv[2], 'utf8'));
/** The longest an input may take, in milliseconds of processor time. */
const SLOW_MS = 2_000;
/** The most bytes that a decoder may take, besides a multiple of the input's length. */
const MOST_BYTES = 32 * 1024 * 1024;
const BYTES_PER_BYTE = 4_096;
/** The event loop turns after this many executions: finalizers and rejections run there. */
const TURN_EVERY = 128;

const branches = new Uint8Array(job.branches);
globalThis.branchCounters = branches;
const {
  fuzz,
  mutate: restructure,
  takesMemory = false,
} = await import(pathToFileURL(job.bundle).href);

const random = randomOf(job.seed);
const dictionary = dictionaryOf(job.literals);
const current = openSync(job.current, 'w+');
mkdirSync(job.corpus, { recursive: true });

let asynchronous;
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => {
    asynchronous ??= error;
  });
}

/** V8 fills the hundreds of megabytes that it reserves: a second on an idle processor. */
const slowMs = takesMemory ? 10 * SLOW_MS : SLOW_MS;

const prototypes = [Object, Array, Function, Error, Map, Set, Uint8Array, Promise].map(
  ({ prototype }) => prototype,
);
const keysOf = (object) => Reflect.ownKeys(object).length;
const cleanKeys = prototypes.map(keysOf);

const memory = () => {
  const { used_heap_size: heap, external_memory: external } = v8.getHeapStatistics();
  return heap + external;
};
const now = () => performance.now();

/** Runs the target once. @throws what the target throws, or an Error that names another fault */
function execute(input) {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(input.length);
  writeSync(current, length, 0, 4, 0);
  writeSync(current, input, 0, input.length, 4);
  branches.fill(0);
  const bytesBefore = memory();
  const before = now();
  const cpuBefore = process.cpuUsage();
  fuzz(Uint8Array.from(input));
  const took = now() - before;
  if (took > slowMs) {
    const { user, system } = process.cpuUsage(cpuBefore);
    const ms = (user + system) / 1000;
    if (ms > slowMs) throw new Error(`The input took ${Math.round(ms)} ms`);
  }
  const taken = memory() - bytesBefore;
  if (!takesMemory && taken > MOST_BYTES + BYTES_PER_BYTE * input.length) {
    throw new Error(`The input of ${input.length} bytes took ${taken} bytes of memory`);
  }
  prototypes.forEach((prototype, i) => {
    if (keysOf(prototype) !== cleanKeys[i]) {
      throw new Error(`The input changed ${prototype.constructor.name}.prototype`);
    }
  });
}

/** For each branch a bit for each magnitude of the number of its executions. */
const seen = new Uint8Array(job.branches);
const magnitude = (count) => 1 << Math.min(7, 31 - Math.clz32(count));
let features = 0;
let covered = 0;

/** Whether the last execution has shown something new. */
function isNew() {
  let found = false;
  for (let i = 0; i < branches.length; i += 1) {
    if (branches[i] === 0) continue;
    const bit = magnitude(branches[i]);
    if ((seen[i] & bit) !== 0) continue;
    if (seen[i] === 0) covered += 1;
    seen[i] |= bit;
    features += 1;
    found = true;
  }
  return found;
}

const corpus = [];
let executions = 0;
let added = 0;
const say = (more) =>
  writeSync(1, `${JSON.stringify({ executions, covered, features, added, ...more })}\n`);

function fault(error) {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  say({ fault: text });
  process.exit(1);
}

function attempt(input, save) {
  executions += 1;
  try {
    execute(input);
  } catch (error) {
    fault(error);
  }
  if (!isNew()) return;
  corpus.push(input);
  if (!save) return;
  added += 1;
  const name = createHash('sha1').update(input).digest('hex').slice(0, 16);
  writeFileSync(join(job.corpus, name), input);
}

if (job.inputs.length > 0) {
  for (const path of job.inputs) attempt(readFileSync(path), false);
  say({ isDone: true });
  process.exit(0);
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const seeds = [...job.seeds, job.corpus].flatMap((folder) => {
  try {
    return readdirSync(folder).map((file) => readFileSync(join(folder, file)));
  } catch {
    return []; // no seeds of this kind
  }
});
attempt(Buffer.alloc(0), false);
for (const seed of seeds) attempt(seed, false);
if (corpus.length === 0) corpus.push(Buffer.from('0'));

const end = now() + job.seconds * 1000;
let told = now();
while (now() < end) {
  for (let i = 0; i < TURN_EVERY; i += 1) {
    // Half of the time one of the last inputs: they lead to what is not known yet.
    const last = Math.min(corpus.length, 16);
    const at = random(2) === 0 ? corpus.length - 1 - random(last) : random(corpus.length);
    const parent = corpus[at];
    const structured = restructure !== undefined && random(2) === 0;
    const input = structured
      ? (restructure(parent, random) ?? mutate(parent, random, dictionary, corpus))
      : mutate(parent, random, dictionary, corpus);
    attempt(Buffer.from(input), true);
  }
  await turn();
  if (asynchronous !== undefined) fault(asynchronous);
  if (now() - told > 1000) {
    told = now();
    say({});
  }
}
say({ isDone: true });
process.exit(0);
