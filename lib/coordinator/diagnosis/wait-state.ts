/** What the kernel says of a thread: its state and its wait. On Linux only. */

import { readFileSync, readlinkSync } from 'node:fs';
import { attempt } from '../../base/thrown-value.ts';

const read = (path: string): string | undefined =>
  attempt(() => readFileSync(path, 'latin1').trim());

/** State and wait channel of a thread of this process: `S (futex_wait_queue)`. */
export function stateOfThread(osThreadId: number): string | undefined {
  return stateOf(`/proc/self/task/${osThreadId}`);
}

function stateOf(task: string): string | undefined {
  const stat = read(`${task}/stat`);
  if (stat === undefined) return undefined;
  const state = stat[stat.lastIndexOf(')') + 2] ?? '?';
  const channel = read(`${task}/wchan`) ?? '';
  return channel === '' || channel === '0' ? state : `${state} (${channel})`;
}

/** Wait channels, whose names differ between kernels, by a part that they share. */
const CHANNELS: [RegExp, string][] = [
  [/futex/, 'waits for a lock, a condition variable or Atomics.wait'],
  [/pipe/, 'waits for a pipe'],
  [/do_wait|wait4|waitid/, 'waits for a child process'],
  [/epoll|ep_poll|io_cqring|io_uring/, 'waits for events'],
  [/poll|select/, 'waits for files, pipes or sockets'],
  [/nanosleep/, 'sleeps'],
  [/tcp|inet|unix|sock|skb/, 'waits for a socket'],
  [/flock|lock_file|fcntl|posix_lock/, 'waits for a lock on a file'],
  [/io_schedule|folio|page|jbd2|ext4|xfs|btrfs|nfs/, 'waits for a disk or file system'],
];

const STATES: Record<string, string> = {
  R: 'computes',
  T: 'is stopped by a signal',
  t: 'is stopped by a debugger',
  Z: 'has ended',
  D: 'waits for a device',
  S: 'waits',
};

function inWords(state: string): string {
  const words = CHANNELS.find(([channel]) => channel.test(state))?.[1] ?? STATES[state[0] ?? ''];
  return words === undefined ? state : `${words}: ${state}`;
}

/** The file or pipe whose descriptor is the first argument of the system call, if it reads. */
function readsFrom(task: string): string {
  const [, descriptor] = /^(?:0|63) (0x[0-9a-f]+)/.exec(read(`${task}/syscall`) ?? '') ?? [];
  if (descriptor === undefined || !/pipe|tty|unix|inet/.test(stateOf(task) ?? '')) return '';
  const target = attempt(() => readlinkSync(`/proc/self/fd/${Number(descriptor)}`));
  return target === undefined ? '' : `, descriptor ${Number(descriptor)} (${target})`;
}

/** The child processes that the thread has started. */
function childrenOf(task: string): string {
  const pids = read(`${task}/children`)?.split(' ').filter(Boolean) ?? [];
  if (pids.length === 0) return '';
  const named = pids.slice(0, 4).map((pid) => `${pid} (${read(`/proc/${pid}/comm`) ?? 'ended'})`);
  return `; its child processes: ${named.join(', ')}${pids.length > 4 ? ' and more' : ''}`;
}

/** What a thread of this process waits for, in words. @returns undefined except on Linux */
export function waitOfThread(osThreadId: number): string | undefined {
  const task = `/proc/self/task/${osThreadId}`;
  const state = stateOf(task);
  if (state === undefined) return undefined;
  return `${inWords(state)}${readsFrom(task)}${childrenOf(task)}`;
}

/** What the first thread of another process waits for, in words. */
export function waitOfProcess(pid: number): string | undefined {
  const state = stateOf(`/proc/${pid}`);
  if (state === undefined) return undefined;
  const name = read(`/proc/${pid}/comm`);
  return `${inWords(state)}${name === undefined ? '' : `, the program ${name}`}`;
}
