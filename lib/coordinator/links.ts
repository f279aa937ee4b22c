/**
 * Explicit links from elsewhere to a stop: abort signals, closing resources,
 * process signals, deadlines. Nothing else ever stops a coordinator by itself.
 *
 * A link lives until it is disposed of, or the coordinator is, or the JavaScript
 * thread that made it ends; a deadline outlives that thread. It holds the coordinator.
 */

import { constants } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { addAbortListener, removeAbortListener } from '../base/abort-listeners.ts';
import { checkDuration, checkString, holds, invalidType, outOfRange } from '../base/arguments.ts';
import { isError } from '../base/thrown-value.ts';
import {
  DeadlineExceededError,
  FailedPreconditionError,
  UnavailableError,
} from '../errors/errors.ts';
import { markEcho } from '../record/error-identity.ts';
import { encode } from '../record/error-record.ts';
import type { Attachment } from './attachment.ts';

type Source = NodeJS.EventEmitter | EventTarget;

/** Once only, however often it is disposed of. */
function disposable(dispose: () => void): Disposable {
  let disposed = false;
  return {
    [Symbol.dispose](): void {
      if (disposed) return;
      disposed = true;
      dispose();
    },
  };
}

/** A link that exists for `explain()` as long as it is not undone. */
export function describedLink(
  attachment: Attachment,
  description: string,
  undo: () => void,
): Disposable {
  const id = attachment.native.addLink(description);
  const link = disposable(() => {
    attachment.links.delete(link);
    attachment.native.removeLink(id);
    undo();
  });
  attachment.links.add(link);
  return link;
}

/** Listens, or undoes the link: a call that throws has changed nothing. */
function listening(link: Disposable, listen: () => void): Disposable {
  try {
    listen();
  } catch (error) {
    link[Symbol.dispose]();
    throw error;
  }
  return link;
}

/** The stack of whoever called `caller`, if the runtime and the program let us have it. */
export function callSite(caller: (...args: never[]) => unknown): string {
  try {
    const holder: { stack?: unknown } = {};
    Error.captureStackTrace(holder, caller);
    // Without the line of the error; a program may have made it anything.
    const { stack } = holder;
    return typeof stack === 'string' ? stack.split('\n').slice(1).join('\n') : '';
  } catch {
    return '';
  }
}

/** By name, as there are several classes of it, and other realms. */
function isAbortError(reason: unknown): boolean {
  return holds(() => (reason as Error).name === 'AbortError');
}

export function stopOnAbort(
  attachment: Attachment,
  signal: AbortSignal,
  stack: string,
): Disposable {
  const stop = (): void => {
    const { reason } = signal;
    const options = { via: 'abort', stack, hasCaller: false } as const;
    if (!isAbortError(reason)) {
      attachment.report(reason, options);
      return;
    }
    attachment.requestPlainStop(options);
    // Those who listen to the same signal will come with the same reason.
    const record = attachment.native.record();
    if (record !== null) markEcho(reason, record.id);
  };
  if (signal.aborted) {
    stop();
    return disposable(() => {});
  }
  const link = describedLink(attachment, 'an AbortSignal (stopOnAbort)', () => {
    removeAbortListener(signal, onAbort);
  });
  const onAbort = (): void => {
    link[Symbol.dispose]();
    stop();
  };
  return listening(link, () => addAbortListener(signal, onAbort));
}

function isEmitter(resource: Source): resource is NodeJS.EventEmitter {
  return 'on' in resource && typeof resource.on === 'function';
}

export function checkSource(resource: unknown): asserts resource is Source {
  const can = (method: string): boolean =>
    holds(
      () =>
        typeof resource === 'object' &&
        resource !== null &&
        typeof (resource as Record<string, unknown>)[method] === 'function',
    );
  if ((can('on') && can('off')) || (can('addEventListener') && can('removeEventListener'))) return;
  throw invalidType('resource', 'an instance of EventEmitter or EventTarget', resource);
}

type Closing = {
  closed?: unknown;
  destroyed?: unknown;
  readyState?: unknown;
  errored?: unknown;
  exitCode?: unknown;
  signalCode?: unknown;
  constructor?: { name?: unknown };
};

/**
 * Streams, sockets and readline say `closed` or `destroyed`, WebSockets have
 * `readyState` 3, child processes an exit code or a signal.
 */
function isClosed(resource: Closing): boolean {
  if (typeof resource.closed === 'boolean') return resource.closed;
  const exited = typeof resource.exitCode === 'number' || typeof resource.signalCode === 'string';
  return exited || resource.destroyed === true || resource.readyState === 3;
}

function describeSource(resource: Closing): string {
  const name = resource.constructor?.name;
  return typeof name === 'string' && name !== '' ? `a ${name}` : 'a resource';
}

export function stopOnClose(
  attachment: Attachment,
  resource: Source,
  events: readonly string[],
  as: 'plain' | 'error',
  stack: string,
): Disposable {
  const what = describeSource(resource as Closing);
  let own: unknown; // the error that an event brought along
  const stop = (event: string): void => {
    const options = { via: 'close', stack, hasCaller: false } as const;
    if (as === 'plain') {
      attachment.requestPlainStop(options);
      return;
    }
    const error = own ?? (resource as Closing).errored;
    const fallback = `The coordinator '${attachment.native.name}' depends on ${what}, which emitted '${event}'`;
    attachment.report(error ?? new UnavailableError(fallback), options);
  };
  if (events.includes('close') && isClosed(resource as Closing)) {
    stop('close');
    return disposable(() => {});
  }
  const listeners = events.map((event) => ({
    event,
    listen: (argument: unknown): void => {
      const carried = isError(argument)
        ? argument
        : (argument as { error?: unknown } | null)?.error;
      if (isError(carried)) own = carried;
      link[Symbol.dispose]();
      stop(event);
    },
  }));
  const link = describedLink(attachment, `${what}, on ${events.join(', ')} (stopOnClose)`, () => {
    for (const { event, listen } of listeners) {
      if (isEmitter(resource)) resource.off(event, listen);
      else resource.removeEventListener(event, listen);
    }
  });
  return listening(link, () => {
    for (const { event, listen } of listeners) {
      if (isEmitter(resource)) resource.on(event, listen);
      else resource.addEventListener(event, listen);
    }
  });
}

/** What no handler can catch, and what the process could not go on after. */
const UNLINKABLE = new Set([
  'SIGKILL',
  'SIGSTOP',
  'SIGSEGV',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGABRT',
  'SIGIOT', // SIGABRT by another name
]);

export function checkSignals(signals: unknown): asserts signals is readonly NodeJS.Signals[] {
  const isArray = holds(() => Array.isArray(signals));
  if (!isArray) throw invalidType('signals', 'an array of signal names', signals);
  for (const signal of signals as unknown[]) {
    checkString('signals[]', signal);
    if (!Object.hasOwn(constants.signals, signal) || UNLINKABLE.has(signal)) {
      throw outOfRange('signals[]', 'the name of a signal that can be handled', signal);
    }
  }
}

type SignalListener = (signal: NodeJS.Signals) => void;

const signalListeners = new Map<NodeJS.Signals, Set<SignalListener>>();

function dispatch(signal: NodeJS.Signals): void {
  for (const listener of signalListeners.get(signal) ?? []) listener(signal);
}

/** One listener of the process's for all of ours: the eleventh would warn of a leak. */
function addSignalListener(signal: NodeJS.Signals, listener: SignalListener): void {
  const all = signalListeners.get(signal) ?? new Set();
  signalListeners.set(signal, all.add(listener));
  if (!process.listeners(signal).includes(dispatch)) process.on(signal, dispatch);
}

function removeSignalListener(signal: NodeJS.Signals, listener: SignalListener): void {
  const all = signalListeners.get(signal);
  if (all?.delete(listener) && all.size === 0) process.off(signal, dispatch);
}

export function stopOnSignals(
  attachment: Attachment,
  signals: readonly NodeJS.Signals[],
  stack: string,
): Disposable {
  if (!isMainThread) {
    throw new FailedPreconditionError(
      'stopOnSignals() works in the main thread only: a process has one set of signal handlers',
    );
  }
  const names = [...new Set(signals)];
  if (names.length === 0) return disposable(() => {});
  // A listener of JavaScript's comes first: with it the runtime keeps its default
  // (to exit) from happening, and calls whoever else listens. The stop itself
  // comes from native code, as this thread may be busy.
  const listen = (signal: NodeJS.Signals): void => {
    if (native !== 0) return;
    link[Symbol.dispose](); // a second one: the default
    attachment.requestPlainStop({ via: 'signal', signal, stack, hasCaller: false });
  };
  for (const name of names) addSignalListener(name, listen);
  const numbers = names.map((name) => constants.signals[name]);
  const native = attachment.native.linkSignals(names, numbers, stack);
  const link = describedLink(
    attachment,
    `the process signals ${names.join(', ')} (stopOnSignals)`,
    () => {
      attachment.native.unlinkSignals(native);
      for (const name of names) removeSignalListener(name, listen);
    },
  );
  return link;
}

export function stopAfter(attachment: Attachment, ms: number, stack: string): Disposable {
  checkDuration('ms', ms);
  const error = new DeadlineExceededError(
    `The coordinator '${attachment.native.name}' was given ${ms} ms, which are over`,
  );
  const timer = attachment.native.stopAfter(
    ms,
    encode(error).bytes,
    stack,
    `a deadline of ${ms} ms (stopAfter)`,
  );
  const link = disposable(() => {
    attachment.links.delete(link);
    attachment.native.cancelStopAfter(timer);
  });
  attachment.links.add(link);
  return link;
}
