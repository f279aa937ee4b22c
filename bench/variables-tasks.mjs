/** The functions of variables.mjs: each runs in a worker and returns nanoseconds an operation. */

const nsOf = (start, count) => Number(process.hrtime.bigint() - start) / count;

export async function assignAdd(variable, value, count) {
  const start = process.hrtime.bigint();
  for (let index = 0; index < count; index++) await variable.assignAdd(value);
  return nsOf(start, count);
}

/** @param {Int32Array} word of shared memory */
export function atomicsAdd(word, count) {
  const start = process.hrtime.bigint();
  for (let index = 0; index < count; index++) Atomics.add(word, 0, 1);
  return nsOf(start, count);
}

/**
 * @param {Int32Array} lock of shared memory: 0 free, 1 held
 * @param {Float64Array} sums of shared memory
 */
export function loopUnderLock(lock, sums, values, count) {
  const start = process.hrtime.bigint();
  for (let index = 0; index < count; index++) {
    while (Atomics.compareExchange(lock, 0, 0, 1) !== 0) Atomics.wait(lock, 0, 1);
    for (let at = 0; at < sums.length; at++) sums[at] += values[at];
    Atomics.store(lock, 0, 0);
    Atomics.notify(lock, 0, 1);
  }
  return nsOf(start, count);
}

/** @returns how many floats the variable has */
export const readAll = async (variable) => (await variable.read()).length;

/** @param {Float64Array} shared of shared memory */
export const copyAll = (shared) => shared.slice().length;
