/** The commands that print a folder of the package. */

import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from './command.ts';

/** `folder`: in the package. */
export function folderCommand(name: string, what: string, folder: string): Command {
  return {
    summary: `prints ${what}`,
    help: `Prints ${what}.`,
    options: ['relative'],
    run: (options) => {
      const absolute = fileURLToPath(new URL(`../../${folder}`, import.meta.url));
      const path = options.relative ? relative('.', absolute) : absolute;
      // gyp and CMake take a backslash for the start of an escape.
      const text = path.split(sep).join('/');
      return { text: `${text}\n`, json: { [name]: text } };
    },
  };
}
