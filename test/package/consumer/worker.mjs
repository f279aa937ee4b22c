import { isMainThread, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';

const coord = Coordinator.current();
if (workerData === 'fail') throw Object.assign(new TypeError('disk gone'), { code: 'E_DISK' });
if (!isMainThread) coord.waitForStopSync();
