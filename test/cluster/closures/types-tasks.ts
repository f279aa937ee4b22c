/** A module as types.test.ts takes it. */

export const limit = 10;

export function double(value: number): number {
  return Math.min(limit, value * 2);
}
