/** `allstop build`: the native binary, compiled on this machine, on purpose only. */

import type { Command } from './base/command.ts';

export const build: Command = {
  summary: 'compiles the native binary on this machine',
  help: `Compiles the native binary from the sources in the package and prints its path. It is
used from then on instead of the prebuilt one. Needs CMake, a C++17 compiler and the
packages cmake-js and node-addon-api: npm install --save-dev cmake-js node-addon-api

Exit code: 0 it works, 1 it could not be made, 130 or 143 after SIGINT or SIGTERM.`,
  options: [],
  run: async () => {
    // Here, not above: the other commands work without the rest of the library.
    const { compile } = await import('./compilation/compile.ts');
    const path = await compile();
    return { text: `${path}\n`, json: { build: path } };
  },
};
