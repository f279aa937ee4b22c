// Checks coord.fork(), one promise after the other. argv: the number of stops that are timed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';

const script = fileURLToPath(import.meta.url);
const forked = new URL('./forked.mjs', import.meta.url);
const errorOf = (promise) => promise.then(() => undefined).catch((error) => error);
const wrong = [];
const check = (what, holds) => {
  if (!holds) wrong.push(what);
};

async function computing(coord, act = 'compute', options = {}) {
  const child = coord.fork(forked, [act], options);
  await once(child, 'message');
  return child;
}

async function stopsInTime(rounds) {
  const times = [];
  for (let round = 0; round < rounds; round += 1) {
    const coord = new Coordinator();
    const child = await computing(coord);
    const stoppedAt = performance.timeOrigin + performance.now();
    coord.requestStop(Object.assign(new TypeError('too hot'), { part: round }));
    const [{ sawStopAt, message, part }] = await once(child, 'message');
    times.push(sawStopAt - stoppedAt);
    check('the error of the stop', message === 'too hot' && part === round);
    check('the error of the join', (await errorOf(coord.join()))?.message === 'too hot');
    check('no other error', coord.stopRecord.suppressedCount === 0);
  }
  times.sort((a, b) => a - b);
  const rounded = (ms) => Math.round(ms * 100) / 100;
  return { median: rounded(times[Math.trunc(rounds / 2)]), worst: rounded(times.at(-1)) };
}

async function endsOfChildren() {
  for (const [act, message, part] of [
    ['fail', 'the fork is bent', 7],
    ['throw', 'the fork broke', 8],
  ]) {
    const coord = new Coordinator();
    coord.fork(forked, [act], { silent: true });
    const error = await errorOf(coord.join());
    const holds = error instanceof RangeError && error.message === message && error.part === part;
    check(`the class and fields of an error (${act})`, holds);
  }
  const coord = new Coordinator();
  coord.fork(forked, ['exit'], { name: 'early' });
  check('an exit code', /early.*exited with code 3/.test((await errorOf(coord.join()))?.message));

  const killer = new Coordinator();
  const child = await computing(killer);
  child.kill('SIGKILL');
  check('a killed child', (await errorOf(killer.join()))?.code === 'ERR_ALLSTOP_UNAVAILABLE');
}

/** Starts this script as another program, and returns what a process of it has written at last. */
async function lastWordsUnder(program) {
  const parent = spawn(process.execPath, [script, program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let written = '';
  // The forked process shares this standard output: it is closed when both have ended.
  for await (const text of parent.stdout) written += text;
  return JSON.parse(written || '{}');
}

const alone = { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] };
if (!isMainThread) {
  await computing(Coordinator.attach(workerData), 'alone', alone);
  parentPort.postMessage('computing');
} else if (process.argv[2] === 'killed parent') {
  // Windows ends the children of a process with it, unless they are detached.
  await computing(new Coordinator(), 'alone', { ...alone, detached: true });
  process.kill(process.pid, 'SIGKILL');
} else if (process.argv[2] === 'terminated thread') {
  const coord = new Coordinator();
  const worker = new Worker(new URL(import.meta.url), { workerData: coord.handle });
  await once(worker, 'message');
  await worker.terminate();
} else {
  const latency = await stopsInTime(Number(process.argv[2]));
  await endsOfChildren();
  const thread = await lastWordsUnder('terminated thread');
  check('the end of the thread', /worker-.* has ended/.test(thread.message));
  const { code } = await lastWordsUnder('killed parent');
  check('the death of the parent', code === 'ERR_ALLSTOP_UNAVAILABLE');
  say('told', { wrong, ...latency });
}
