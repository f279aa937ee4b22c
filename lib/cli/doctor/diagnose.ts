/** The groups of checks, in their order. */

import type { Outcome } from '../command.ts';
import { binaryChecks } from './binary-checks.ts';
import { type Check, report } from './check.ts';
import { quirkChecks } from './quirks.ts';
import { runtimeChecks } from './runtime-checks.ts';

/** A check that cannot be made is a finding, too: doctor is for where things are wrong. */
const impossible = (name: string, error: unknown): Check => ({
  name,
  ok: false,
  cause: `it cannot be told: ${(error as Error).message}`,
});

function guarded([name, check]: [string, () => Check]): Check {
  try {
    return check();
  } catch (error) {
    return impossible(name, error);
  }
}

export async function diagnose(): Promise<Outcome> {
  const surroundings = Object.entries(runtimeChecks).map(guarded);
  const isRestricted = surroundings.some(({ name, ok }) => name === 'permissions' && !ok);
  const binary = await binaryChecks(isRestricted).catch((error) => [impossible('binary', error)]);
  return report([...surroundings, ...binary, ...quirkChecks()]);
}
