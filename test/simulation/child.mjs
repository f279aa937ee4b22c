/** The process that simulates: one after the other the seeds that its parent (run.mjs) sends. */

import { load, simulate } from './cluster.mjs';
import { shown } from './history.mjs';
import { judge } from './judges.mjs';
import { planOf } from './plan.mjs';
import { stories } from './stories.mjs';

/** Lines of a story, so that it can be read. */
const MOST_LINES = 120;
const MOST_TRIES = 50;
/** Of so many seeds one is run twice. */
const REPLAYED = 10;

const send = process.send.bind(process);
await load(new URL(process.argv[2]));

async function judged(plan) {
  const { history, ms } = await simulate(plan);
  return { history, ms, violations: judge(history, plan) };
}

/** Leaves out steps, and works of programs, as long as the first judge still finds something. */
async function shrunk(plan, [[name]]) {
  let best = plan;
  let tries = 0;
  const attempt = async (steps) => {
    tries += 1;
    if (tries > MOST_TRIES) return false;
    if (!['program', 'node'].every((one) => steps.some(({ kind }) => kind === one))) return false;
    const { violations } = await judged({ ...best, steps });
    if (!violations.some(([judgeName]) => judgeName === name)) return false;
    best = { ...best, steps };
    return true;
  };
  for (let at = best.steps.length - 1; at >= 0; at -= 1) {
    await attempt(best.steps.toSpliced(at, 1));
  }
  for (const [at, step] of best.steps.entries()) {
    for (let work = (step.works ?? []).length - 1; work >= 0; work -= 1) {
      const { works } = best.steps[at];
      await attempt(best.steps.toSpliced(at, 1, { ...step, works: works.toSpliced(work, 1) }));
    }
  }
  return best;
}

/** What the simulation itself does wrong: nothing real, such as time, may be in a history. */
async function differsAgain(plan, history) {
  // Ids of stops are those of the process.
  const eventsOf = (list) =>
    list.map(({ at, place, what, id = '', how = '' }) => `${at} ${place} ${what} ${id} ${how}`);
  const [once, again] = [history, (await judged(plan)).history].map(eventsOf);
  const at = once.findIndex((line, number) => line !== again[number]);
  return at === -1 ? [] : [['replays', `${once[at]} | ${again[at]}`]];
}

async function simulateSeed(seed) {
  const plan = stories[seed] ? { seed, ...stories[seed] } : planOf(seed);
  const { history, ms, violations } = await judged(plan);
  if (Number(seed) % REPLAYED === 0) violations.push(...(await differsAgain(plan, history)));
  if (violations.length === 0) return { seed, ms, violations, story: shown(history) };
  // Told before the shortest plan is looked for: that takes as long as many seeds.
  send({ seed, found: violations });
  const least = await shrunk(plan, violations);
  const { history: short } = await judged(least);
  const story = shown(short);
  const cut = story.length > MOST_LINES ? [...story.slice(0, MOST_LINES), '…'] : story;
  return { seed, ms, violations, plan: least, story: cut };
}

// Its parent has ended.
process.on('disconnect', () => process.exit(1));

process.on('message', async ({ seeds }) => {
  for (const seed of seeds)
    await new Promise((resolve) => {
      void simulateSeed(seed).then((result) => send(result, resolve));
    });
  if (seeds.length === 0) process.exit(0);
  send({ isDone: true });
});
