/** What the cluster runs. */
export const add = (a, b) => a + b;

/** Until somebody wakes it. */
export const block = (word) => Atomics.wait(word, 0, 0);
