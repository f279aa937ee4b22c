/** The commands that print the path of a folder of the package. */

import { join, relative, sep } from 'node:path';
import { root } from '../../native/binary/package-files.ts';
import type { Command } from './command.ts';

/**
 * Makes the command `name`. `folder`: the path, within the package, of what it prints; `note`: what
 * its help says about --relative.
 */
export function folderCommand(name: string, what: string, folder: string, note = ''): Command {
  return {
    summary: `prints the path of ${what}`,
    help: `Prints the path of ${what}.${note}`,
    examples: [`npx allstop ${name}`, `npx allstop ${name} --relative`],
    options: ['relative'],
    run: (options) => {
      const absolute = join(root(), folder);
      const path = options.relative ? relative('.', absolute) : absolute;
      // node-gyp and CMake read a backslash as the start of an escape sequence.
      const text = path.split(sep).join('/');
      return { text: `${text}\n`, json: { [name]: text } };
    },
  };
}

// `allstop cmake`: the folder where CMake's `find_package(allstop CONFIG)` looks.

export const cmake: Command = folderCommand(
  'cmake',
  'the folder with allstopConfig.cmake, for find_package(allstop CONFIG)',
  'native/cmake',
);

// `allstop include`: the folder for the include path of a native addon.

export const include: Command = folderCommand(
  'include',
  'the folder with the C and C++ headers',
  'native/include',
  ' With --relative for binding.gyp: node-gyp cannot handle an absolute path with a space, a quote or another sign that a shell reads.',
);
