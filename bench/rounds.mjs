/** Runs all benchmarks alike: in rounds, and in each round ours and the peers take turns. */

import { median } from './statistics.mjs';

/** `--quick`: the fewest rounds that run all the code. The numbers then mean nothing. */
export const quick = process.argv.includes('--quick');

const chosen = process.argv.find((argument) => argument.startsWith('--rows='))?.slice(7);

/** Whether run.mjs wants the row `name`. A benchmark that was started by hand measures all rows. */
export const wants = (name) => chosen === undefined || chosen.split(',').includes(name);

/**
 * Takes samples of `ours` and of each of `peers`, strictly in turn. Each is a function that returns
 * a number or a promise of a number. The value of a round is the median of its samples.
 */
export async function besidePeers({ ours, peers, rounds, samples, warmUp = samples }) {
  const subjects = Object.entries({ ...peers, '': ours });
  const result = new Map(subjects.map(([name]) => [name, []]));
  for (let sample = 0; sample < (quick ? Math.min(1, warmUp) : warmUp); sample++) {
    for (const [, measure] of subjects) await measure();
  }
  for (let round = 0; round < (quick ? Math.min(2, rounds) : rounds); round++) {
    const values = new Map(subjects.map(([name]) => [name, []]));
    for (let sample = 0; sample < (quick ? Math.min(3, samples) : samples); sample++) {
      // Each takes turns in being first, because one may leave work behind (garbage) for the next.
      const first = sample % subjects.length;
      const turns = [...subjects.slice(first), ...subjects.slice(0, first)];
      for (const [name, measure] of turns) values.get(name).push(await measure());
    }
    for (const [name, all] of values) result.get(name).push(median(all));
  }
  const { '': own, ...others } = Object.fromEntries(result);
  return { ours: own, peers: others };
}

/** As `besidePeers`, with one peer, which the table of rows names. */
export async function inTurn({ peer, ...others }) {
  const { ours, peers } = await besidePeers({ ...others, peers: { peer } });
  return { ours, peer: peers.peer };
}

/** As `inTurn`, but without a peer. */
export async function alone({ ours, rounds, samples, warmUp = samples }) {
  return { ours: (await besidePeers({ ours, peers: {}, rounds, samples, warmUp })).ours };
}

/**
 * Prints what was measured, by the name of the row, as one line of JSON, which run.mjs reads: `ours`
 * and either `peer` or `peers` by name, each an array with the value of each round. A chart of cost
 * against size is drawn from `sizes`, pairs of the size and its values.
 */
export function report(rows) {
  process.stdout.write(`${JSON.stringify(rows)}\n`);
}

/** Microseconds since `start`. @param {bigint} start a time of `process.hrtime.bigint()` */
export function usSince(start) {
  return Number(process.hrtime.bigint() - start) / 1000;
}

export function sleep(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
