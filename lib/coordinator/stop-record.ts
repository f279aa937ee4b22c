/** Who stopped a coordinator, when, and why: as callers see it. */

import type { NativeRequester, Via } from '../native/binding.ts';

/** Who asked for a stop, and from where. */
export type StopRequester = {
  language: 'js' | 'native';
  via: Via;
  threadName: string;
  /** JavaScript's threadId, or the OS thread id for a native thread. */
  threadId: number;
  pid: number;
  host?: string;
  /** JOB:INDEX in a cluster. */
  worker?: string;
  /** The call site. */
  stack?: string;
  signal?: NodeJS.Signals;
};

/** An error that came when a stop was there already, or had nobody to go to. */
export type SuppressedError = { error: unknown; requester: StopRequester; at: Date };

/** One stop: who, when, why, and what came later. */
export type StopRecord = {
  id: string;
  /** 'clean': an error of a clean-stop type was reported. */
  kind: 'plain' | 'clean' | 'error';
  error?: unknown;
  requestedAt: Date;
  requester: StopRequester;
  /** The first 16 later errors. */
  suppressed: SuppressedError[];
  /** All of them. */
  suppressedCount: number;
};

/** What the threads of a cluster's workers are called, before JOB:INDEX. */
export const CLUSTER = 'cluster/';

/** Other processes of a cluster, by pid: those of the last clusters of this one. */
const processes = new Map<number, ProcessName>();
const MAX_NAMES = 1_024;

/** JOB:INDEX, and where it is if that is not here. */
export type ProcessName = { worker?: string | undefined; host?: string | undefined };

function keep<K>(names: Map<K, ProcessName>, key: K, name: ProcessName): void {
  names.delete(key);
  names.set(key, name);
  const [oldest] = names.keys();
  if (names.size > MAX_NAMES && oldest !== undefined) names.delete(oldest);
}

/** From now on what that process of this machine asks for is known as its. */
export function nameProcess(pid: number, name: ProcessName): void {
  keep(processes, pid, name);
}

/** Threads of other machines; their pids may be those of processes here. */
const threads = new Map<string, ProcessName>();

const keyOf = ({ pid, threadId, threadName }: Thread): string => `${pid}/${threadId}/${threadName}`;
type Thread = Pick<StopRequester, 'pid' | 'threadId' | 'threadName'>;

/** Whose stop is about to be recorded here. */
export function nameThread(requester: StopRequester): void {
  const { worker, host } = requester;
  if (host !== undefined) keep(threads, keyOf(requester), { worker, host });
}

export function toRequester(from: NativeRequester): StopRequester {
  const requester: StopRequester = {
    language: from.native ? 'native' : 'js',
    via: from.via,
    threadName: from.threadName,
    threadId: from.threadId,
    pid: from.pid,
  };
  const { threadName } = from;
  const known = threads.get(keyOf(from)) ?? processes.get(from.pid);
  const worker = threadName.startsWith(CLUSTER) ? threadName.slice(CLUSTER.length) : known?.worker;
  if (known?.host !== undefined) requester.host = known.host;
  if (worker !== undefined) requester.worker = worker;
  if (from.stack !== '') requester.stack = from.stack;
  if (from.signal !== '') requester.signal = from.signal as NodeJS.Signals;
  return requester;
}
