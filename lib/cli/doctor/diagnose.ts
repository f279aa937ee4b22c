/** `allstop doctor` without options: runs all checks of this machine, in order. */

import { messageOf } from '../../base/thrown-value.ts';
import type { CommandResult } from '../base/command.ts';
import { binaryChecks } from './binary-checks.ts';
import { type Check, QUIRK, REPORT_BUG, report } from './check.ts';
import { atLeast, type Runtime, runtime, runtimeChecks } from './runtime-checks.ts';

/** The result of a check that threw. It counts as a problem: doctor must report, not crash. */
const impossible = (name: string, error: unknown): Check => ({
  name,
  ok: false,
  cause: `the check failed: ${messageOf(error)}`,
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

// Known problems of each runtime, with a way around them where there is one.

type Quirk = {
  /** Undefined: every runtime has the problem. */
  runtime?: Runtime['title'];
  platform?: NodeJS.Platform;
  /** The first version with the problem, and the first version without it. */
  since?: string;
  until?: string;
  /** One sentence, which begins with what happens. */
  text: string;
};

/**
 * Sources: for Deno, Bun and Node before 24 our own tests on Linux; for macOS the issue named in
 * the text; for Windows the documentation of Node.
 */
const quirks: Quirk[] = [
  {
    runtime: 'Node.js',
    until: '24.0.0',
    text: 'the process aborts when a native thread uses a thread-safe function whose worker has ended: use allstop_threadsafe_function.hpp in addons of your own',
  },
  {
    runtime: 'Node.js',
    platform: 'darwin',
    since: '24.15.0',
    until: '24.20.0',
    text: 'the process may abort when a worker ends while a call of a thread-safe function is on its way (nodejs/node#65100): use Node.js 24.20 or later',
  },
  {
    runtime: 'Node.js',
    until: '24.0.0',
    text: "there is no 'await using' for a coordinator: use Coordinator.run()",
  },
  {
    runtime: 'Bun',
    text: 'postMessage() drops the cause of an error; errors that a coordinator carries keep theirs',
  },
  {
    runtime: 'Deno',
    text: "terminate() resolves and 'exit' is emitted before the worker has ended: the worker may still run for a moment after join()",
  },
  {
    runtime: 'Deno',
    text: 'terminate() of a worker kills the child processes that it has started',
  },
  {
    runtime: 'Deno',
    text: 'the uncaught error of a worker is also printed to stderr when the coordinator has recorded it',
  },
  {
    platform: 'win32',
    text: 'there are no POSIX signals: stopOnSignals() only works while the event loop is not blocked',
  },
];

export function quirkChecks(): Check[] {
  const { title, version } = runtime();
  return quirks
    .filter(
      (quirk) =>
        (quirk.runtime ?? title) === title &&
        (quirk.platform ?? process.platform) === process.platform &&
        (quirk.since === undefined || atLeast(version, quirk.since)) &&
        (quirk.until === undefined || !atLeast(version, quirk.until)),
    )
    .map(({ text }) => ({ name: QUIRK, ok: true, detail: text }));
}
