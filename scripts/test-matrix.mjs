// Uses the packed tarball in a project of its own, on every runtime and platform that can run on
// this machine:
//   npm run test:matrix                        everything
//   npm run test:matrix -- --quick             three runtimes and musl, and the stories that tell most
//   npm run test:matrix -- --only "Node 2"     only runtimes whose name or target contains this
//   npm run test:matrix -- --write             everything, and rewrites docs/platforms.md
//   npm run test:matrix -- --tarball FILE      uses this tarball instead of packing the repository
// Failures on Bun and Deno are only reported; failures on Node fail this script.
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import Table from 'cli-table3';
import { crossBuild } from './cross-build.mjs';
import { writePlatforms } from './matrix/platforms.mjs';
import { lacking, prepare, runtimes } from './matrix/runtimes.mjs';
import { scenarios } from './matrix/scenarios.mjs';
import { targets } from './targets.mjs';

const root = resolve(import.meta.dirname, '..');
const SCENARIO_MS = 120_000;
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    only: { type: 'string' },
    write: { type: 'boolean' },
    tarball: { type: 'string' },
  },
});
const work = mkdtempSync(join(tmpdir(), 'allstop-matrix-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

/** Makes a project for each target: the tarball installed, the scripts, and a test addon. */
function createProjects(tarball, names) {
  const first = join(work, 'project');
  mkdirSync(first);
  writeFileSync(join(first, 'package.json'), '{ "private": true, "type": "module" }\n');
  const flags = ['--silent', '--no-audit', '--no-fund', '--ignore-scripts'];
  execFileSync('npm', ['install', ...flags, tarball], { cwd: first, stdio: 'inherit' });
  cpSync(join(root, 'test/lifecycle/scripts'), join(first, 'test/lifecycle/scripts'), {
    recursive: true,
  });
  for (const name of names) {
    const target = targets.find((each) => each.name === name);
    const project = join(work, name);
    cpSync(first, project, { recursive: true });
    const addon = crossBuild({
      target,
      source: join(root, 'test/addons/test-addon'),
      build: join(root, 'build-matrix', name),
      cmakeTarget: 'test_addon',
    });
    const folder = join(project, 'test/addons/test-addon/build/Release');
    mkdirSync(folder, { recursive: true });
    copyFileSync(addon, join(folder, 'test_addon.node'));
  }
}

/** Returns a function that starts a script of test/lifecycle/scripts and collects its output. */
function starter({ target, prefix, program, flags, env, usesFiles }) {
  const cwd = join(work, target);
  return (name, rest = []) => {
    const script = join(cwd, 'test/lifecycle/scripts', `${name}.mjs`);
    const [command, ...args] = [...prefix, program, ...flags, script, ...rest];
    const files = ['stdout', 'stderr'].map((each) => join(cwd, each));
    const streams = usesFiles ? files.map((file) => openSync(file, 'w')) : ['pipe', 'pipe'];
    const child = spawn(command, args, {
      cwd,
      stdio: ['ignore', ...streams],
      env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1', ...env },
    });
    if (usesFiles) for (const stream of streams) closeSync(stream);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
      // A process that the script has started may hold these pipes for ever.
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, SCENARIO_MS);
    const said = [];
    const waiting = new Set();
    let partial = '';
    let stderr = '';
    const hear = (chunk) => {
      const lines = (partial + chunk).split('\n');
      partial = lines.pop();
      for (const line of lines) if (line.startsWith('{"event":')) said.push(JSON.parse(line));
      for (const look of waiting) look();
    };
    child.stdout?.setEncoding('utf8').on('data', hear);
    child.stderr?.setEncoding('utf8').on('data', (chunk) => {
      stderr += chunk;
    });
    const ended = new Promise((done, fail) => {
      child.once('error', fail);
      let at;
      child.once('exit', () => {
        at = Date.now();
      });
      child.once('close', (code, signal) => {
        clearTimeout(timer);
        if (usesFiles) {
          hear(readFileSync(files[0], 'utf8'));
          stderr = readFileSync(files[1], 'utf8');
        }
        done({
          code,
          signal: isLate ? `SIGKILL after ${SCENARIO_MS / 1_000} s` : signal,
          said,
          stderr,
          at,
        });
      });
    });
    const says = (event) =>
      new Promise((done, fail) => {
        const look = () => {
          const found = said.find((line) => line.event === event);
          if (found !== undefined) done(found);
        };
        waiting.add(look);
        look();
        const early = ({ stderr: why }) =>
          fail(new Error(`the script ended before it printed '${event}': ${why}`));
        ended.then(early, fail);
      });
    return { ended, says, kill: (signal) => child.kill(signal) };
  };
}

async function runScenario({ title, story, runtime }) {
  try {
    return { outcome: 'ok', detail: await story(starter(runtime)) };
  } catch (error) {
    return { outcome: 'failed', why: error.message, title };
  }
}

const isWanted = ({ name, target, quick }) =>
  (!options.quick || quick) && `${name} ${target}`.includes(options.only ?? '');
const wanted = runtimes.filter(isWanted);
const runnable = wanted.filter((runtime) => lacking(runtime).length === 0);
for (const runtime of wanted.filter((each) => !runnable.includes(each))) {
  const needed = `apt-get install ${runtime.packages.join(' ')}`;
  console.log(`${runtime.name} on ${runtime.target}: not run, missing programs: ${needed}`);
}
if (runnable.length === 0) {
  console.error('No runtime to run: see --only, and the lines above');
  process.exit(2);
}
const tarball =
  options.tarball ??
  execFileSync('bash', [join(root, 'scripts/pack.sh'), work], { encoding: 'utf8' }).trim();
prepare(runnable);
createProjects(resolve(tarball), new Set(runnable.map(({ target }) => target)));

const chosen = scenarios.filter(({ quick }) => !options.quick || quick);
const results = [];
for (const runtime of runnable) {
  const row = { runtime, outcomes: new Map() };
  results.push(row);
  for (const { title, story, isLive, isPosix, forks } of chosen) {
    const cannot =
      (isLive && runtime.usesFiles) ||
      (isPosix && runtime.target.startsWith('win32')) ||
      (forks && runtime.through === 'qemu-user');
    if (cannot) {
      row.outcomes.set(title, { outcome: 'not run' });
      continue;
    }
    const start = performance.now();
    const result = await runScenario({ title, story, runtime });
    row.outcomes.set(title, result);
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.error(`${runtime.name} ${runtime.target}, ${title}: ${result.outcome} (${seconds} s)`);
  }
}
const table = new Table({
  head: ['', ...results.map(({ runtime }) => `${runtime.name}\n${runtime.target}`)],
  style: { head: [], border: [] },
});
for (const { title } of chosen) {
  const cells = results.map(({ outcomes }) => {
    const { outcome, detail } = outcomes.get(title);
    if (outcome === 'failed') return styleText('red', outcome);
    return detail === undefined ? outcome : `${outcome}, ${detail}`;
  });
  table.push([title, ...cells]);
}
console.log(table.toString());
let passed = 0;
let failed = 0;
for (const { runtime, outcomes } of results) {
  for (const [title, { outcome, why }] of outcomes) {
    if (outcome === 'ok') passed += 1;
    if (outcome !== 'failed') continue;
    console.log(`\n${runtime.name} on ${runtime.target}, ${title}: ${why}`);
    if (runtime.required) failed += 1;
  }
}
if (options.write) writePlatforms({ root, results, scenarios: chosen });
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || runnable.length < wanted.length ? 1 : 0;
