// Usage: node --expose-gc soak.mjs [--minutes N] [--report DIR] [--only TEXT] [--without TEXT]
//   [--seed N] [--sanitized]
// Does everything that the package can do, all at once, for N minutes (5), and judges what it
// has measured meanwhile. Writes DIR/soak.json and DIR/index.html (soak-report). `--only` and
// `--without` choose among the activities by a part of their names. `--sanitized`: the addon is built
// under a sanitizer, which keeps memory, so the RSS is not judged. Exits with 1 if a verdict fails.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Coordinator } from 'allstop';
import { testAddon } from '../lifecycle/matrix/states.mjs';
import { activities } from './activities.mjs';
import { startNats } from './nats.mjs';
import { report } from './report.mjs';
import { sample, settled } from './samples.mjs';
import { verdicts, warmUp } from './verdicts.mjs';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    report: { type: 'string', default: 'soak-report' },
    only: { type: 'string', default: '' },
    without: { type: 'string' },
    sanitized: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 1e6) },
  },
});
const minutes = Number(options.minutes);
if (!(minutes > 0)) throw new RangeError(`--minutes ${options.minutes} is not a number above 0`);

/** Between two samples; and between two rounds of an activity, so that none keeps the others out. */
const SAMPLE_MS = 1_000;
const PAUSE_MS = 10;
/** A round that takes longer hangs. */
const HANGS_MS = 60_000;

let state = Number(options.seed);
/** A linear congruential generator: the same seed chooses the same deaths. */
function random() {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

const chosen = Object.entries(activities).filter(
  ([name]) =>
    name.includes(options.only) &&
    (options.without === undefined || !name.includes(options.without)),
);
const scene = { random, nats: startNats };
const failures = [];

async function inTime(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`It hangs for ${HANGS_MS} ms`)), HANGS_MS);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Runs all activities until `isOver()`, at least one round each, and closes them. */
async function runAll(isOver, counts) {
  await Promise.all(
    chosen.map(async ([name, activity]) => {
      const count = { rounds: 0, done: 0 };
      counts[name] = count;
      try {
        const { round, close } = await inTime(activity.open(scene));
        do {
          count.done += await inTime(round());
          count.rounds += 1;
          if (!isOver()) await sleep(PAUSE_MS);
        } while (!isOver());
        await inTime(close?.());
      } catch (error) {
        failures.push({ name, error: error.stack, at: (performance.now() - startedAt) / 1_000 });
        process.stderr.write(`${name}: ${error.stack}\n`);
      }
    }),
  );
}

/**
 * Starts the native threads that stay once the process has needed them (for deadlines, exitAfterStop
 * and Interruptible): a random cell would start them after the rehearsal, as if they leaked.
 */
function startLastingThreads() {
  const coord = new Coordinator();
  coord.stopAfter(3_600_000)[Symbol.dispose]();
  coord.exitAfterStop(3_600_000)[Symbol.dispose]();
  testAddon().call(coord, 'poll', '0');
}

let startedAt = performance.now();
startLastingThreads();
process.stderr.write(`A rehearsal, and ${minutes} minutes; --seed ${options.seed}\n`);
await runAll(() => true, {});
if (failures.length > 0) process.exit(1);
const before = await settled(startedAt);
startedAt = performance.now();
const samples = [sample(startedAt)];
const sampling = setInterval(() => samples.push(sample(startedAt)), SAMPLE_MS);
const counts = {};
const end = startedAt + minutes * 60_000;
await runAll(() => performance.now() > end || failures.length > 0, counts);
clearInterval(sampling);
const after = await settled(startedAt);

const rows = verdicts(
  { samples, before, after, counts, failures },
  { sanitized: options.sanitized },
);
const result = {
  node: process.version,
  platform: `${process.platform}-${process.arch}`,
  seed: options.seed,
  minutes: samples.at(-1).s / 60,
  warmUpS: warmUp(samples),
  ok: rows.every(({ ok }) => ok),
  verdicts: rows,
  counts,
  failures,
  before,
  after,
  samples,
};
mkdirSync(options.report, { recursive: true });
writeFileSync(join(options.report, 'soak.json'), JSON.stringify(result, undefined, 1));
const { svg, html } = await report(result);
writeFileSync(join(options.report, 'soak.svg'), svg);
writeFileSync(join(options.report, 'index.html'), html);
for (const { what, ok, detail } of rows) {
  process.stdout.write(`${ok ? 'ok    ' : 'FAILED'} ${what}: ${detail.split('\n')[0]}\n`);
}
// Not process.exit(): that this process ends by itself is the last verdict, which a hang detector
// judges. A thread that hangs would hold up process.exit(), too.
process.exitCode = result.ok ? 0 : 1;
const isHanging = setTimeout(() => {
  process.stdout.write('FAILED the process ends by itself: it is alive 30 s later\n');
  process.kill(process.pid, 'SIGKILL');
}, 30_000);
isHanging.unref();
