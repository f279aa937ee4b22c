// Runs `npm test` many times and counts the failures:
//   node scripts/test-repeat.mjs --runs 40            40 runs (10 if nothing is said)
//   node scripts/test-repeat.mjs --runs 40 --load 3   while three processes keep a processor busy each
//   node scripts/test-repeat.mjs --long               `npm run test:long` instead
//   node scripts/test-repeat.mjs --continue           counts the runs of this commit before it, too
//   node scripts/test-repeat.mjs test/lib             only these files
// It compiles once. The output of run N is in build-repeat/N.log, and runs.json there lists the
// runs, so that --continue can go on after an interruption. The exit code is 0 if no run has failed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
    continue: { type: 'boolean', default: false },
  },
});
const [runs, load] = [Number(values.runs), Number(values.load)];
if (!Number.isInteger(runs) || runs < 1 || !Number.isInteger(load) || load < 0) {
  say(
    'Usage: node scripts/test-repeat.mjs [--runs N] [--load PROCESSES] [--long] [--continue] [FILE...]',
  );
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

const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.trim();
const commit = git('status', '--porcelain') === '' ? git('rev-parse', 'HEAD') : 'uncommitted';
const logs = join(root, 'build-repeat');
const record = join(logs, 'runs.json');
const before = values.continue && existsSync(record) ? JSON.parse(readFileSync(record)) : [];
const done = before.filter((run) => run.commit === commit && commit !== 'uncommitted');
if (done.length === 0) rmSync(logs, { recursive: true, force: true });
mkdirSync(logs, { recursive: true });
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

const kind = values.long ? 'test:long' : 'test';
for (let run = 1; run <= runs; run += 1) {
  const started = Date.now();
  const number = done.length + 1;
  const log = join(logs, `${number}.log`);
  const isOk = (await runTests(log)) === 0;
  const seconds = Math.round((Date.now() - started) / 1000);
  done.push({ number, commit, kind, files, load, isOk, seconds });
  writeFileSync(record, `${JSON.stringify(done, null, 2)}\n`);
  say(`run ${number} (${run} of ${runs}): ${isOk ? 'ok' : 'FAILED'} (${seconds} s)`);
  const lines = isOk ? [] : stripVTControlCharacters(readFileSync(log, 'utf8')).split('\n');
  for (const line of new Set(lines.filter((each) => /^ *FAIL /.test(each))))
    say(`  ${line.trim()}`);
}

// One line for each kind of run.
const kindOf = (run) => [run.kind, ...run.files, `under a load of ${run.load}`].join(' ');
for (const each of new Set(done.map(kindOf))) {
  const those = done.filter((run) => kindOf(run) === each);
  const failed = those.filter((run) => !run.isOk).map((run) => run.number);
  const which = failed.length > 0 ? `: ${failed.join(', ')}` : '';
  say(`${each}: ${failed.length} of ${those.length} runs failed${which}`);
}
process.exit(done.every((run) => run.isOk) ? 0 : 1);
