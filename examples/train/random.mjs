// Random numbers that can be reproduced from a seed; Math.random() takes no seed.

/** @typedef {() => number} Random  the next number, from 0 to below 1 */

/** Mulberry32.
 * @param {number} seed an integer
 * @returns {Random} */
export function createRandom(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Shuffles in place (Fisher and Yates).
 * @template T
 * @param {T[]} items
 * @param {Random} random */
export function shuffle(items, random) {
  for (let last = items.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [items[last], items[other]] = [items[other], items[last]];
  }
  return items;
}
