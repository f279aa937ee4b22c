/** `allstop include`: the folder to put on the include path of a native addon. */

import { fileURLToPath } from 'node:url';

export const include = {
  summary: 'the folder of the C and C++ headers',
  folder: (): string => fileURLToPath(new URL('../../native/include', import.meta.url)),
};
