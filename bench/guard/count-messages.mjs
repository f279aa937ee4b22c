/** Counts what all threads of this process post to each other. Preloaded by `--import`. */

import {
  getEnvironmentData,
  isMainThread,
  MessagePort,
  setEnvironmentData,
} from 'node:worker_threads';

const KEY = 'allstop-bench-messages';
if (isMainThread) setEnvironmentData(KEY, new Int32Array(new SharedArrayBuffer(4)));
const counted = getEnvironmentData(KEY); // shared with the workers, which inherit it

// Worker.prototype.postMessage calls that of its port.
const { postMessage } = MessagePort.prototype;
MessagePort.prototype.postMessage = function count(...args) {
  Atomics.add(counted, 0, 1);
  return postMessage.apply(this, args);
};

export const messages = () => Atomics.load(counted, 0);
