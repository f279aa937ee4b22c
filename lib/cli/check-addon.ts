/** `allstop check-addon FILE --exercise SCRIPT` ends workers that use an addon, in every way. */

import { type Command, UsageError } from './base/command.ts';

const TIMEOUT_S = 30;

/** @throws UsageError */
function secondsOf(timeout: string | undefined): number {
  const seconds = timeout === undefined ? TIMEOUT_S : Number(timeout);
  if (seconds > 0 && seconds <= 3_600) return seconds;
  throw new UsageError(`--timeout must be a number of seconds up to 3600, not '${timeout}'`);
}

export const checkAddon: Command = {
  summary: 'says whether a native addon survives the end of its worker',
  help: `Loads the native addon FILE in a worker, uses it by SCRIPT, and ends the worker: by
terminate(), process.exit() and an exception, each when the addon was just loaded, while
the exercise is running, and when it is done; with one worker, and with two of which the
second goes on. In three more cases each function that SCRIPT gives to the addon throws when it
has been called, and another worker uses the addon after the first has ended. Afterwards the main thread lives on for a while, so that native threads
which were left behind crash if they are going to. Each of the 21 cases has a process of
its own. Prints a table of what crashed, or did not end, and when.

SCRIPT is an ES module: export default async (addon) => { ... } uses the addon. What it
starts may go on when it returns. If the script also has export async function
afterwards(), this is called after each worker's end, in another worker and without the
addon: for events that somebody has to cause, such as a changed file.

The runtimes are the one that runs this command, and node, bun and deno of the PATH; or
those that --runtimes names.

Exit code: 0 if all is well, 1 if anything crashed, hung or failed, 130 or 143 after SIGINT
or SIGTERM.`,
  examples: [
    'npx allstop check-addon build/Release/addon.node --exercise exercise.mjs',
    'npx allstop check-addon addon.node --exercise exercise.mjs --runtimes node,bun --json',
  ],
  argument: 'FILE',
  options: ['exercise', 'runtimes', 'timeout'],
  required: ['exercise'],
  run: async ({ argument = '', exercise = '', runtimes, timeout }) => {
    const timeoutMs = secondsOf(timeout) * 1_000;
    const { check } = await import('./check-addon/check.ts');
    return check({ addon: argument, exercise, runtimes, timeoutMs });
  },
};
