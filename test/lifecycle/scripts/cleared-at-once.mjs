// Every wait, signal and join that has begun sees a stop, even if the stop is cleared at once.
// argv: same-thread | threads, how many rounds, for about how many ms at most.
//
// With `threads` there is a barrier before each round: the stop is requested when all workers
// wait, some asynchronously and some blocked. A worker counts as blocked when the kernel lists it
// as asleep on the same condition variable as the others.
import { readFileSync, readlinkSync } from 'node:fs';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

// Indices of the shared words: the round that may begin, how many workers wait for its stop, and
// how many have seen it.
const ROUND = 0;
const WAITING = 1;
const SEEN = 2;
const LOST_MS = 30_000;
const FEWEST_ROUNDS = 50; // run even if the machine is so slow that the time is over
const CONDITION_VARIABLE_BYTES = 48n;

/** One wait of each kind that does not block. Each one must see the stop. */
function waits(coord, keeper) {
  return [
    coord.waitForStop(),
    coord.waitForStop(LOST_MS),
    new Promise((resolve) => {
      coord.signal.addEventListener('abort', resolve, { once: true });
    }),
    coord.join([keeper], { stopGracePeriodMs: 0, ignoreLiveThreads: true }),
  ];
}

/** Resolves when all waits have seen the stop. A wait that misses it is a failure, not a hang. */
async function allSeen(round, promises) {
  const names = ['waitForStop', 'waitForStop with a timeout', 'signal', 'join'];
  const missing = new Set(names);
  const timer = setTimeout(() => {
    say('lost', { round, missing: [...missing] });
    process.exit(1);
  }, LOST_MS);
  await Promise.all(promises.map((promise, i) => promise.then(() => missing.delete(names[i]))));
  clearTimeout(timer);
}

async function sameThread(rounds) {
  const coord = new Coordinator();
  const keeper = new Promise(() => {});
  for (let round = 0; round < rounds; ++round) {
    const begun = waits(coord, keeper);
    coord.requestStop();
    coord.clearStop();
    await allSeen(round, begun);
  }
  say('seen', { rounds });
}

if (isMainThread) {
  const [mode, rounds, ms] = process.argv.slice(2);
  if (mode === 'same-thread') await sameThread(Number(rounds));
  else await threads(Number(rounds), Number(ms));
} else if (workerData.blocking) block();
else await wait();

/** Blocks until a shared word has reached a value. @returns false if that took over LOST_MS */
function reaches(words, index, value) {
  const deadline = performance.now() + LOST_MS;
  for (let now = Atomics.load(words, index); now < value; now = Atomics.load(words, index)) {
    if (performance.now() > deadline) return false;
    Atomics.wait(words, index, now, 1_000);
  }
  return true;
}

function arrive(words, index) {
  Atomics.add(words, index, 1);
  Atomics.notify(words, index);
}

/**
 * The address at which a thread's system call waits, which tells the condition variable that
 * the thread sleeps on.
 * @returns undefined if the thread is running
 */
function sleepsOn(thread) {
  const [, address] = readFileSync(`/proc/self/task/${thread}/syscall`, 'latin1').split(' ');
  return address === undefined ? undefined : BigInt(address);
}

/**
 * Returns when all blocked workers are asleep on the same condition variable. It is not enough
 * that each one sleeps: a thread may also be asleep because V8 is compiling.
 */
function untilTheyWait(waiting) {
  for (;;) {
    const addresses = waiting.map(sleepsOn);
    if (addresses.includes(undefined)) continue;
    const [lowest, highest] = addresses.reduce(
      ([low, high], address) => [address < low ? address : low, address > high ? address : high],
      [addresses[0], addresses[0]],
    );
    if (highest - lowest < CONDITION_VARIABLE_BYTES) return;
  }
}

function block() {
  const { handle, words, self } = workerData;
  const coord = Coordinator.attach(handle);
  const [, , thread] = readlinkSync('/proc/thread-self').split('/');
  Atomics.store(words, self, Number(thread));
  for (let round = 1; reaches(words, ROUND, round); ++round) {
    arrive(words, WAITING);
    if (!coord.waitForStopSync(LOST_MS)) return;
    arrive(words, SEEN);
  }
}

async function wait() {
  const { handle, words } = workerData;
  const coord = Coordinator.attach(handle);
  const keeper = new Promise(() => {});
  for (let round = 1; reaches(words, ROUND, round); ++round) {
    const begun = waits(coord, keeper);
    arrive(words, WAITING);
    await allSeen(round, begun);
    arrive(words, SEEN);
  }
}

async function threads(rounds, ms) {
  const BLOCKING = 2;
  const WORKERS = BLOCKING + 1;
  const coord = new Coordinator();
  const words = new Int32Array(new SharedArrayBuffer(64));
  const begin = (data) =>
    new Worker(new URL(import.meta.url), {
      workerData: { handle: coord.handle, words, ...data },
    });
  begin({ blocking: false });
  for (let i = 0; i < BLOCKING; ++i) begin({ blocking: true, self: 8 + i });
  const keeper = new Promise(() => {});
  const startedAt = performance.now();
  let round = 0;
  const goesOn = () => round < FEWEST_ROUNDS || performance.now() - startedAt < ms;
  while (round < rounds && goesOn()) {
    ++round;
    const name = `native ${round}`;
    addon.start(coord, 'wait', name, '');
    Atomics.store(words, ROUND, round);
    Atomics.notify(words, ROUND);
    const begun = waits(coord, keeper);
    if (!reaches(words, WAITING, round * WORKERS)) fail(round, 'a worker did not begin');
    const blocked = Array.from({ length: BLOCKING }, (_, i) => Atomics.load(words, 8 + i));
    untilTheyWait([...blocked, nativeThread(coord, name)]);
    // In turn, JavaScript and a native thread request the stop and clear it right afterwards.
    const requester = `requester ${round}`;
    const native = round % 2 === 0;
    if (native) addon.hammer(coord, requester, 1, 1);
    else {
      coord.requestStop();
      coord.clearStop();
    }
    await allSeen(round, begun);
    if (!reaches(words, SEEN, round * WORKERS)) fail(round, 'a worker did not see the stop');
    if (addon.result(name) !== 'stopped') fail(round, 'the native thread did not see the stop');
    if (native) addon.result(requester); // waits until the native thread has cleared the stop
    if (coord.shouldStop()) fail(round, 'the stop was not cleared');
  }
  say('seen', { rounds: round });
  process.exit(0);
}

function fail(round, why) {
  say('lost', { round, why });
  process.exit(1);
}

function nativeThread(coord, name) {
  for (;;) {
    const entry = coord.threads.find((thread) => thread.name === name);
    if (entry?.threadId !== undefined) return entry.threadId;
  }
}
