/**
 * Which worker of a cluster a requester is: the field `worker` (JOB:INDEX) of a stop record,
 * and `host` if the worker runs on another machine.
 */

/** The cluster's worker (JOB:INDEX) that a requester is; its `host` if that is not this one. */
export type WorkerOfRequester = { worker?: string | undefined; host?: string | undefined };

type Thread = { pid: number; threadId: number; threadName: string };

/** A thread that is a worker has this name, followed by JOB:INDEX. */
const PREFIX = 'cluster/';

export const threadNameOf = (job: string, index: number): string => `${PREFIX}${job}:${index}`;

/** The size of each table below: beyond it the oldest entry is forgotten. */
const MAX_ENTRIES = 1_024;

function keep<K>(table: Map<K, WorkerOfRequester>, key: K, worker: WorkerOfRequester): void {
  table.delete(key);
  table.set(key, worker);
  const [oldest] = table.keys();
  if (table.size > MAX_ENTRIES && oldest !== undefined) table.delete(oldest);
}

/** The worker processes that this process has started, by pid. */
const processes = new Map<number, WorkerOfRequester>();

/** From now on requesters in the process `pid` of this machine are the worker `worker`. */
export function nameProcess(pid: number, worker: string): void {
  keep(processes, pid, { worker });
}

/**
 * Threads of other machines that have requested a stop, by pid, thread id and name. A pid alone is
 * not enough: a process of this machine may have the same pid.
 */
const threads = new Map<string, WorkerOfRequester>();

const keyOf = ({ pid, threadId, threadName }: Thread): string => `${pid}/${threadId}/${threadName}`;

/**
 * Keeps the host of `requester`, since the native stop record has no host. To be called before a
 * stop by `requester` is recorded here.
 */
export function nameThread(requester: Thread & WorkerOfRequester): void {
  const { worker, host } = requester;
  if (host !== undefined) keep(threads, keyOf(requester), { worker, host });
}

/** The worker that a requester is. */
export function workerOf({ pid, threadId, threadName }: Thread): WorkerOfRequester {
  const known = threads.get(keyOf({ pid, threadId, threadName })) ?? processes.get(pid);
  const isWorker = threadName.startsWith(PREFIX);
  return {
    worker: isWorker ? threadName.slice(PREFIX.length) : known?.worker,
    host: known?.host,
  };
}
