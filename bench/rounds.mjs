/** Runs all benchmarks alike: in rounds, and in each round ours and the peer take turns. */

import { median } from './statistics.mjs';

/** `--quick`: the fewest rounds that run all the code. The numbers then mean nothing. */
export const quick = process.argv.includes('--quick');

/**
 * Takes samples of `ours` and `peer`, strictly in turn. Each is a function that returns a number or
 * a promise of a number. The value of a round is the median of its samples.
 */
export async function inTurn({ ours, peer, rounds, samples, warmUp = samples }) {
  const result = { ours: [], peer: [] };
  for (let sample = 0; sample < (quick ? 1 : warmUp); sample++) {
    await ours();
    await peer();
  }
  for (let round = 0; round < (quick ? 2 : rounds); round++) {
    const values = { ours: [], peer: [] };
    for (let sample = 0; sample < (quick ? 3 : samples); sample++) {
      // Both take turns in being first, because one may leave work behind (garbage) for the other.
      if (sample % 2 === 0) values.ours.push(await ours());
      values.peer.push(await peer());
      if (sample % 2 === 1) values.ours.push(await ours());
    }
    result.ours.push(median(values.ours));
    result.peer.push(median(values.peer));
  }
  return result;
}

/** As `inTurn`, but without a peer. */
export async function alone({ ours, rounds, samples, warmUp = samples }) {
  const { ours: values } = await inTurn({ ours, peer: () => 0, rounds, samples, warmUp });
  return values;
}

/** Prints the rows as one line of JSON, which run.mjs reads. */
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
