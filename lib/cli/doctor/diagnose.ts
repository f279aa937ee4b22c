/** `allstop doctor` without options: runs all checks of this machine, in order. */

import type { CommandResult } from '../base/command.ts';
import { binaryChecks } from './binary-checks.ts';
import { type Check, REPORT_BUG, report } from './check.ts';
import { quirkChecks } from './quirks.ts';
import { runtimeChecks } from './runtime-checks.ts';

/** The result of a check that threw. It counts as a problem: doctor must report, not crash. */
const impossible = (name: string, error: unknown): Check => ({
  name,
  ok: false,
  cause: `the check failed: ${(error as Error).message}`,
  remedy: REPORT_BUG,
});

function checkOrCause([name, check]: [string, () => Check]): Check {
  try {
    return check();
  } catch (error) {
    return impossible(name, error);
  }
}

/** `withNotes`: the text lists what is peculiar to this runtime; else it says how many notes there are. */
export async function diagnose(withNotes: boolean): Promise<CommandResult> {
  const surroundings = Object.entries(runtimeChecks).map(checkOrCause);
  const fails = (name: string): boolean =>
    surroundings.some((check) => check.name === name && !check.ok);
  // In a runtime that is too old even the import of the library fails.
  const binary = fails('runtime')
    ? []
    : await binaryChecks(fails('permissions')).catch((error) => [impossible('binary', error)]);
  return report([...surroundings, ...binary, ...quirkChecks()], withNotes);
}
