/**
 * Explicit links from elsewhere to a stop: abort signals, closing resources,
 * process signals, deadlines. Nothing else ever stops a coordinator by itself.
 *
 * A link lives until it is disposed of or the JavaScript thread that made it
 * ends. It holds the coordinator.
 */

import { constants } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { checkDuration, checkString, holds, invalidType, outOfRange } from './arguments.ts';
import type { Attachment } from './attachment.ts';
import { encode } from './error-record.ts';
import { DeadlineExceededError, FailedPreconditionError, UnavailableError } from './errors.ts';

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
function describedLink(attachment: Attachment, description: string, undo: () => void): Disposable {
  const link = attachment.native.addLink(description);
  return disposable(() => {
    attachment.native.removeLink(link);
    undo();
  });
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

/** The stack of whoever called `caller`, without the line of the error itself. */
export function callSite(caller: (...args: never[]) => unknown): string {
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, caller);
  return (holder.stack ?? '').split('\n').slice(1).join('\n');
}

function isAbortError(reason: unknown): boolean {
  return reason instanceof Error && reason.name === 'AbortError';
}

export function stopOnAbort(
  attachment: Attachment,
  signal: AbortSignal,
  stack: string,
): Disposable {
  const stop = (): void => {
    const { reason } = signal;
    const options = { via: 'abort', stack, hasCaller: false } as const;
    if (isAbortError(reason)) attachment.requestPlainStop(options);
    else attachment.report(reason, options);
  };
  if (signal.aborted) {
    stop();
    return disposable(() => {});
  }
  const link = describedLink(attachment, 'an AbortSignal (stopOnAbort)', () => {
    signal.removeEventListener('abort', onAbort);
  });
  const onAbort = (): void => {
    link[Symbol.dispose]();
    stop();
  };
  return listening(link, () => signal.addEventListener('abort', onAbort));
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
  events: string[],
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
      const carried =
        argument instanceof Error ? argument : (argument as { error?: unknown } | null)?.error;
      if (carried instanceof Error) own = carried;
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

export function checkSignals(signals: unknown): asserts signals is NodeJS.Signals[] {
  const isArray = holds(() => Array.isArray(signals));
  if (!isArray) throw invalidType('signals', 'an array of signal names', signals);
  for (const signal of signals as unknown[]) {
    checkString('signals[]', signal);
    if (!Object.hasOwn(constants.signals, signal) || UNLINKABLE.has(signal)) {
      throw outOfRange('signals[]', 'the name of a signal that can be handled', signal);
    }
  }
}

export function stopOnSignals(
  attachment: Attachment,
  signals: NodeJS.Signals[],
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
    for (const name of names) process.off(name, listen); // a second one: the default
    attachment.requestPlainStop({ via: 'signal', signal, stack, hasCaller: false });
  };
  for (const name of names) process.on(name, listen);
  const numbers = names.map((name) => constants.signals[name]);
  const native = attachment.native.linkSignals(names, numbers, stack);
  return describedLink(
    attachment,
    `the process signals ${names.join(', ')} (stopOnSignals)`,
    () => {
      attachment.native.unlinkSignals(native);
      for (const name of names) process.off(name, listen);
    },
  );
}

export function stopAfter(attachment: Attachment, ms: number, stack: string): Disposable {
  checkDuration('ms', ms);
  const error = new DeadlineExceededError(
    `The coordinator '${attachment.native.name}' was given ${ms} ms, which are over`,
  );
  const timer = attachment.native.stopAfter(ms, encode(error).bytes, stack);
  return describedLink(attachment, `a deadline of ${ms} ms (stopAfter)`, () => {
    attachment.native.cancelStopAfter(timer);
  });
}
