/** `allstop include`: the folder for the include path of a native addon. */

import type { Command } from './base/command.ts';
import { folderCommand } from './base/folder.ts';

export const include: Command = folderCommand(
  'include',
  'the folder with the C and C++ headers',
  'native/include',
  ' With --relative for binding.gyp: node-gyp cannot handle an absolute path with a space, a quote or another sign that a shell reads.',
);
