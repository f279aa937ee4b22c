/** `allstop doctor`: whether the package works here, and why if it does not. */

import type { Command } from './command.ts';

export const doctor: Command = {
  summary: 'checks whether allstop works here, and says why if it does not',
  help: `Checks the runtime, its permissions, the native binary and what comes of using it,
and lists what is known to be peculiar to this runtime. The binary is loaded in a
process of its own, which it may crash.

Exit code: 0 all is well, 1 a problem was found.`,
  options: [],
  run: async () => {
    // Here, not above: the other commands work without the rest of the library.
    const { diagnose } = await import('./doctor/diagnose.ts');
    return diagnose();
  },
};
