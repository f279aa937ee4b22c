/** Loads the native addon. No other file does. */

import workerThreads from 'node:worker_threads';
import { fieldOf, textOf } from '../base/thrown-value.ts';
import { type Candidate, candidates, checkFile, handDown, UnfitError } from './binary/binary.ts';
import { type Attempt, unavailable } from './binary/binary-failure.ts';
import { require } from './binary/package-files.ts';
import type { Addon, NativeBinding } from './binding.ts';

const SLAB_BYTES = 4096;
const FIRST_SLAB_BYTES = 16_384;
const WORDS_PER_MIRROR = 16; // a cache line, as in environment.cc

/**
 * The slab with the mirrors of this thread's first 255 coordinators. It is never replaced, so
 * an optimizing compiler treats its address and length as constants: `shouldStop()` is then two
 * loads instead of six. The word at index 0 belongs to no coordinator and is never 0. A
 * coordinator whose mirror is in another slab reads that word first, then its own mirror.
 */
export const firstSlab: Int32Array = new Int32Array(new SharedArrayBuffer(FIRST_SLAB_BYTES));
firstSlab[0] = 1;
/**
 * Whether this engine (JavaScriptCore) may move a plain read of an array out of a loop that does
 * nothing else: such a loop would never see a stop. V8 reads again in each round.
 */
export const hoistsReads: boolean = process.versions['bun'] !== undefined;
let firstSlabTaken = false;

function allocateSlab(): Int32Array {
  if (firstSlabTaken) return new Int32Array(new SharedArrayBuffer(SLAB_BYTES));
  firstSlabTaken = true;
  return firstSlab.subarray(WORDS_PER_MIRROR);
}

/** The name of this JavaScript thread in messages. */
export function threadName(): string {
  if (workerThreads.isMainThread) return 'main';
  // Node 24.6 and later have `threadName`. Older versions would refuse to import it by name.
  const given = textOf(fieldOf(workerThreads, 'threadName'));
  // Node 26 calls each worker that its program has not named 'WorkerThread'.
  const isNamed = given !== undefined && given !== '' && given !== 'WorkerThread';
  return isNamed ? given : `worker-${workerThreads.threadId}`;
}

function loadFile(path: string): Addon {
  checkFile(path);
  const addon: Partial<Addon> | null | undefined = require(path);
  if (typeof addon?.setup !== 'function') throw new UnfitError('it is not the addon of allstop');
  return addon as Addon;
}

/**
 * Loads the first candidate that can be loaded. `attempts`: the errors of the candidates before it.
 * `allstop doctor` uses this, too.
 */
export function tryLoad(): { addon?: Addon; from?: Candidate; attempts: Attempt[] } {
  const attempts: Attempt[] = [];
  for (const from of candidates()) {
    const { path, exists } = from;
    if (!exists) continue;
    try {
      return { addon: loadFile(path), from, attempts };
    } catch (error) {
      attempts.push({ path, error });
    }
  }
  return { attempts };
}

function load(): Addon {
  const { addon, from, attempts } = tryLoad();
  if (addon === undefined || from === undefined) throw unavailable(attempts);
  handDown(from);
  path = from.path;
  return addon;
}

let loaded: NativeBinding | undefined;
let path: string | undefined;
let ring: (token?: number) => void = () => {};
let ready: () => void = () => {};

/**
 * Sets the hooks of doorbell.ts, which this file cannot import: doorbell.ts imports it.
 * `ring` is called when native code rings, with a token if only one attachment or queue has
 * changed. `ready` is called once, when the addon has been loaded.
 */
export function onNative(hooks: { ring: (token?: number) => void; ready: () => void }): void {
  ring = hooks.ring;
  ready = hooks.ready;
}

/** The addon, loaded and set up for this thread by the first call: nothing happens on import. */
export function binding(): NativeBinding {
  if (loaded !== undefined) return loaded;
  loaded = load().setup({
    threadId: workerThreads.threadId,
    threadName: threadName(),
    isWorker: !workerThreads.isMainThread,
    allocateSlab,
    onRing: ring,
  });
  ready();
  return loaded;
}

/** The path of the addon that this thread has loaded: the addon is an extension of SQLite, too. */
export function binaryPath(): string {
  binding();
  return path as string;
}
