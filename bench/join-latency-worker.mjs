/** A worker of join-latency.mjs: notes the time of its last statement. */

import { workerData } from 'node:worker_threads';

workerData[0] = process.hrtime.bigint();
