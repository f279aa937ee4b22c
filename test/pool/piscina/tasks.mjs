// The worker files of Piscina's README and of its tests, as exports of one module.
import assert from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { types } from 'node:util';
import { BroadcastChannel, threadId, workerData } from 'node:worker_threads';
import { currentCall, transfer } from 'allstop/cluster';

// --- README

export const add = ({ a, b }) => a + b;
export const multiply = ({ a, b }) => a * b;

export async function addLater({ a, b }) {
  await sleep(1);
  return a + b;
}

let offset;
export async function initialize() {
  await sleep(1);
  offset = 100;
}
export const addInitialized = ({ a, b }) => a + b + offset;

export function addAndGoOn({ a, b }, words) {
  void sleep(1).then(() => notify(words)); // not awaited
  return a + b;
}

export async function listen(name) {
  const channel = new BroadcastChannel('my_channel');
  const text = await new Promise((resolve) => {
    channel.addEventListener('message', ({ data }) => resolve(data), { once: true });
    currentCall().report('listens');
  });
  channel.close();
  return `${name} Received from:${text}`;
}

// --- test/fixtures

/** eval.js */
// oxlint-disable-next-line no-eval
export const evaluate = (code) => (0, eval)(code);

/** multiple.js */
export const a = () => 'a';
export const b = () => 'b';

function notify(words) {
  Atomics.store(words, 0, 1);
  Atomics.notify(words, 0);
}

/** notify-then-sleep.ts */
export function notifyThenSleep(words) {
  notify(words);
  Atomics.wait(words, 0, 1);
}

/** wait-for-notify.ts */
export function waitForNotify(words) {
  Atomics.wait(words, 0, 0);
  Atomics.store(words, 0, -1);
  Atomics.notify(words, 0);
}

/** wait-for-others.ts */
export async function waitForOthers(words, count) {
  Atomics.add(words, 0, 1);
  Atomics.notify(words, 0);
  for (;;) {
    const seen = Atomics.load(words, 0);
    if (seen >= count) return threadId;
    const { async: isAsync, value } = Atomics.waitAsync(words, 0, seen);
    if (isAsync) await value;
  }
}

/** simple-workerdata.ts */
export const hasWorkerData = () => assert.equal(workerData, 'ABC');

/** resource-limits.js */
export function fillTheHeap() {
  const array = [];
  for (;;) array.push([array]);
}

/** move.ts */
export function move(moved) {
  assert(types.isAnyArrayBuffer(moved));
  const result = new ArrayBuffer(10);
  return transfer(result, [result]);
}

export const whichThread = () => threadId;

export function say(text) {
  currentCall().report(text);
  return 42;
}

/** In the place of sleep.js: ends when the test opens it. */
export async function waitUntilOpen(words) {
  const { async: isAsync, value } = Atomics.waitAsync(words, 0, 0);
  if (isAsync) await value;
  return 'open';
}

export function dieLater(words) {
  setImmediate(() => {
    Atomics.wait(words, 0, 0);
    throw new Error('not_caught');
  });
  return 42;
}

/** Its worker exits in the first attempt, while it waits. */
export async function exitOnce() {
  if (currentCall().attempt === 1) setImmediate(() => process.exit(1));
  else return 42;
  return new Promise(() => {});
}

export function throwInImmediate() {
  setImmediate(() => {
    throw new Error('not_caught');
  });
  return new Promise(() => {});
}
