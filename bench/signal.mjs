/**
 * A stop at 100 ms while the main thread is busy for 500 ms: the time until a native thread that
 * holds `coord.signal`, and one that holds a plain AbortSignal, has seen it. Run by run.mjs; with
 * --runtimes it prints a table over Node 20 to 26, Bun and Deno, which it takes from npm.
 */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { quick, report } from './rounds.mjs';
import { summary } from './statistics.mjs';

const SAMPLES = quick ? 1 : 15;
const file = fileURLToPath(new URL('./signal-samples.mjs', import.meta.url));

async function samplesOf(program, flags) {
  const args = [...flags, file, String(SAMPLES)];
  const { stdout } = await promisify(execFile)(program, args, { timeout: 120_000 });
  return JSON.parse(stdout);
}

if (process.argv.includes('--runtimes')) {
  const { prepare, runtimes } = await import('../scripts/matrix/runtimes.mjs');
  const native = runtimes.filter(({ target }) => target === 'linux-x64-glibc');
  prepare(native);
  const cell = (values) => {
    const { median } = summary(values);
    return `${median.toFixed(2)} ms (at most ${Math.max(...values).toFixed(2)})`;
  };
  console.log('| runtime | `coord.signal` | AbortController |\n| --- | --- | --- |');
  for (const { name, version, program, flags } of native) {
    const { coordinator, plain } = await samplesOf(program, flags);
    console.log(`| ${name} (${version}) | ${cell(coordinator)} | ${cell(plain)} |`);
  }
} else {
  const { coordinator, plain } = await samplesOf(process.execPath, []);
  report([
    {
      what: 'stop while the main thread is busy for 400 ms more → a native thread with `coord.signal` has seen it',
      peerName: 'a plain AbortSignal',
      unit: 'ms',
      ours: coordinator,
      peer: plain,
      goal: { atMost: 1 },
    },
  ]);
}
