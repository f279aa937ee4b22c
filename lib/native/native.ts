/** Loads the native addon, as no other file does; and hears it: the doorbell. */

import { workerThreads } from '../base/builtins.ts';
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
  if (workerThreads().isMainThread) return 'main';
  // Node 24.6 and later have `threadName`. Older versions would refuse to import it by name.
  const given = textOf(fieldOf(workerThreads(), 'threadName'));
  // Node 26 calls each worker that its program has not named 'WorkerThread'.
  const isNamed = given !== undefined && given !== '' && given !== 'WorkerThread';
  return isNamed ? given : `worker-${workerThreads().threadId}`;
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

/** The addon, loaded and set up for this thread by the first call: nothing happens on import. */
export function binding(): NativeBinding {
  if (loaded !== undefined) return loaded;
  loaded = load().setup({
    threadId: workerThreads().threadId,
    threadName: threadName(),
    isWorker: !workerThreads().isMainThread,
    allocateSlab,
    onRing: serve,
  });
  for (const prepare of onFirstUse) prepare();
  return loaded;
}

/** The path of the addon that this thread has loaded: the addon is an extension of SQLite, too. */
export function binaryPath(): string {
  binding();
  return path as string;
}

// The doorbell: how native code gets the attention of this JavaScript thread.
//
// Native code notes the token of an attachment or queue that has changed, and rings, at most
// once until the ring is served. Serving calls `check` on the listener of each noted token.
//
// A change that this thread makes does not ring. The code that made the change calls `drain`,
// which serves it like a ring, so that this thread's AbortSignal has aborted when `drain` returns.
//
// `check` compares states. Calling it too often does no harm, and several changes may be
// served by one ring.

type Listener = { check(): void };

/** The attachments and queues with pending waits, joins or signals, by token. */
const listeners = new Map<number, Listener | WeakRef<Listener>>();

function listenerOf(token: number): Listener | undefined {
  const listener = listeners.get(token);
  return listener instanceof WeakRef ? listener.deref() : listener;
}

function deliver(): void {
  for (const token of binding().takeDirty()) listenerOf(token)?.check();
}

/** Serves a ring. `token` is given if it is the only one that was noted. */
function serve(token?: number): void {
  if (token === undefined) deliver();
  else listenerOf(token)?.check();
}

/**
 * Serves the changes that this thread has made: call it after every native call that may have
 * changed a state. Runs abort listeners, which may call the package again.
 */
export function drain(): void {
  // Without listeners there is nothing to serve, and `takeDirty` takes a lock for which a blocked
  // worker that wakes would have to wait.
  if (listeners.size > 0) deliver();
}

/**
 * From now on `listener.check()` is called when the state behind `token` changes. Keeps `listener`
 * alive until `unlisten`; of a WeakRef does not: call `forget` when the listener was collected.
 */
export function listen(token: number, listener: Listener | WeakRef<Listener>): void {
  listeners.set(token, listener);
}

/** The listener of `token` was collected. */
export function forget(token: number): void {
  if (listenerOf(token) === undefined) listeners.delete(token);
}

export function unlisten(token: number): void {
  listeners.delete(token);
}

/** Calls of `hold` without a `release`. Above 0 the event loop of this thread stays alive. */
let held = 0;

/** Keeps the event loop alive until `release` has been called as often as `hold`. */
export function hold(): void {
  if (held === 0) binding().setDoorbellReferenced(true);
  held += 1; // last: a stack overflow may throw above
}

export function release(): void {
  if (--held === 0) binding().setDoorbellReferenced(false);
}

/** Called once each, when this thread has loaded the addon. watch.ts adds a function. */
export const onFirstUse: (() => void)[] = [];
