/** The functions that the cluster runs. */
export const add = (a, b) => a + b;

export const increment = (item) => item + 1;

/** Blocks its worker until the benchmark changes `word` and wakes it. */
export const block = (word) => Atomics.wait(word, 0, 0);
