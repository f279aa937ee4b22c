/** `allstop cmake`: the folder where CMake's `find_package(allstop CONFIG)` looks. */

import type { Command } from './command.ts';
import { folderCommand } from './folder.ts';

export const cmake: Command = folderCommand(
  'cmake',
  'the folder of allstopConfig.cmake',
  'native/cmake',
);
