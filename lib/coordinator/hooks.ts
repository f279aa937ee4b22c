/**
 * Hooks: functions that this JavaScript thread runs at each stop, the last registered first, one
 * after the other.
 *
 * The core knows each hook as a thread that is alive from the stop on, and which stop it has to
 * run for (`takeStopOfHook`): a stop that is cleared at once is not lost, and joins in any thread
 * wait for a hook that this thread has not begun yet.
 *
 * A hook runs in the async context in which it was registered, not in that of the code that
 * requests the stop: it must not be taken for a callback of the task that does so.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from '../base/timer.ts';
import { THREAD_KINDS } from '../native/binding.ts';
import { binding, drain, hold, release } from '../native/native.ts';
import type { StopRecord } from '../record/stop-record.ts';
import type { Attachment } from './attachment.ts';
import { Link } from './link.ts';
import { report, reportBeside } from './requests.ts';
import { runAtEnd } from './threads/tasks.ts';
import { Watch } from './threads/watch.ts';

type Hook = {
  readonly id: number;
  readonly name: string;
  readonly run: (record: StopRecord) => unknown;
  /** Calls a function in the async context in which the hook was registered. */
  readonly inItsContext: (body: () => Promise<void>) => Promise<void>;
  phase: Phase;
};

/**
 * `idle → running → idle`, at each stop. A hook that is removed is `gone`; while it runs it is
 * `leaving`, and is gone when it has ended. The core's thread of the hook ends when it is gone.
 */
type Phase = 'idle' | 'running' | 'leaving' | 'gone';

/** `name()`, `async () =>`, `function ()`, `[key]()`: nothing is between the parentheses. */
const NO_PARAMETERS = /^(?:async\b\s*)?(?:function\b\s*)?\*?\s*(?:#?[\w$]*|\[[^\]]*\])\s*\(\s*\)/;

/**
 * Whether a hook is given the record, and so the error in it: a function without parameters is
 * not. Its `length` alone does not say so: it is 0 for `(...args)` and `(record = none)`, too.
 */
function takesArguments(run: Hook['run']): boolean {
  if (run.length > 0) return true;
  const source = Function.prototype.toString.call(run);
  // Native code, and so whatever `bind` has made: console.log declares no parameter either.
  if (source.endsWith('{ [native code] }')) return true;
  return !NO_PARAMETERS.test(source) || /\barguments\b/.test(source);
}

class Hooks {
  readonly #attachment: Attachment;
  readonly #hooks = new Set<Hook>(); // in the order of registration
  /** The coordinator has ended: they are removed when the hooks that are due have run. */
  readonly #last = new Set<Hook>();
  #isServing = false; // hooks run, or will in the next turn
  /** A stop has come, or a hook, since the hooks were last looked through. */
  #isChanged = false;

  constructor(attachment: Attachment) {
    this.#attachment = attachment;
  }

  get size(): number {
    return this.#hooks.size;
  }

  get isServing(): boolean {
    return this.#isServing;
  }

  add(run: (record: StopRecord) => unknown, name: string): Disposable {
    const { native, links } = this.#attachment;
    this.#attachment.beginHooks(this);
    const inItsContext = AsyncLocalStorage.snapshot(); // first: a stack overflow may throw here
    const id = native.registerThread(THREAD_KINDS.indexOf('hook'), name, undefined, false);
    const hook: Hook = { id, name, run, inItsContext, phase: 'idle' };
    this.#hooks.add(hook);
    if (this.#attachment.shouldStop()) this.serve();
    const link = new Link(`the hook '${name}' (onStop)`, (isAsked) => {
      links.delete(link);
      if (isAsked || !this.#isServing) this.#remove(hook);
      else this.#last.add(hook);
    });
    links.add(link);
    return link;
  }

  #remove(hook: Hook): void {
    this.#hooks.delete(hook);
    this.#last.delete(hook);
    if (hook.phase === 'running') hook.phase = 'leaving';
    else this.#gone(hook);
    drain();
    this.#attachment.endHooks();
  }

  /** Called after a stop. In the next turn the hooks run that have to. */
  serve(): void {
    this.#isChanged = true;
    if (this.#isServing || this.#hooks.size === 0) return;
    hold();
    try {
      setImmediate(() => void this.#runAll());
    } catch (error) {
      release(); // the stack is full
      throw error;
    }
    this.#isServing = true;
  }

  async #runAll(): Promise<void> {
    // Again after a change: a hook may be added, or has to run for another stop meanwhile.
    do {
      this.#isChanged = false;
      for (const hook of [...this.#hooks].toReversed()) {
        await this.#run(hook);
        if (this.#isChanged) break; // the last that was registered is the first again
      }
    } while (this.#isChanged);
    this.#isServing = false;
    for (const hook of this.#last) this.#remove(hook);
    release();
    this.#attachment.endHooks();
  }

  /** Runs the hook if it has to run for a stop. */
  async #run(hook: Hook): Promise<void> {
    if (hook.phase === 'gone') return; // removed since its round began
    const { native } = this.#attachment;
    const stop = native.takeStopOfHook(hook.id);
    if (stop === null) return;
    hook.phase = 'running';
    const givenBefore = binding().errorsGivenSoFar();
    try {
      const record = this.#attachment.errors.toRecord(stop, takesArguments(hook.run));
      await hook.inItsContext(() =>
        runAtEnd(this.#attachment, hook, () => hook.run(record), hook.run),
      );
    } catch (error) {
      const from = { via: 'hook', threadName: hook.name } as const;
      reportBeside(this.#attachment, error, from, givenBefore);
    }
    if (hook.phase === 'running') {
      hook.phase = 'idle';
      if (!native.endHook(hook.id)) this.#isChanged = true; // another stop has come
    } else this.#gone(hook);
    drain();
  }

  #gone(hook: Hook): void {
    hook.phase = 'gone';
    this.#attachment.native.endThread(hook.id);
  }
}

const hooksOf = new WeakMap<Attachment, Hooks>();

/** `Coordinator.onStop`, which documents it. */
export function onStop(
  attachment: Attachment,
  run: (record: StopRecord) => unknown,
  name: string,
): Disposable {
  let hooks = hooksOf.get(attachment);
  if (hooks === undefined) {
    hooks = new Hooks(attachment);
    hooksOf.set(attachment, hooks);
  }
  return hooks.add(run, name);
}

// Deferred functions: `run` and disposal call them when the threads have ended, the last registered
// first, one after the other. A hook would close what a thread still uses.

type Deferred = {
  readonly name: string;
  readonly run: () => unknown;
  /** Calls a function in the async context in which the deferred one was registered. */
  readonly inItsContext: (body: () => Promise<void>) => Promise<void>;
};

/** In the order of registration. */
const lists = new WeakMap<Attachment, Deferred[]>();

/**
 * From when `run` or a disposal calls the deferred functions. Of two disposals at once the second goes on
 * when the first has called all.
 */
const lastCalls = new WeakMap<Attachment, Promise<void>>();

/** `Coordinator.defer`, which documents it. */
export function defer(attachment: Attachment, run: () => unknown, name: string): Disposable {
  const list = lists.get(attachment) ?? [];
  lists.set(attachment, list);
  const deferred = { name, run, inItsContext: AsyncLocalStorage.snapshot() };
  list.push(deferred);
  // Nobody else would call it: the others are being called, or have been.
  if (lastCalls.has(attachment)) void callDeferred(attachment, false);
  return new Link(`the deferred function '${name}' (defer)`, () => {
    const place = list.lastIndexOf(deferred);
    if (place >= 0) list.splice(place, 1); // else it has been called
  });
}

/**
 * Calls the deferred functions of this JavaScript thread, those too that are registered meanwhile.
 * Their errors go to the coordinator. `isThrowing`: an error will be thrown in any case.
 */
export function callDeferred(attachment: Attachment, isThrowing: boolean): Promise<void> {
  const before = lastCalls.get(attachment) ?? Promise.resolve();
  const called = before.then(() => callAll(attachment, isThrowing));
  lastCalls.set(attachment, called);
  return called;
}

async function callAll(attachment: Attachment, isThrowing: boolean): Promise<void> {
  const list = lists.get(attachment) ?? [];
  for (let last = list.pop(); last !== undefined; last = list.pop()) {
    await call(attachment, last, isThrowing);
  }
}

async function call(
  attachment: Attachment,
  { name, run, inItsContext }: Deferred,
  isThrowing: boolean,
): Promise<void> {
  // A thread, so that `exitAfterStop` and diagnose() name it if it hangs.
  const watch = new Watch(attachment, 'task', name);
  const givenBefore = binding().errorsGivenSoFar();
  hold();
  try {
    await inItsContext(() => runAtEnd(attachment, watch, run, run));
  } catch (error) {
    const from = { via: 'defer', threadName: name } as const;
    if (isThrowing) report(attachment, error, { ...from, hasCaller: false, isThrown: true });
    else reportBeside(attachment, error, from, givenBefore);
  } finally {
    watch.end();
    release();
  }
}
