// npm run check: what a pull request needs. It runs all steps, also after one that fails,
// and ends with one line for each step. (The gate, .ci/run, runs more.)
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';

const steps = [
  ['lint', 'run', 'lint'],
  ['npm test', 'test'],
  ['native tests', 'run', 'test:native', '--', 'plain'],
];
const say = (line) => process.stderr.write(`${line}\n`);

const results = [];
for (const [at, [name, ...args]] of steps.entries()) {
  say(`=== ${at + 1} of ${steps.length}: ${name}`);
  const started = Date.now();
  const cwd = resolve(import.meta.dirname, '..');
  const { status, signal } = spawnSync('npm', ['--silent', ...args], {
    cwd,
    stdio: 'inherit',
    shell: process.platform === 'win32', // npm is a .cmd file there
  });
  if (signal !== null || status > 128) process.exit(130); // Ctrl-C ends the check, too
  const seconds = Math.round((Date.now() - started) / 1000);
  results.push({ status, line: `${status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)` });
}
say('');
for (const { line } of results) say(line);
process.exit(results.some(({ status }) => status !== 0) ? 1 : 0);
