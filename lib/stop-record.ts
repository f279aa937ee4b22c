/** Who stopped a coordinator, when, and why: as callers see it. */

import type { NativeRequester, Via } from './native.ts';

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
const MAX_PROCESSES = 1_024;

/** JOB:INDEX, and where it is if that is not here. */
export type ProcessName = { worker?: string | undefined; host?: string | undefined };

/** From now on what that process asks for is known as its. */
export function nameProcess(pid: number, name: ProcessName): void {
  processes.delete(pid);
  processes.set(pid, name);
  const [oldest] = processes.keys();
  if (processes.size > MAX_PROCESSES && oldest !== undefined) processes.delete(oldest);
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
  const known = processes.get(from.pid);
  const worker = threadName.startsWith(CLUSTER) ? threadName.slice(CLUSTER.length) : known?.worker;
  if (known?.host !== undefined) requester.host = known.host;
  if (worker !== undefined) requester.worker = worker;
  if (from.stack !== '') requester.stack = from.stack;
  if (from.signal !== '') requester.signal = from.signal as NodeJS.Signals;
  return requester;
}
