/** A worker of join-latency.mjs: says when it has nothing left to do. */

import { workerData } from 'node:worker_threads';

workerData[0] = process.hrtime.bigint();
