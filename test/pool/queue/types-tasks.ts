/** The module whose functions types.test.ts schedules. */

export const limit = 10;

export function double(value: number): number {
  return Math.min(limit, value * 2);
}
