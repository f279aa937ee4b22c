/**
 * Runs the simulated cluster for some seeds, and says what the judges have found.
 *
 *   node test/simulation/run.mjs                             50 seeds, from 1 on
 *   node test/simulation/run.mjs --seeds N --seed S          N seeds, from S on
 *   node test/simulation/run.mjs --minutes M --seed S        as many as that gives
 *   node test/simulation/run.mjs --seed S,T,U                these
 *   node test/simulation/run.mjs --seed S --show             the history of one seed
 *   node test/simulation/run.mjs --story NAME                one plan of stories.mjs; all: each; with
 *                                                            --seed: and these seeds, in the same processes
 *   node test/simulation/run.mjs --mutants                   which story or seed finds each planted fault
 *   node test/simulation/run.mjs --mutants --mutant NAME     which finds this one
 *   node test/simulation/run.mjs --mutants --seeds-only      which seed does, without the stories
 *   node test/simulation/run.mjs --processes N               default: one for each processor
 *
 * A violation is shown with the shortest plan that still has it, and with its history.
 */

import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from './build.mjs';
import { mutants } from './mutants.mjs';
import { stories } from './stories.mjs';

const SEEDS = 50;
/** Seeds that a child gets at once: the first may take longer, since code is compiled. */
const BATCH = 10;
/** With `--minutes`. */
const MOST_IN_TIME = 1_000_000;
/** Of a mutant, which has to be found. */
const MOST_SEEDS = 400;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    seed: { type: 'string' },
    show: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string' },
    'seeds-only': { type: 'boolean', default: false },
    story: { type: 'string' },
    processes: { type: 'string', default: String(availableParallelism()) },
  },
});

/**
 * Runs seeds in children. Begins no more when `onResult` has returned false; `onFound` hears of a violation
 * as soon as the judges have spoken.
 */
async function run(url, seeds, onResult, onFound) {
  const left = [...seeds];
  let isOver = false;
  const work = async () => {
    const child = fork(fileURLToPath(new URL('child.mjs', import.meta.url)), [url.href]);
    const exited = new Promise((resolve) => child.once('exit', resolve));
    const next = () => {
      const batch = isOver ? [] : left.splice(0, BATCH);
      child.send({ seeds: batch });
    };
    child.on('message', (message) => {
      if (message.isDone) next();
      else if (message.found !== undefined) onFound?.(message);
      else if (onResult(message) === false) isOver = true;
    });
    next();
    const code = await exited;
    if (code !== 0) throw new Error(`A simulation ended with ${code}`);
  };
  const count = Math.min(Number(values.processes), Math.ceil(left.length / BATCH));
  await Promise.all(Array.from({ length: count }, work));
}

const seedsFrom = (first, count) => Array.from({ length: count }, (_, at) => first + at);

async function runMutants(names) {
  let isAllFound = true;
  for (const name of names) {
    const url = await build(mutants[name].changes);
    let found;
    const look = (result) => {
      if (result.violations.length > 0 && !(found?.seed < result.seed)) found = result;
      return found === undefined;
    };
    if (!values['seeds-only']) await run(url, Object.keys(stories), look);
    const isKnown = found !== undefined;
    if (!isKnown) {
      await run(url, seedsFrom(Number(values.seed ?? 1), Number(values.seeds ?? MOST_SEEDS)), look);
    }
    const [judge, text] = found?.violations[0] ?? [];
    isAllFound &&= found !== undefined;
    const said =
      found === undefined
        ? 'NOT FOUND'
        : `found by ${isKnown ? 'the story' : 'seed'} ${found.seed}: ${judge}: ${text}`;
    console.log(`${name}, ${mutants[name].what}: ${said.slice(0, 200)}`);
  }
  if (!isAllFound) process.exitCode = 1;
}

async function runSeeds() {
  const url = await build(values.mutant && mutants[values.mutant].changes);
  const firsts = (values.seed ?? '1').split(',').map(Number);
  const isOne = values.show || firsts.length > 1 || values.story !== undefined;
  const minutes = Number(values.minutes ?? Number.POSITIVE_INFINITY);
  const most = values.minutes === undefined ? SEEDS : MOST_IN_TIME;
  const count = Number(values.seeds ?? (isOne ? 1 : most));
  const began = performance.now();
  const done = [];
  const named = values.story === 'all' ? Object.keys(stories) : [values.story ?? []].flat();
  const isSeeded = values.story === undefined || values.seed !== undefined;
  const seeds = isSeeded ? firsts.flatMap((first) => seedsFrom(first, count)) : [];
  const onResult = (result) => {
    const { seed, ms, violations } = result;
    done.push(violations.length > 0 ? result : { seed, ms, violations });
    if (values.show) console.log(result.story.join('\n'));
    return performance.now() - began < minutes * 60_000;
  };
  await run(url, [...seeds, ...named], onResult, ({ seed, found }) => {
    console.log(`\nSeed ${seed}:`);
    for (const [judge, text] of found.slice(0, 5)) console.log(`  ${judge}: ${text}`);
  });
  const wrong = done.filter(({ violations }) => violations.length > 0);
  for (const { seed, plan, story } of wrong.toSorted((a, b) => a.seed - b.seed)) {
    if (values.show) continue;
    console.log(`\nThe shortest plan that has what was found in seed ${seed}:`);
    const { steps: _, ...around } = plan;
    console.log(`  ${JSON.stringify(around)}`);
    for (const step of plan.steps) console.log(`  ${JSON.stringify(step)}`);
    console.log('Its history:');
    console.log(story.map((line) => `  ${line}`).join('\n'));
    const which = named.includes(seed) ? '--story' : '--seed';
    console.log(`Again: node test/simulation/run.mjs ${which} '${seed}' --show`);
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  for (const [what, all] of Object.entries({ seeds, stories: named })) {
    if (all.length === 0) continue;
    const own = done.filter(({ seed }) => named.includes(seed) === (all === named));
    const hours = own.reduce((sum, { ms }) => sum + ms, 0) / 3_600_000;
    const bad = own.filter((each) => wrong.includes(each)).length;
    console.log(
      `${own.length} ${what}, ${hours.toFixed(1)} hours of the cluster in ${seconds} s: ${bad} with violations`,
    );
  }
  if (wrong.length > 0) process.exitCode = 1;
}

const chosen = values.mutant === undefined ? Object.keys(mutants) : [values.mutant];
await (values.mutants ? runMutants(chosen) : runSeeds());
