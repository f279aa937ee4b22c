/** `allstop build` compiles the native binary on this machine. No install script runs it. */

import type { Command } from './base/command.ts';

export const build: Command = {
  summary: 'compiles the native binary on this machine',
  help: `Compiles the native binary of allstop from the sources in the package, tests it and prints
its path. From then on allstop loads this binary instead of the prebuilt one.

Needed: CMake 3.18 or later, a C++17 compiler, and the npm packages cmake-js and
node-addon-api. To install these two: npm install --save-dev cmake-js node-addon-api

Exit code: 0 if the new binary works, 1 if it could not be compiled or does not work (the
binary from before is kept), 130 or 143 after SIGINT or SIGTERM.`,
  examples: ['npm install --save-dev cmake-js node-addon-api', 'npx allstop build'],
  environment: [['CC, CXX', 'the compilers that CMake uses (default: the ones that CMake finds)']],
  options: [],
  run: async () => {
    // Imported here: the other commands must work even if the rest of the library cannot load.
    const { compile } = await import('./compilation/compile.ts');
    const path = await compile();
    return { text: `${path}\n`, json: { build: path } };
  },
};
