/** The functions of pool-64-process.mjs, for the cluster and its peer. */
export const increment = (value) => value + 1;

/** Returns when all workers have called it. */
export function meet({ word, workers }) {
  const there = Atomics.add(word, 0, 1) + 1;
  Atomics.notify(word, 0);
  for (let seen = there; seen < workers; seen = Atomics.load(word, 0)) Atomics.wait(word, 0, seen);
  return there;
}
