/** How every benchmark here is run: rounds, and in each round ours and the peer in turn. */

import { median } from './statistics.mjs';

/** `--quick`: the fewest rounds that run all the code. The numbers then mean nothing. */
export const quick = process.argv.includes('--quick');

/**
 * Samples of `ours` and `peer` (each a function that gives a number, or a promise
 * of one), strictly in turn. A round's value is the median of its samples.
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
      // Not always the same one first: it may leave something behind.
      if (sample % 2 === 0) values.ours.push(await ours());
      values.peer.push(await peer());
      if (sample % 2 === 1) values.ours.push(await ours());
    }
    result.ours.push(median(values.ours));
    result.peer.push(median(values.peer));
  }
  return result;
}

/** The same without a peer. */
export async function alone({ ours, rounds, samples, warmUp = samples }) {
  const { ours: values } = await inTurn({ ours, peer: () => 0, rounds, samples, warmUp });
  return values;
}

/** Hands the rows to run.mjs, or to whoever ran this file by itself. */
export function report(rows) {
  process.stdout.write(`${JSON.stringify(rows)}\n`);
}

/** @param {bigint} start of `process.hrtime.bigint()` */
export function usSince(start) {
  return Number(process.hrtime.bigint() - start) / 1000;
}

export function sleep(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
