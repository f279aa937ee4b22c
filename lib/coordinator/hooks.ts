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
import { keptLink, Link } from './link.ts';
import { report, reportBeside } from './requests.ts';
import { runAtEnd } from './threads/tasks.ts';
import { Watch } from './threads/watch.ts';

type Hook = {
  readonly id: number;
  readonly name: string;
  readonly run: (record: StopRecord) => unknown;
  /** Calls a function in the async context in which the hook was registered. */
  readonly inItsContext: (body: () => Promise<void>) => Promise<void>;
};

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
  readonly #hooks = new Set<Hook>(); // in the order of registration; without those that were removed
  /** The one that runs. If it is removed meanwhile, the core's thread of it ends when it has run. */
  #running: Hook | undefined;
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
    const { native } = this.#attachment;
    this.#attachment.beginHooks(this);
    const inItsContext = AsyncLocalStorage.snapshot(); // first: a stack overflow may throw here
    const id = native.registerThread(THREAD_KINDS.indexOf('hook'), name, undefined, false);
    const hook: Hook = { id, name, run, inItsContext };
    this.#hooks.add(hook);
    if (this.#attachment.shouldStop()) this.serve();
    return keptLink(this.#attachment, `the hook '${name}' (onStop)`, (isAsked) => {
      if (isAsked || !this.#isServing) this.#remove(hook);
      else this.#last.add(hook);
    });
  }

  #remove(hook: Hook): void {
    this.#hooks.delete(hook);
    this.#last.delete(hook);
    if (hook !== this.#running) this.#attachment.native.endThread(hook.id);
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
    if (!this.#hooks.has(hook)) return; // removed since its round began
    const { native } = this.#attachment;
    const stop = native.takeStopOfHook(hook.id);
    if (stop === null) return;
    this.#running = hook;
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
    this.#running = undefined;
    if (!this.#hooks.has(hook)) native.endThread(hook.id);
    else if (!native.endHook(hook.id)) this.#isChanged = true; // another stop has come
    drain();
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

type Deferred = Pick<Hook, 'name' | 'inItsContext'> & { readonly run: () => unknown };

/**
 * `list`: in the order of registration. `called`: from when `run` or a disposal calls them. Of two
 * disposals at once the second goes on when the first has called all.
 */
type AllDeferred = { readonly list: Deferred[]; called?: Promise<void> };

const deferredBy = new WeakMap<Attachment, AllDeferred>();

function deferredOf(attachment: Attachment): AllDeferred {
  const all = deferredBy.get(attachment) ?? { list: [] };
  deferredBy.set(attachment, all);
  return all;
}

/** `Coordinator.defer`, which documents it. */
export function defer(attachment: Attachment, run: () => unknown, name: string): Disposable {
  const { list, called } = deferredOf(attachment);
  const deferred = { name, run, inItsContext: AsyncLocalStorage.snapshot() };
  list.push(deferred);
  // Nobody else would call it: the others are being called, or have been.
  if (called !== undefined) void callDeferred(attachment, false);
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
  const all = deferredOf(attachment);
  const callAll = async (): Promise<void> => {
    for (let last = all.list.pop(); last !== undefined; last = all.list.pop()) {
      await call(attachment, last, isThrowing);
    }
  };
  all.called = (all.called ?? Promise.resolve()).then(callAll);
  return all.called;
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
