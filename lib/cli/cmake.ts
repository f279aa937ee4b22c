/** `allstop cmake`: the folder where CMake's `find_package(allstop CONFIG)` looks. */

import type { Command } from './base/command.ts';
import { folderCommand } from './base/folder.ts';

export const cmake: Command = folderCommand(
  'cmake',
  'the folder with allstopConfig.cmake, for find_package(allstop CONFIG)',
  'native/cmake',
);
