// Verifies the Spin models in test/models, and that their mutants fail.
//
//   node scripts/verify-models.mjs [MODEL ...]      e.g. wake join; without names: all
//
// The comment at the top of a model lists its verifications, one a line:
//   verify: safety [-DNAME ...]                     asserts and deadlocks
//   verify: CLAIM [fair] [-DNAME ...]               an ltl claim; fair: under weak fairness
//   mutant: NAME safety|CLAIM [fair] [-DNAME ...]   with MUTANT_NAME defined, this must fail
// Every search is exhaustive: a search that hits a limit of depth, memory or time fails.
// Each line's folder under build-models/ keeps the verifier and the counterexample.
// Needs spin and a C compiler (Debian: spin, gcc; the variable CC names another compiler). Exit
// code 2: spin or the compiler is missing.
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const models = join(root, 'test', 'models');
const built = join(root, 'build-models');
const compiler = process.env.CC ?? 'cc';
const MOST_SECONDS = 100; // of a processor: others may have the rest of it
const MAX_DEPTH = 200_000;
const MEMORY_MB = 3_000;
const FEWEST_MUTANTS = 4;

for (const [command, flag, remedy] of [
  ['spin', '-V', 'install the Debian package spin'],
  [compiler, '--version', 'install gcc, or set CC'],
]) {
  if (spawnSync(command, [flag]).error === undefined) continue;
  console.error(`verify-models: the command '${command}' was not found: ${remedy}`);
  process.exit(2);
}

const all = readdirSync(models).filter((name) => name.endsWith('.pml'));
const wanted = process.argv.slice(2).map((name) => `${basename(name, '.pml')}.pml`);
const unknown = wanted.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`verify-models: no such model in test/models: ${unknown.join(', ')}`);
  process.exit(2);
}

/** Reads a model's runs from its first comment, and checks that they cover the model. */
function read(file) {
  const text = readFileSync(join(models, file), 'utf8');
  const runs = [];
  const faults = [];
  for (const [, kind, rest] of text.matchAll(/^ *(verify|mutant): (.*?)(?: \*\/)?$/gm)) {
    const words = rest.trim().split(/\s+/);
    const mutant = kind === 'mutant' ? words.shift() : undefined;
    const [property, ...options] = words;
    const isFair = options.includes('fair');
    const defines = options.filter((option) => option !== 'fair');
    if (mutant !== undefined) defines.push(`-DMUTANT_${mutant}`);
    runs.push({ file, mutant, property, isFair, defines });
  }
  const inText = (pattern) => new Set([...text.matchAll(pattern)].map(([, name]) => name));
  const mutants = inText(/^#.*?\bMUTANT_([A-Z_]+)/gm);
  const listed = new Set(runs.map(({ mutant }) => mutant).filter(Boolean));
  const claims = inText(/^ltl (\w+)/gm);
  const verified = new Set(runs.filter(({ mutant }) => !mutant).map(({ property }) => property));
  for (const name of mutants) if (!listed.has(name)) faults.push(`no line runs MUTANT_${name}`);
  for (const name of listed) if (!mutants.has(name)) faults.push(`no such mutant: ${name}`);
  for (const name of ['safety', ...claims]) {
    if (!verified.has(name)) faults.push(`no line verifies ${name}`);
  }
  if (listed.size < FEWEST_MUTANTS) faults.push(`has fewer than ${FEWEST_MUTANTS} mutants`);
  return { file, runs, faults };
}

function run(command, args, cwd) {
  return new Promise((done) => {
    const options = { cwd, maxBuffer: 64 * 1024 * 1024 };
    const limited = ['-c', `ulimit -t ${MOST_SECONDS} && exec "$0" "$@"`, command, ...args];
    execFile('sh', limited, options, (error, stdout, stderr) => {
      done({ output: stdout + stderr, error });
    });
  });
}

const verifiers = new Map();

/** The folder of the compiled verifier: all claims of a model share one. */
function verifierOf({ file, property, defines }) {
  const isSafety = property === 'safety';
  const key = [basename(file, '.pml'), isSafety ? 'safety' : 'claims', ...defines].join(' ');
  let verifier = verifiers.get(key);
  if (verifier === undefined) {
    const folder = join(built, key.replaceAll(/[^\w-]+/g, '_'));
    verifier = compile(file, folder, defines, [
      ...(isSafety ? ['-DSAFETY', '-DNOCLAIM'] : ['-DNFAIR=3']),
      '-O0', // compiling pan.c with optimization takes longer than it saves in the search
    ]);
    verifiers.set(key, verifier);
  }
  return verifier;
}

async function compile(file, folder, defines, options) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const generated = await run(
    'spin',
    [`-P${compiler} -E -x c`, '-a', ...defines, join(models, file)],
    folder,
  );
  if (generated.error !== null) return { folder, fault: `spin: ${generated.output.trim()}` };
  const args = ['-w', ...options, `-DMEMLIM=${MEMORY_MB}`, '-o', 'pan', 'pan.c'];
  const compiled = await run(compiler, args, folder);
  if (compiled.error !== null) return { folder, fault: `${compiler}: ${compiled.output.trim()}` };
  return { folder, fault: undefined };
}

/** @returns `violation` if Spin found a counterexample, `fault` if the search was not complete */
async function search(each) {
  const verifier = await verifierOf(each);
  if (verifier.fault !== undefined) return { fault: verifier.fault };
  const folder = join(verifier.folder, each.property);
  mkdirSync(folder, { recursive: true });
  const args = [`-m${MAX_DEPTH}`, '-n'];
  if (each.property !== 'safety') args.push('-a', '-N', each.property);
  if (each.isFair) args.push('-f');
  const { output, error } = await run(join(verifier.folder, 'pan'), args, folder);
  const states = output.match(/([\d.e+]+) states, stored/)?.[1];
  const errors = output.match(/errors: (\d+)/)?.[1];
  const limit = output.match(/max search depth too small|reached -DMEMLIM|out of memory/)?.[0];
  const violation = output.match(/^pan:\d+: (.*) \(at depth/m)?.[1];
  if (error?.signal) return { folder, states, fault: `${error.signal} (limit ${MOST_SECONDS} s)` };
  if (errors === undefined) return { folder, states, fault: output.trim() || String(error) };
  if (errors !== '0') return { folder, states, violation: violation ?? 'an error' };
  if (limit !== undefined) return { folder, states, fault: `not exhaustive: ${limit}` };
  return { folder, states };
}

let passed = 0;
let failed = 0;

function report(isOk, title, detail) {
  if (isOk) passed += 1;
  else failed += 1;
  console.log(`${isOk ? 'ok    ' : 'FAILED'} ${title}${detail}`);
}

async function verify(each) {
  const started = performance.now();
  const { folder, states, violation, fault } = await search(each);
  const took = `${((performance.now() - started) / 1_000).toFixed(1)} s`;
  const model = basename(each.file, '.pml');
  const options = each.defines.filter((define) => !define.startsWith('-DMUTANT_'));
  const name = [each.mutant && `mutant ${each.mutant}`, each.property, each.isFair && 'fair']
    .filter(Boolean)
    .join(' ');
  const title = `${model}: ${[name, ...options].join(' ')}`.padEnd(72);
  const counted = `${states ?? '?'} states, ${took}`;
  if (fault !== undefined) report(false, title, ` ${counted}: ${fault}`);
  else if (each.mutant !== undefined) {
    const verdict = violation === undefined ? 'it was not found' : `found: ${violation}`;
    report(violation !== undefined, title, ` ${counted}, ${verdict}`);
  } else if (violation === undefined) report(true, title, ` ${counted}`);
  else {
    report(false, title, ` ${counted}: ${violation}`);
    const define = each.defines.join(' ');
    console.log(`       cd ${folder} &&`);
    console.log(`       spin -t -p -g ${define} ${join(models, each.file)}`);
  }
}

const started = performance.now();
const contents = (wanted.length > 0 ? wanted : all).map(read);
for (const { file, faults } of contents) {
  for (const fault of faults) report(false, `${basename(file, '.pml')}: ${fault}`, '');
}
// The verifications run before the mutants, as they take longer.
const queue = contents.flatMap(({ runs }) => runs);
queue.sort((a, b) => Number(a.mutant !== undefined) - Number(b.mutant !== undefined));
const worker = async () => {
  for (let each = queue.shift(); each !== undefined; each = queue.shift()) await verify(each);
};
await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
console.log(`in ${((performance.now() - started) / 1_000).toFixed(0)} s`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
