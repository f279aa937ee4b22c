// Runs `npm test` many times and counts the failures:
//   npm run test:repeat -- --runs 40            40 runs (10 if nothing is said)
//   npm run test:repeat -- --runs 40 --load 3   while three processes keep a processor busy each
//   npm run test:repeat -- --long               `npm run test:long` instead
//   npm run test:repeat -- test/lib             only these files
// It compiles once. The output of run N is in build-repeat/N.log. The exit code is 0 if no
// run has failed.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { parseArgs, stripVTControlCharacters } from 'node:util';

const root = resolve(import.meta.dirname, '..');
const say = (line) => process.stdout.write(`${line}\n`);

const { values, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '10' },
    load: { type: 'string', default: '0' },
    long: { type: 'boolean', default: false },
  },
});
const [runs, load] = [Number(values.runs), Number(values.load)];
if (!Number.isInteger(runs) || runs < 1 || !Number.isInteger(load) || load < 0) {
  say('Usage: npm run test:repeat -- [--runs N] [--load PROCESSES] [--long] [FILE...]');
  process.exit(2);
}

const compile = ['scripts/compile.mjs', 'addon', 'ts', 'example', 'test-addon'];
if (spawnSync(process.execPath, compile, { cwd: root, stdio: 'inherit' }).status !== 0) {
  process.exit(1);
}

const busy = Array.from({ length: load }, () =>
  spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
);
const endLoad = () => busy.forEach((child) => child.kill('SIGKILL'));
process.on('exit', endLoad);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

const logs = join(root, 'build-repeat');
rmSync(logs, { recursive: true, force: true });
mkdirSync(logs);
const vitest = join(
  dirname(createRequire(import.meta.url).resolve('vitest/package.json')),
  'vitest.mjs',
);
const filter = `--tags-filter=${values.long ? 'long' : '!long'}`;

/** Resolves to the exit code. */
function runTests(log) {
  const out = openSync(log, 'w');
  const child = spawn(process.execPath, [vitest, 'run', filter, ...files], {
    cwd: root,
    stdio: ['ignore', out, out],
  });
  return new Promise((settle) => child.once('close', (code) => settle(code ?? 1)));
}

const failed = [];
for (let run = 1; run <= runs; run += 1) {
  const started = Date.now();
  const log = join(logs, `${run}.log`);
  const code = await runTests(log);
  if (code !== 0) failed.push(run);
  const seconds = Math.round((Date.now() - started) / 1000);
  say(`run ${run} of ${runs}: ${code === 0 ? 'ok' : 'FAILED'} (${seconds} s)`);
  const lines = code === 0 ? [] : stripVTControlCharacters(readFileSync(log, 'utf8')).split('\n');
  for (const line of new Set(lines.filter((each) => /^ *FAIL /.test(each))))
    say(`  ${line.trim()}`);
}
say(`${failed.length} of ${runs} runs failed${failed.length > 0 ? `: ${failed.join(', ')}` : ''}`);
process.exit(failed.length === 0 ? 0 : 1);
