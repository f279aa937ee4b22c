/** The groups of checks, in their order. */

import type { CommandResult } from '../base/command.ts';
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

export async function diagnose(): Promise<CommandResult> {
  const surroundings = Object.entries(runtimeChecks).map(guarded);
  const fails = (name: string): boolean =>
    surroundings.some((check) => check.name === name && !check.ok);
  // A runtime that is too old cannot even read the library.
  const binary = fails('runtime')
    ? []
    : await binaryChecks(fails('permissions')).catch((error) => [impossible('binary', error)]);
  return report([...surroundings, ...binary, ...quirkChecks()]);
}
