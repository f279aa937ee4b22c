/** `allstop cmake`: the folder where CMake's `find_package(allstop CONFIG)` looks. */

import { fileURLToPath } from 'node:url';

export const cmake = {
  summary: 'the folder of allstopConfig.cmake',
  folder: (): string => fileURLToPath(new URL('../../native/cmake', import.meta.url)),
};
