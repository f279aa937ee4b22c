/**
 * What each ledger and each option of a call costs: instructions (callgrind) and bytes of the heap of a
 * trivial call with it and without. `npm run bench:costs` writes bench/results/costs.md. Counts do not
 * depend on how busy the machine is. Linux, with valgrind.
 */

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('costs-process.mjs', import.meta.url));
const page = fileURLToPath(new URL('results/costs.md', import.meta.url));
const [FEW, MANY] = [2, 400];

/** By its name in the table: the feature of costs-process.mjs, or the method that is left out. */
const ROWS = {
  'a plain call': { feature: 'plain' },
  'the same without the timeline': { without: 'note(type, call, name, worker = NO_WORKER) {' },
  'without `stats()` of functions': { without: 'onSettled(call, { state, isKept }) {' },
  'with a subscriber of `allstop:cluster:task`': { feature: 'channels' },
  'with a tracer provider of OpenTelemetry': { feature: 'spans' },
  '`timeoutMs`': { feature: 'timeoutMs' },
  '`runTimeoutMs`': { feature: 'runTimeoutMs' },
  '`signal`': { feature: 'signal' },
  '`retryOn`': { feature: 'retryOn' },
  '`onProgress`': { feature: 'onProgress' },
  '`key`, with `FileResults`': { feature: 'key' },
};

function run(command, flags, { feature = 'plain', without }, calls) {
  const env = { ...process.env, ...(without !== undefined && { ALLSTOP_WITHOUT: without }) };
  const args = [...flags, script, feature, String(calls)];
  const found = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 26, env });
  if (found.status !== 0) throw new Error(`${command} has failed: ${found.stderr}`);
  return found;
}

function instructions(row, calls) {
  const flags = ['--tool=callgrind', '--callgrind-out-file=/dev/null'];
  const { stderr } = run('valgrind', [...flags, process.execPath, '--single-threaded'], row, calls);
  return Number(/Collected : (\d+)/.exec(stderr)?.[1]) / 1_000;
}

/** Options change nothing before the first call: their programs begin as the plain one. */
const beginnings = new Map();

function beginning(row) {
  const isOption = row.without === undefined && !['channels', 'spans', 'key'].includes(row.feature);
  const known = isOption ? ROWS['a plain call'] : row;
  if (!beginnings.has(known)) beginnings.set(known, instructions(known, FEW));
  return beginnings.get(known);
}

function bytes(row) {
  // So much young space that nothing is collected meanwhile.
  const space = ['--min-semi-space-size=64', '--max-semi-space-size=64'];
  const one = () => Number(run(process.execPath, ['--expose-gc', ...space], row, 4_000).stdout);
  return Math.round([one(), one(), one()].toSorted((a, b) => a - b)[1]);
}

const number = (value) => Math.round(value).toLocaleString('en');
const signed = (value) => `${value < 0 ? '−' : '+'}${number(Math.abs(value))}`;
const lines = [];
let plain;
for (const [what, row] of Object.entries(ROWS)) {
  const found = {
    thousand: (instructions(row, MANY) - beginning(row)) / (MANY - FEW),
    bytes: bytes(row),
  };
  plain ??= found;
  const cells = [
    what,
    number(found.thousand),
    row === ROWS['a plain call'] ? '' : signed(found.thousand - plain.thousand),
    number(found.bytes),
    row === ROWS['a plain call'] ? '' : signed(found.bytes - plain.bytes),
  ];
  lines.push(`| ${cells.join(' | ')} |`);
  process.stderr.write(`${lines.at(-1)}\n`);
}
const text = `# What the parts of a call cost

\`npm run bench:costs\` counts it: instructions and bytes of a trivial call on one worker thread, one after the other, of the first ${MANY} (V8 compiles the functions of the call meanwhile, on all threads together), beside the plain call. What is kept of each call anyway, the timeline and \`stats()\`, is left out of a copy of the program. Node ${process.versions.node}.

| call | thousand instructions | | bytes | |
| --- | --- | --- | --- | --- |
${lines.join('\n')}
`;
writeFileSync(page, text);
process.stdout.write(text);
