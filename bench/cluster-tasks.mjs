/** The functions that the cluster runs. */
export const add = (a, b) => a + b;

/** Blocks its worker until the benchmark changes `word` and wakes it. */
export const block = (word) => Atomics.wait(word, 0, 0);
