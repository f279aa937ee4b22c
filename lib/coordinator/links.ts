/**
 * Links: abort signals, closing resources and deadlines that stop a coordinator (process signals:
 * signal-links.ts). The program makes every link: without one, none of these stops it.
 *
 * A link lives until it is disposed of, until the coordinator is disposed of, or until the
 * JavaScript thread that made it ends; only a deadline outlives that thread. A link keeps the
 * coordinator alive.
 */

import type { Worker } from 'node:worker_threads';
import { addAbortListener, reasonOfAbort, removeAbortListener } from '../base/abort.ts';
import {
  checkDuration,
  checkInteger,
  checkOptions,
  checkString,
  holds,
  integerFrom,
  invalidType,
  invalidValue,
  isList,
  oneOf,
  outOfRange,
  unchecked,
} from '../base/arguments.ts';
import { builtin, workerThreads } from '../base/builtins.ts';
import { fieldOf, isError, messageOf } from '../base/thrown-value.ts';
import { now } from '../base/timer.ts';
import { isSharedWords, lengthOf } from '../base/typed-arrays.ts';
import { DeadlineExceededError, UnavailableError } from '../errors/errors.ts';
import { binding, threadName } from '../native/native.ts';
import { encode } from '../record/encoded-error.ts';
import { markEcho } from '../record/error-identity.ts';
import type { Attachment } from './attachment.ts';
import { describedLink, keptLink, Link } from './link.ts';
import { report, requestPlainStop } from './requests.ts';
import { causeOfDeath, forgetWorker } from './threads/watch.ts';
import { failWith, tellUnseenAtExit } from './unseen-errors.ts';

type Source = NodeJS.EventEmitter | EventTarget;

/** Calls `listen`. If that throws, undoes the link, so that the failed call changes nothing. */
function listening(link: Disposable, listen: () => void): Disposable {
  try {
    listen();
  } catch (error) {
    link[Symbol.dispose]();
    throw error;
  }
  return link;
}

/** By the name: Node, DOM and this package have different AbortErrors, and each realm its own. */
function isAbortError(reason: unknown): boolean {
  return fieldOf(reason, 'name') === 'AbortError';
}

export function stopOnAbort(
  attachment: Attachment,
  signal: AbortSignal,
  stack: string,
): Disposable {
  const description = 'an AbortSignal (stopOnAbort)';
  const stop = (): void => {
    const reason = reasonOfAbort(signal);
    const options = { via: 'abort', stack, hasCaller: false } as const;
    if (!isAbortError(reason)) {
      report(attachment, reason, options);
      return;
    }
    requestPlainStop(attachment, options);
    // Tasks that listen to the same signal may reject with the same reason: an echo of this stop.
    const record = attachment.native.stop();
    if (record !== null) markEcho(reason, record.id);
  };
  if (signal.aborted) {
    stop();
    return new Link(description);
  }
  const link = describedLink(attachment, description, () => {
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

function checkSource(resource: unknown): asserts resource is Source {
  const can = (method: string): boolean =>
    typeof resource === 'object' && typeof fieldOf(resource, method) === 'function';
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
 * Whether `resource` has closed: then a stream, socket or readline has `closed` or `destroyed`, a
 * WebSocket has `readyState` 3, a child process has an exit code or a signal, a Worker no thread.
 */
function isClosed(resource: Closing): boolean {
  if (resource instanceof workerThreads().Worker) return resource.threadId === -1;
  if (typeof resource.closed === 'boolean') return resource.closed;
  const exited = typeof resource.exitCode === 'number' || typeof resource.signalCode === 'string';
  return exited || resource.destroyed === true || resource.readyState === 3;
}

/** The event by which `resource` says that it has closed. */
function closingEvent(resource: unknown): 'close' | 'exit' {
  return holds(() => resource instanceof workerThreads().Worker) ? 'exit' : 'close';
}

/** How a Worker or a process ended; '' if the event does not tell. `end`: the event's arguments. */
function describeEnd(resource: Source, event: string, [code, signal]: unknown[]): string {
  const tells =
    resource instanceof workerThreads().Worker ||
    resource instanceof builtin('node:child_process').ChildProcess;
  if (!tells || (event !== 'exit' && event !== 'close')) return '';
  if (typeof signal === 'string') return `: it was killed by ${signal}`;
  return typeof code === 'number' ? `: it has exited with code ${code}` : '';
}

function describeSource(resource: Closing): string {
  const name = resource.constructor?.name;
  if (typeof name !== 'string' || name === '') return 'a resource';
  // "an EventEmitter", and "an FSWatcher", of which the first letter is spoken.
  const isVowel = /^(?:[AEIOaeio]|[FHLMNRSX][A-Z])/.test(name);
  return `${isVowel ? 'an' : 'a'} ${name}`;
}

const CLOSE_OPTIONS = { events: unchecked, as: oneOf('plain', 'error') };

type CloseOptions = {
  events?: readonly string[] | undefined;
  as?: 'plain' | 'error' | undefined;
};

export function stopOnClose(
  attachment: Attachment,
  resource: Source,
  options: CloseOptions | undefined,
  stack: string,
): Disposable {
  checkSource(resource);
  const given = checkOptions('options', options, CLOSE_OPTIONS);
  const { events = [closingEvent(resource)], as = 'plain' } = given;
  if (!isList(events as unknown))
    throw invalidType('options.events', 'an array of strings', events);
  for (const event of events) checkString('options.events[]', event);
  if (events.length === 0) {
    throw invalidValue('The "options.events" property must name an event. Received []');
  }
  const closed = resource as Closing;
  const what = describeSource(closed);
  let own: unknown; // the error that the resource has passed to a listener
  const stop = (event: string, ...end: unknown[]): void => {
    const from = { via: 'close', stack, hasCaller: false } as const;
    if (as === 'plain') {
      requestPlainStop(attachment, from);
      return;
    }
    const error = own ?? closed.errored;
    if (error === undefined && attachment.shouldStop()) return; // the stop has ended the resource
    const fallback = `The coordinator '${attachment.native.name}' depends on ${what}, which emitted '${event}'`;
    const ended = () => new UnavailableError(fallback + describeEnd(resource, event, end));
    // Without this link an error of a Worker would have ended the process: it must not get lost.
    const isThrown = resource instanceof workerThreads().Worker && own !== undefined;
    report(attachment, error ?? ended(), { ...from, isThrown });
  };
  const description = `${what}, on ${events.join(', ')} (stopOnClose)`;
  const closing = closingEvent(resource);
  if (events.includes(closing) && isClosed(closed)) {
    const { exitCode, signalCode } = closed;
    stop(closing, exitCode, signalCode);
    return new Link(description);
  }
  const isOfWorker = resource instanceof workerThreads().Worker && as === 'error';
  const threadId = isOfWorker ? resource.threadId : -1;
  // The error of a Worker comes before its exit, in an event of its own.
  const heard = isOfWorker && events.includes('exit') ? ['error', ...events] : events;
  const listeners = [...new Set(heard)].map((event) => ({
    event,
    listen: (argument: unknown, signal?: unknown): void => {
      const carried = isError(argument) ? argument : fieldOf(argument, 'error');
      if (isOfWorker && event === 'error') {
        own = causeOfDeath(threadId, argument);
        (resource as Worker).once('exit', () => forgetWorker(threadId));
      } else if (isError(carried)) {
        own = carried;
      }
      link[Symbol.dispose]();
      stop(event, argument, signal);
    },
  }));
  const link = describedLink(attachment, description, () => {
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

/**
 * Calls `start`, which may have to start the native thread that counts the time.
 *
 * @throws UnavailableError: the system has no thread left
 */
function timed(start: () => number): number {
  try {
    return start();
  } catch (error) {
    const text = `Nothing can count the time: ${messageOf(error)}`;
    throw new UnavailableError(text, { cause: error });
  }
}

/** When deadlines fire. */
const deadlines = new WeakMap<Disposable, number>();

export function stopAfter(attachment: Attachment, ms: number, stack: string): Disposable {
  checkDuration('ms', ms);
  const error = new DeadlineExceededError(
    `The deadline of the coordinator '${attachment.native.name}' has passed: stopAfter(${ms})`,
  );
  const description = `a deadline of ${ms} ms (stopAfter)`;
  const { bytes } = encode(error);
  const timer = timed(() => attachment.native.stopAfter(ms, bytes, stack, description));
  const link = keptLink(attachment, description, () => attachment.native.cancelStopAfter(timer));
  deadlines.set(link, now() + ms);
  return link;
}

/** Lets go of the deadlines that have fired. */
export function forgetFiredDeadlines({ links }: Attachment): void {
  const time = now();
  for (const link of links) if ((deadlines.get(link) ?? time) < time) links.delete(link);
}

/** Ends the process if it is alive `ms` after a stop. The link outlives this thread. */
export function exitAfterStop(
  attachment: Attachment,
  ms: number,
  options: { exitCode?: number | undefined } | undefined,
): Link {
  checkDuration('ms', ms);
  const { exitCode } = checkOptions('options', options, { exitCode: integerFrom(0, 255) });
  const description = `the end of the process ${ms} ms after a stop (exitAfterStop)`;
  const exit = timed(() => attachment.native.exitAfterStop(ms, exitCode, description));
  return keptLink(attachment, description, () => attachment.native.cancelExitAfterStop(exit));
}

/** At each stop the core stores `value` in `words[index]`, from the thread that requests it. */
export function mirror(
  attachment: Attachment,
  words: Int32Array,
  index: number,
  value: number,
): Disposable {
  if (!isSharedWords(words)) {
    throw invalidType('words', 'an Int32Array over a SharedArrayBuffer', words);
  }
  const length = lengthOf(words);
  if (length === 0) throw outOfRange('words', 'an array of at least 1 element', words);
  checkInteger('index', index, 0, length - 1);
  checkInteger('value', value, -(2 ** 31), 2 ** 31 - 1);
  const native = attachment.native.mirror(words, index, value);
  // Native code cannot wake the threads that wait for the word by Atomics.wait.
  const wake = (): void => {
    Atomics.notify(words, index);
  };
  const endWaking = attachment.listen('stop', wake);
  const link = describedLink(attachment, `a word of shared memory (mirror)`, () => {
    endWaking();
    attachment.native.endMirror(native);
  });
  if (attachment.shouldStop()) wake();
  return link;
}

// Links to errors that nothing in the program has caught: in this JavaScript thread, in Workers.

/** One listener for all links, as Node warns about the eleventh listener of an event. */
const onUncaught = new Map<(error: unknown) => void, Attachment>();

/** Whether errors that nothing has caught stop the coordinator. */
export function stopsOnUncaught(attachment: Attachment): boolean {
  return [...onUncaught.values()].includes(attachment);
}

function dispatch(error: unknown): void {
  for (const listener of onUncaught.keys()) listener(error);
  tellUnseenAtExit(); // of a listener of 'exit' that was called after the errors had been written
}

export function stopOnUncaught(attachment: Attachment, stack: string): Disposable {
  const stop = (error: unknown): void => {
    const from = { via: 'uncaught', stack, hasCaller: false, isThrown: true } as const;
    const isEcho =
      report(attachment, error, from) === 'echo' && attachment.native.status() === null;
    if (isEcho) return; // of a stop without an error, a Ctrl-C for example: nothing has failed
    failWith(1);
    if (!workerThreads().isMainThread) binding().failProcess();
  };
  const description = `the uncaught errors of the thread '${threadName()}' (stopOnUncaught)`;
  const link = describedLink(attachment, description, () => {
    onUncaught.delete(stop);
    if (onUncaught.size > 0) return;
    process.off('uncaughtException', dispatch);
    process.off('unhandledRejection', dispatch);
  });
  if (onUncaught.size === 0) {
    process.on('uncaughtException', dispatch);
    // Of its own, since Node wraps a rejected value that is no Error for 'uncaughtException'.
    process.on('unhandledRejection', dispatch);
  }
  onUncaught.set(stop, attachment);
  return link;
}

const adopters = new Set<(worker: Worker) => void>();

function adopt(worker: Worker): void {
  for (const adopter of adopters) adopter(worker);
}

export function adoptWorkers(attachment: Attachment): Disposable {
  const adopted = new Map<Worker, () => void>();
  const follow = (worker: Worker): void => {
    const { threadId } = worker;
    const onError = (error: unknown): void => {
      const from = { threadName: `worker-${threadId}`, threadId, hasCaller: false, isThrown: true };
      report(attachment, causeOfDeath(threadId, error), { via: 'worker-exit', ...from });
    };
    const leave = (): void => {
      worker.off('error', onError);
      worker.off('exit', onExit);
      adopted.delete(worker);
    };
    const onExit = (): void => {
      leave();
      forgetWorker(threadId);
    };
    worker.on('error', onError);
    worker.on('exit', onExit);
    adopted.set(worker, leave);
  };
  let isUndone = false;
  const description = `the Workers that the thread '${threadName()}' creates (adoptWorkers)`;
  const link = describedLink(attachment, description, () => {
    isUndone = true;
    if (adopters.delete(follow) && adopters.size === 0) process.off('worker', adopt);
    for (const leave of adopted.values()) leave();
  });
  // Node announces a Worker in a tick of its own. Those that were created before this call come
  // before this tick, and are not adopted.
  process.nextTick(() => {
    if (isUndone) return;
    if (adopters.size === 0) process.on('worker', adopt);
    adopters.add(follow);
  });
  return link;
}
