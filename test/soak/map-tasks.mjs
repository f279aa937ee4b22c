/** The functions of map.mjs. */

/** Doubles the item; one in a thousand kills its worker. */
export function work(item) {
  if (item % 1_000 === 999) process.exit(7);
  return item * 2;
}

/** Ends its worker in a moment, when that runs something else or nothing. */
export function endSoon() {
  setTimeout(() => process.exit(8), Math.random() * 5);
}
