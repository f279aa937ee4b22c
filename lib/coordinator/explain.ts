/** `explain()`: says in plain words why a coordinator is stopped or not. */

import { type Shown, shownAsText } from '../base/inspect.ts';
import { oneLine } from '../base/thrown-value.ts';
import type { Straggler } from '../errors/errors.ts';
import { latenciesOf, type StopLatency, timeline } from '../events/timeline.ts';
import type { NativeThread } from '../native/binding.ts';
import { binding } from '../native/native.ts';
import {
  type StopRecord,
  type StopRequester,
  type SuppressedError,
} from '../record/stop-record.ts';
import type { Attachment } from './attachment.ts';
import { stateOfThread } from './diagnosis/wait-state.ts';
import { enclosingHooks } from './threads/task-context.ts';
import { type ThreadInfo, toThreadInfo } from './threads/watch.ts';
import { clock, counted, duration, fitTerminal, printable, since } from './words.ts';

export type QueueState = { name: string; size: number; capacity: number; waiting: string[] };

/** Why `shouldStop()` is true or false: fields for programs, `toString()` for people. */
export type StopExplanation = {
  /** What `shouldStop()` says. */
  stopped: boolean;
  /** The stop; left out if there is none. */
  record?: StopRecord;
  /** The registered threads that have not ended, without the hook that calls `explain()`. */
  threads: ThreadInfo[];
  /** The last 64 threads that have ended. */
  recentlyEnded: ThreadInfo[];
  /** The threads that a `join()` has found alive and forgotten, until they end. */
  leftBehind: Straggler[];
  /**
   * The queues of the coordinator, of all threads. `waiting`: "2 producers" (enqueues that wait for
   * room), "1 consumer" (threads that wait for items).
   */
  queues: QueueState[];
  /** How long each thread took to see the newest stop and to end, the slowest first. */
  stopLatencies: StopLatency[];
  /** Descriptions of the links that can stop the coordinator, or could have. */
  links: string[];
  /** The workers of the cluster that this thread has made: JOB:INDEX, where each runs, what. */
  workers?: string[];
  /**
   * Of a pool or cluster: how many calls wait, the oldest for how long and for what; which functions
   * have failed in the last minutes, and the last error. Left out if nothing waits or fails.
   */
  work?: string[];
  /** All of this as lines of text. */
  toString(): string;
};

// The threads that are still alive after the grace period of a join.

export function toStraggler(native: NativeThread, stopAgeMs: number): Straggler {
  const { name, kind, threadId } = toThreadInfo(native);
  const straggler: Straggler = { name, kind, runningForMs: Math.round(stopAgeMs) };
  if (threadId !== undefined) straggler.threadId = threadId;
  const kernels = native.isOsThread && threadId !== undefined ? stateOfThread(threadId) : undefined;
  const state = native.hasBegun ? kernels : NOT_BEGUN;
  if (state !== undefined) straggler.waitState = state;
  return straggler;
}

/** Of a hook, which waits for those that were registered after it. */
export const NOT_BEGUN = 'has not begun';

/** The threads that joins have left behind, in any JavaScript thread, and that have not ended. */
export function leftBehind(attachment: Attachment): Straggler[] {
  return attachment.native
    .leftBehindThreads()
    .map((thread) => toStraggler(thread, thread.stopAgeMs));
}

/** What the requester did: the words after "the JavaScript thread 'main' (0)". */
const VIA_WORDS: Record<StopRequester['via'], string> = {
  call: 'called requestStop()',
  exception: 'reported an error',
  signal: 'received a signal',
  abort: 'saw an AbortSignal abort',
  close: 'saw a resource close',
  timeout: 'had set a deadline, which has passed',
  parent: 'stopped the parent coordinator',
  'worker-exit': 'died',
  uncaught: 'had an uncaught error',
  hook: 'failed as a hook',
  defer: 'failed as a deferred function',
};

/** Of these requests `requester.stack` is where the link to their cause was made. */
const LINKS: ReadonlySet<StopRequester['via']> = new Set([
  'signal',
  'abort',
  'close',
  'timeout',
  'uncaught',
]);

/**
 * How a child process ended, which has stopped its coordinator by that. (The `threadId` is 0 only of
 * a process: a main thread does not die alone.)
 */
function deathOf({ threadName, pid, signal }: StopRequester): string {
  if (pid === process.pid) return `the process '${threadName}' did not start`;
  const how = signal === undefined ? 'died' : `was killed by ${signal}`;
  return `the process '${threadName}' (${pid}) ${how}`;
}

/** The requester and its request, in words. */
export function requestOf(requester: StopRequester): string {
  const language = requester.language === 'native' ? 'native' : 'JavaScript';
  const elsewhere = requester.pid === process.pid ? '' : ` of process ${requester.pid}`;
  const id =
    requester.signal === undefined || requester.language === 'js' ? ` (${requester.threadId})` : '';
  if (requester.via === 'signal') return `the process received ${requester.signal}`;
  if (requester.via === 'worker-exit' && requester.threadId === 0) return deathOf(requester);
  return `the ${language} thread '${requester.threadName}'${id}${elsewhere} ${VIA_WORDS[requester.via]}`;
}

/** What `requester.stack` shows: where the stop was requested, or where its cause was linked. */
const placeTitle = ({ via }: StopRequester): string =>
  LINKS.has(via) ? 'Linked at:' : 'Requested from:';

/** Lines of Node's own loader, which started the program. */
const LOADER = /\bnode:internal\/(?:modules|process)\//;

function indent(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '' && !LOADER.test(line))
    .slice(0, 8)
    .map((line) => `    ${line.trim()}`);
}

function suppressedLines(suppressed: SuppressedError[], count: number): string[] {
  if (count === 0) return [];
  const lines = [`Suppressed since then: ${count}.`];
  for (const { error, requester, at } of suppressed) {
    lines.push(`  - ${clock(at)} ${oneLine(error)}, as ${requestOf(requester)}`);
  }
  if (count > suppressed.length) lines.push(`  - and ${count - suppressed.length} more`);
  return lines;
}

function stateOf(thread: ThreadInfo, now: number): string {
  const { kind, alive, hasBegun, startedAt, endedAt, unobserved } = thread;
  if (endedAt !== undefined) {
    return `${unobserved ? 'no longer observed' : 'ended'} ${since(endedAt, now)}`;
  }
  if (!alive) return kind === 'hook' ? 'runs at the stop' : 'not started';
  const age = duration(now - startedAt.getTime());
  if (hasBegun === false) return `has not begun, ${age} after the stop`;
  return `running since ${clock(startedAt)} (${age})`;
}

/** A list with its title; nothing if it is empty. */
function section<T>(title: string, items: readonly T[], lineOf: (item: T) => string): string[] {
  if (items.length === 0) return [];
  return [`${title} (${items.length}):`, ...items.map((item) => `  - ${lineOf(item)}`)];
}

const idOf = ({ threadId }: ThreadInfo | Straggler): string =>
  threadId === undefined ? '' : ` ${threadId}`;

function threadLine(thread: ThreadInfo, now: number): string {
  const daemon = thread.daemon === true ? ', daemon' : '';
  return `${thread.name} (${thread.kind}${idOf(thread)}${daemon}): ${stateOf(thread, now)}`;
}

function leftBehindLine(thread: Straggler): string {
  const { name, kind, runningForMs, waitState } = thread;
  const state = waitState === undefined ? '' : `, in the state ${waitState}`;
  return `${name} (${kind}${idOf(thread)}): asked to stop ${duration(runningForMs)} ago${state}`;
}

function queuesOf(attachment: Attachment): QueueState[] {
  const queues = binding().queuesOf(attachment.native);
  queues.sort((a, b) => a.id - b.id);
  return queues.map(({ name, size, capacity, producers, consumers }) => ({
    name,
    size,
    capacity,
    waiting: [
      ...(producers > 0 ? [counted(producers, 'producer')] : []),
      ...(consumers > 0 ? [counted(consumers, 'consumer')] : []),
    ],
  }));
}

function queueLine({ name, size, capacity, waiting }: QueueState): string {
  const state = size >= capacity ? ' (full)' : size === 0 ? ' (empty)' : '';
  const who = waiting.length === 0 ? 'nobody waits' : `waiting: ${waiting.join(', ')}`;
  return `${name}: ${size} of ${capacity} items${state}; ${who}`;
}

function recordLines(name: string, record: StopRecord, now: number): string[] {
  const { requester } = record;
  const lines = [
    `The coordinator '${name}' was stopped at ${clock(record.requestedAt)} (${since(record.requestedAt, now)}): ${requestOf(requester)}.`,
  ];
  if (record.kind === 'plain') lines.push('No error was reported.');
  if (record.kind === 'clean') lines.push(`It counts as a clean stop: ${oneLine(record.error)}.`);
  if (record.kind === 'error') lines.push(`The error: ${oneLine(record.error)}.`);
  if (requester.stack !== undefined) lines.push(placeTitle(requester), ...indent(requester.stack));
  return lines;
}

/** The upper ends of the columns of the histogram, in milliseconds. */
const STEPS = [1, 10, 100, 1_000, Number.POSITIVE_INFINITY];

/** The number of threads that are named: the slowest ones. */
const NAMED = 3;

/** How many took less than each step: '2 within 1 ms, 1 within 10 ms'. */
function histogram(times: readonly number[]): string {
  const columns = STEPS.flatMap((step, index) => {
    const from = STEPS[index - 1] ?? Number.NEGATIVE_INFINITY;
    const count = times.filter((ms) => ms >= from && ms < step).length;
    return count === 0 ? [] : `${count} ${Number.isFinite(step) ? `within ${step} ms` : 'later'}`;
  });
  return columns.join(', ');
}

/** `latencies`: of the stop that the coordinator is stopped by. */
function latencyLines(latencies: readonly StopLatency[]): string[] {
  const line = (title: string, key: 'seenMs' | 'endedMs'): string[] => {
    const found = latencies.flatMap(({ thread, [key]: ms }) =>
      ms === undefined ? [] : { thread, ms },
    );
    if (found.length === 0) return [];
    const slowest = found
      .toSorted((a, b) => b.ms - a.ms)
      .slice(0, NAMED)
      .map(({ thread, ms }) => `${thread} ${ms.toFixed(1)} ms`);
    const last = found.length > NAMED ? 'the slowest: ' : '';
    return [`  - ${title} ${histogram(found.map(({ ms }) => ms))} (${last}${slowest.join(', ')})`];
  };
  const lines = [...line('saw the stop:', 'seenMs'), ...line('ended:', 'endedMs')];
  return lines.length === 0 ? [] : ['How fast its threads followed the stop:', ...lines];
}

/** A coordinator in a few words, for util.inspect. The program is not given the recorded error. */
export function shown(attachment: Attachment): Shown {
  const { native } = attachment;
  const stop = native.stop();
  const error = stop?.error ? `: ${oneLine(attachment.errors.of(stop.error).value)}` : '';
  const alive = native.threads().filter((thread) => thread.alive).length;
  const facts = [stop === null ? 'running' : `stopped${error}`, counted(alive, 'thread')];
  if (native.joined()) facts.push('joined');
  return { name: native.name, facts };
}

export function explain(attachment: Attachment): StopExplanation {
  const { native } = attachment;
  const record = attachment.errors.record();
  const suppressed = attachment.errors.suppressed(true);
  const suppressedCount = native.suppressedCount();
  const status = record?.kind === 'error' ? null : native.status();
  const reported = status === null ? undefined : { value: attachment.errors.give(status) };
  const joined = native.joined();
  const callers = enclosingHooks(attachment);
  const employed = [...attachment.workers.values()];
  const workers = employed.flatMap((worker) => worker.describe?.() ?? []);
  const work = employed.flatMap((worker) => worker.work?.() ?? []);
  const explanation: StopExplanation = shownAsText({
    stopped: record !== undefined,
    threads: native
      .threads()
      .filter(({ id }) => !callers.includes(id))
      .map(toThreadInfo),
    recentlyEnded: native.endedThreads().map(toThreadInfo),
    leftBehind: leftBehind(attachment),
    queues: queuesOf(attachment),
    stopLatencies: latenciesOf(timeline(attachment).events),
    links: native.links(),
    toString(): string {
      const now = Date.now();
      const { threads, recentlyEnded, links } = explanation;
      const lines =
        record === undefined
          ? [`The coordinator '${native.name}' is not stopped: no stop was requested.`]
          : recordLines(native.name, record, now);
      if (reported !== undefined) {
        const text = oneLine(reported.value);
        lines.push(
          record === undefined
            ? `Reported without a stop: ${text}. A join() throws it after a stop.`
            : `Reported beside the stop: ${text}. A join() throws it.`,
        );
      }
      lines.push(...suppressedLines(suppressed, suppressedCount));
      if (joined)
        lines.push('It has been joined: requestStop(error) now throws that error to its caller.');
      const lineOf = (thread: ThreadInfo): string => threadLine(thread, now);
      const left = explanation.leftBehind;
      lines.push(...section('Still running', threads, lineOf));
      lines.push(...section('Left behind by a join and still running', left, leftBehindLine));
      lines.push(...section('Ended', recentlyEnded, lineOf));
      lines.push(...section('Queues', explanation.queues, queueLine));
      if (record !== undefined) lines.push(...latencyLines(explanation.stopLatencies));
      lines.push(...section('Workers', workers, (worker) => worker));
      if (work.length > 0) lines.push('Work:');
      for (const line of work) lines.push(`  - ${line}`);
      if (links.length > 0) lines.push(`Links: ${links.join('; ')}.`);
      else if (record === undefined) lines.push('No link could stop it, only a call or an error.');
      return fitTerminal(lines.map(printable));
    },
  });
  if (record !== undefined) explanation.record = record;
  if (workers.length > 0) explanation.workers = workers;
  if (work.length > 0) explanation.work = work;
  return explanation;
}
