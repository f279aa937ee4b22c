/** The types of instrument.mjs, for the test that repeats the inputs. */

export function bundleTarget(
  name: string,
  folder: string,
): Promise<{ path: string; branches: number; literals: (string | number)[] }>;
