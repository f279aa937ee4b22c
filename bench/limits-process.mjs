/**
 * node limits-process.mjs STORY [COUNT]: the least that a thing of the package has to do, without the
 * package, for the limits in rows.mjs. Prints as JSON microseconds, and of processor time, of one;
 * with a COUNT it does so many and no more, for callgrind and strace.
 *
 *   first        the first 100 calls of a process on two workers, one after the other, after one more
 *   move         1 MB that is moved, 20 at once on one worker
 *   any          AbortSignal.any, the peer of the stories of children
 *   calls        calls one after the other, on one worker: the same messages as a call of the package,
 *                a promise, an id, a claim
 *   in-flight    64 at once on two workers, as many in a message as there are
 *   all-at-once  on two workers
 *   map          as in-flight with 128, and each result through an asynchronous iterator
 *   objects      100 objects as argument, 200 calls at once on one worker
 *   child        an AbortController for each child, which a parent finds weakly, and which three
 *                native objects would hear of (FinalizationRegistry)
 *   child-300    beside 300 MB of live objects
 *   child-native the core's own child, and a signal in which native code finds it: the calls of
 *                Node-API that make them, and no other JavaScript of the package
 *   any-300, child-native-300   beside 300 MB of live objects
 */

import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

const [, , story, given] = process.argv;

const source = `
const { parentPort, workerData: words } = require('node:worker_threads');
const functions = { add: (a, b) => a + b, size: (value) => value.length };
parentPort.on('message', ({ calls }) => {
  const results = [];
  for (const [id, claim, , name, args] of calls) {
    if (Atomics.compareExchange(words, claim, id, -id) !== id) continue;
    const began = performance.now();
    const value = functions[name](...args);
    Atomics.store(words, claim, 0);
    results.push([id, 0, value, Math.round((performance.now() - began) * 1_000)]);
  }
  parentPort.postMessage({ kind: 'allstop:results', results });
});`;

class Lane {
  words = new Int32Array(new SharedArrayBuffer(4 * 2 ** 17));
  free = Array.from(this.words.keys());
  calls = [];
  worker = new Worker(source, { eval: true, workerData: this.words });
}

/** @returns a function that calls one of the functions on a worker */
function bare(workers, name = 'add', isAlone = false, moved = () => []) {
  const lanes = Array.from({ length: workers }, () => new Lane());
  const pending = new Map();
  let last = 0;
  let isDue = false;
  const flush = () => {
    isDue = false;
    for (const lane of lanes) {
      const { calls } = lane;
      if (calls.length > 0) lane.worker.postMessage({ kind: 'run', calls }, moved(calls));
      lane.calls = [];
    }
  };
  for (const lane of lanes) {
    lane.worker.on('message', ({ results }) => {
      for (const [id, , value] of results) {
        const { resolve, claim } = pending.get(id);
        pending.delete(id);
        lane.free.push(claim);
        resolve(value);
      }
    });
  }
  return (...args) =>
    new Promise((resolve) => {
      const id = ++last;
      const lane = lanes[id % lanes.length];
      const claim = lane.free.pop();
      pending.set(id, { resolve, claim });
      Atomics.store(lane.words, claim, id);
      lane.calls.push([id, claim, 1, name, args, undefined, false, false, false, undefined]);
      if (isAlone)
        flush(); // in one message the same object would be written once
      else if (!isDue) void Promise.resolve().then(flush);
      isDue = !isAlone;
    });
}

async function inFlight(add, count, atOnce) {
  let next = 0;
  const lane = async () => {
    while (next < count) await add(next++, 1);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

/** The results in their order, with up to `ahead` in flight. */
async function* mapped(add, count, ahead) {
  const line = [];
  let next = 0;
  for (let yielded = 0; yielded < count; yielded++) {
    while (next < count && next - yielded < ahead) line.push(add(next++, 1));
    yield await line[yielded];
    line[yielded] = undefined;
  }
}

/** What a child cannot do without: a signal of its own, of which its parent and native code hear. */
function children() {
  const parent = new Set();
  const gone = new FinalizationRegistry((ref) => parent.delete(ref));
  return () => {
    const child = { controller: new AbortController() };
    const ref = new WeakRef(child);
    parent.add(ref);
    for (const each of [child, child.controller, child.controller.signal]) gone.register(each, ref);
    return child.controller.signal;
  };
}

/** As `children`, by the addon. Each signal keeps the object of its child. */
function nativeChildren() {
  const allocateSlab = () => new Int32Array(new SharedArrayBuffer(4_096));
  const thread = { threadId: 0, threadName: 'main', isWorker: false };
  const addon = createRequire(import.meta.url)('../build-cmake/Release/allstop.node');
  const parent = addon
    .setup({ ...thread, allocateSlab, onRing: () => {} })
    .createCoordinator('parent', [], 1_000);
  const natives = new WeakMap();
  return () => {
    const { signal } = new AbortController();
    const child = parent.child('child', [], 1_000);
    child.setInterested(true);
    child.bindSignal(signal);
    natives.set(signal, child);
    return signal;
  };
}

function anySignals() {
  const { signal } = new AbortController();
  return () => AbortSignal.any([signal, new AbortController().signal]);
}

function childCost(kind) {
  const make = kind();
  const listener = () => {};
  return async (count) => {
    for (let done = 0; done < count; done += 10) {
      const signals = Array.from({ length: 10 }, make);
      for (const signal of signals) signal.addEventListener('abort', listener);
      await new Promise((resolve) => setImmediate(resolve));
      for (const signal of signals) signal.removeEventListener('abort', listener);
    }
  };
}

/** Makes a story of children that runs beside 300 MB of live objects. */
const beside300 = (kind) => () => {
  globalThis.kept = Array.from({ length: (300 * 2 ** 20) / 100 }, (_, b) => ({ a: { b } }));
  return childCost(kind);
};

const stories = {
  calls: [1_600, () => inFlight.bind(undefined, bare(1)), 1],
  'in-flight': [25_000, () => inFlight.bind(undefined, bare(2)), 64],
  'all-at-once': [
    100_000,
    () => {
      const add = bare(2);
      return (count) => inFlight(add, count, count);
    },
  ],
  map: [
    100_000,
    () => {
      const add = bare(2);
      return async (count) => {
        for await (const _ of mapped(add, count, 128));
      };
    },
  ],
  objects: [
    1_800,
    () => {
      const users = Array.from({ length: 100 }, (_, id) => ({
        id,
        name: `user${id}`,
        tags: ['a', 'b'],
      }));
      const size = bare(1, 'size', true);
      return async (count) => {
        for (let done = 0; done < count; done += 200) {
          await Promise.all(Array.from({ length: 200 }, () => size(users)));
        }
      };
    },
  ],
  first: [100, () => inFlight.bind(undefined, bare(2)), 1, 1],
  move: [
    300,
    () => {
      const size = bare(1, 'size', true, (calls) => calls.map(([, , , , [array]]) => array.buffer));
      return async (count) => {
        for (let done = 0; done < count; done += 20) {
          await Promise.all(Array.from({ length: 20 }, () => size(new Uint8Array(1_000_000))));
        }
      };
    },
  ],
  any: [20_000, () => childCost(anySignals)],
  child: [20_000, () => childCost(children)],
  'child-native': [20_000, () => childCost(nativeChildren)],
  'any-300': [20_000, beside300(anySignals)],
  'child-300': [20_000, beside300(children)],
  'child-native-300': [20_000, beside300(nativeChildren)],
};

const [usual, make, atOnce, warmUp = usual] = stories[story];
const count = Number(given ?? usual);
const run = make();
if (given === undefined) await run(warmUp, atOnce); // what comes first is not measured
const before = process.cpuUsage();
const start = performance.now();
await run(count, atOnce);
const us = ((performance.now() - start) * 1_000) / count;
const { user, system } = process.cpuUsage(before);
const found = { us, processorUs: (user + system) / count };
process.stdout.write(JSON.stringify(found), () => process.exit());
