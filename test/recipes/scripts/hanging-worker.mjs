// A worker thread that hangs: workerData says how.
import { execSync } from 'node:child_process';
import { parentPort, workerData } from 'node:worker_threads';

parentPort.postMessage('begins');
if (workerData === 'blocked') execSync('exec sleep 30');
else for (;;);
