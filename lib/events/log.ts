/** The log of `NODE_DEBUG=allstop`. */

import { debuglog } from 'node:util';

export const log: ReturnType<typeof debuglog> = debuglog('allstop');
