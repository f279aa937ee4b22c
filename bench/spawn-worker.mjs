/** A worker of spawn.mjs: notes the time of its first statement. */

import { workerData } from 'node:worker_threads';

workerData[0] = process.hrtime.bigint();
