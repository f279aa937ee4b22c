/** The functions of plain.mjs, for all pools. */

export const add = ({ a, b }) => a + b;
export const increment = (item) => item + 1;
export const size = (value) => value.byteLength ?? value.length;
export const echo = (value) => value;

export async function awaits(count) {
  const settled = Promise.resolve();
  for (let index = 0; index < count; index++) await settled;
  return count;
}
