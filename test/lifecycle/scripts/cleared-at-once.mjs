// A stop that is cleared at once is seen by every wait, signal and join that had begun.
// argv: same-thread | threads, how many rounds, for about how many ms at most.
//
// With threads there is a barrier before each round: the stop comes when all have begun
// to wait, asynchronously or blocked (as the kernel says: asleep on the same).
import { readFileSync, readlinkSync } from 'node:fs';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Coordinator } from 'allstop';
import { say } from './say.mjs';
import { addon } from './test-addon.mjs';

// The shared words: the round that may begin, how many wait for it, how many have seen it.
const ROUND = 0;
const WAITING = 1;
const SEEN = 2;
const LOST_MS = 30_000;
const FEWEST_ROUNDS = 50; // however slow the machine is
const CONDITION_VARIABLE_BYTES = 48n;

/** All the ways to wait without blocking; each must see the stop. */
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

/** Resolves when all have seen it; a stop that is lost is a failure, not a hang. */
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

/** Blocks until a word has reached a value; false if it did not within LOST_MS. */
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

/** What a thread sleeps on: the address that its system call waits at; undefined: it runs. */
function sleepsOn(thread) {
  const [, address] = readFileSync(`/proc/self/task/${thread}/syscall`, 'latin1').split(' ');
  return address === undefined ? undefined : BigInt(address);
}

/** A thread may be asleep for other reasons, too (V8 compiles); not on the same as others. */
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
    // In turn: by JavaScript, and by a native thread, one call right after the other.
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
    if (native) addon.result(requester); // it has cleared the stop, too
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
