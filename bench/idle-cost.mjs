/**
 * The cost of pending waits, joins and signals while nothing happens: wake-ups and number of all
 * threads of a process, compared with a process that has only an idle timer. Linux only: the
 * counters are the kernel's.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { quick, report, sleep } from './rounds.mjs';

const ROUNDS = quick ? 1 : 5;
const SETTLE_MS = quick ? 500 : 3000; // until V8's compiler and garbage-collector threads are idle
const WATCH_MS = quick ? 300 : 2000;

/**
 * Counts voluntary context switches (a thread slept and was woken) of all threads, and the threads.
 */
function switches(pid) {
  let count = 0;
  const threads = readdirSync(`/proc/${pid}/task`);
  for (const thread of threads) {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'latin1');
    count += Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1]);
  }
  return { count, threads: threads.length };
}

async function start(what) {
  const file = fileURLToPath(new URL('./idle-cost-process.mjs', import.meta.url));
  // One pool thread: if a wait held it, the process would never print 'ready'.
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
  const child = spawn(process.execPath, [file, what], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}

async function measure() {
  const values = { ours: [], peer: [], ourThreads: [], peerThreads: [] };
  for (let round = 0; round < ROUNDS; round++) {
    const children = { ours: await start('ours'), peer: await start('peer') };
    await sleep(SETTLE_MS);
    const before = { ours: switches(children.ours.pid), peer: switches(children.peer.pid) };
    await sleep(WATCH_MS);
    for (const [name, child] of Object.entries(children)) {
      const after = switches(child.pid);
      values[name].push(((after.count - before[name].count) * 1000) / WATCH_MS);
      values[`${name === 'ours' ? 'our' : 'peer'}Threads`].push(after.threads);
      child.kill('SIGKILL');
    }
  }
  return values;
}

if (!existsSync('/proc/self/task')) throw new Error('Only Linux counts the wake-ups of threads');
const { ours, peer, ourThreads, peerThreads } = await measure();
report({
  'idle/wake-ups': { ours, peer },
  'idle/threads': { ours: ourThreads.map((count, round) => count - peerThreads[round]) },
});
