/** A worker of spawn.mjs: says when it runs. */

import { workerData } from 'node:worker_threads';

workerData[0] = process.hrtime.bigint();
