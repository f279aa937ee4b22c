// The words of shared memory by which a worker says that it is in its state, and is told what to do.
import { readFileSync, readlinkSync } from 'node:fs';

export const HERE = 0;
export const COMMAND = 1;
const THREAD = 2;

/** What a worker that is in its state can be told: indices of these are commands. */
export const COMMANDS = ['nothing yet', 'return', 'throw', 'reject', 'exit', 'run out of memory'];

export function newWords() {
  return new Int32Array(new SharedArrayBuffer(12));
}

export function raise(words, word, value = 1) {
  Atomics.store(words, word, value);
  Atomics.notify(words, word);
}

/** Notes the kernel's id of this thread, where the kernel tells it. */
export function noteThread(words) {
  if (process.platform !== 'linux') return;
  Atomics.store(words, THREAD, Number(readlinkSync('/proc/thread-self').split('/').at(-1)));
}

/**
 * Whether the thread that noted itself sleeps in the kernel: in a condition variable, or in its
 * event loop. Always true where the kernel does not tell.
 */
export function isAsleep(words) {
  const thread = Atomics.load(words, THREAD);
  if (thread === 0) return true;
  const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('S');
}
