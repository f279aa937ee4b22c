// A worker or a process that dies in the way that its workerData or its argv names.
import { parentPort, workerData } from 'node:worker_threads';
import { Coordinator, OutOfRangeError } from 'allstop';

class QuotaError extends RangeError {}

function quotaError() {
  const error = new QuotaError('over quota', { cause: new TypeError('the cause', { cause: 7 }) });
  error.name = 'QuotaError';
  const fields = { code: 'E_QUOTA', used: 12n, by: new Map([['a', new Set([1])]]) };
  return Object.assign(error, fields, { self: error });
}

const ways = {
  throws() {
    throw quotaError();
  },
  'throws later': () => setImmediate(ways.throws),
  rejects: () => void Promise.reject(quotaError()),
  'rejects with undefined': () => void Promise.reject(undefined),
  'throws a clean error'() {
    throw new OutOfRangeError('no more input');
  },
  exits: () => process.exit(3),
  'exits with 1': () => process.exit(1),
  stays: () => {
    parentPort?.once('message', () => {});
    if (parentPort === null) setInterval(() => {}, 1_000);
    else parentPort.postMessage('there');
  },
  'handles its error': () => {
    process.on('uncaughtException', () => process.exit(0));
    throw quotaError();
  },
};

if (parentPort !== null) Coordinator.current(); // so that the package is in use in this worker
ways[workerData ?? process.argv[2]]();
