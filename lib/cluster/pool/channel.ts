/** How the coordinator reaches a worker of its machine: a thread, or a process. */

import { type ChildProcess, fork } from 'node:child_process';
import type { TransferListItem } from 'node:worker_threads';
import { messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import { causeOfDeath, forgetWorker } from '../../coordinator/causes-of-death.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { execArgvOfFile } from '../../coordinator/exec-argv.ts';
import { workerEntry } from '../../coordinator/worker-entry.ts';
import { startWorker } from '../../coordinator/workers.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { decode } from '../../record/error-record.ts';
import { CLAIMS, FROM_WORKER, type WorkerSettings } from '../worker/protocol.ts';
import { nameProcess, threadNameOf } from '../worker/requesters.ts';
import { packValue, unpackMessage } from '../worker/value.ts';

export type Isolation = 'thread' | 'process';

export interface Listener {
  onMessage(message: unknown[]): void;
  /** A message cannot be read. False: whose it is is not known, and the worker has to end. */
  onUnreadable(error: unknown): boolean;
  /** Called once: it is gone, and of what. */
  onGone(cause: Error): void;
}

/** The coordinator's end. */
export interface WorkerChannel {
  /** NaN: the process could not be started. */
  readonly pid: number;
  /** For people: where the worker is. */
  readonly place: string;
  /** Shared with a thread; of a process, and then nobody else's. */
  readonly words: Int32Array;
  readonly isShared: boolean;
  post(message: unknown[], transfer?: readonly TransferListItem[]): void;
  setReferenced(referenced: boolean): void;
  /** Ends it by force. `onGone` is called when it has ended. */
  kill(): void;
}

export type WorkerName = { job: string; index: number };

function gone(what: string, how: string, cause: unknown, fields: object): Error {
  const because = cause === undefined ? '' : `: ${messageOf(cause)}`;
  const error = new UnavailableError(
    `${what} ${how}${because}`,
    cause === undefined ? {} : { cause },
  );
  return Object.assign(error, fields);
}

export function startThread(
  coordinator: Coordinator,
  module: URL,
  { job, index }: WorkerName,
  listener: Listener,
): WorkerChannel {
  const words = new Int32Array(new SharedArrayBuffer((CLAIMS + 1) * Int32Array.BYTES_PER_ELEMENT));
  const workerData: WorkerSettings = {
    kind: 'cluster',
    module: module.href,
    job,
    index,
    words,
  };
  const name = `${job}:${index}`;
  let cause: unknown;
  const worker = startWorker(
    attachmentOf(coordinator),
    workerEntry(),
    { name: threadNameOf(job, index), workerData },
    (made) => {
      const { threadId } = made;
      made.on('message', (message: unknown) => {
        if (Array.isArray(message)) listener.onMessage(message); // else it is the module's own
      });
      made.on('error', (error: unknown) => {
        cause = causeOfDeath(threadId, error);
      });
      made.on('messageerror', (error: unknown) => {
        if (listener.onUnreadable(error)) return;
        cause = error;
        void made.terminate();
      });
      made.on('exit', (exitCode) => {
        forgetWorker(threadId);
        const how = cause === undefined ? `exited with code ${exitCode}` : 'died';
        listener.onGone(gone(`Worker ${name}`, how, cause, { exitCode }));
      });
    },
  );
  return {
    pid: process.pid,
    place: `thread ${worker.threadId}`,
    words,
    isShared: true,
    post: (message, transfer) => worker.postMessage(message, transfer as TransferListItem[]),
    setReferenced: (referenced) => (referenced ? worker.ref() : worker.unref()),
    kill: () => void worker.terminate(),
  };
}

/** A worker of a cluster may have a cluster, and its workers another; but not for ever. */
const DEPTH = 'ALLSTOP_CLUSTER_DEPTH';
const MAX_DEPTH = 3;

function environmentOfChild(): NodeJS.ProcessEnv {
  const depth = Number(process.env[DEPTH] ?? 0);
  if (depth < MAX_DEPTH) return { ...process.env, [DEPTH]: String(depth + 1) };
  throw new UnavailableError(
    `Clusters of processes are nested ${MAX_DEPTH} deep at most: does the module make a cluster of itself?`,
  );
}

/** A channel may stay open, if what the module has started has it, too. */
const LAST_WORDS_MS = 500;

/** Those that live. One that is busy hears only later that its parent is gone. */
const children = new Set<ChildProcess>();

function killChildren(): void {
  for (const child of children) child.kill('SIGKILL');
}

export function startProcess(
  module: URL,
  { job, index }: WorkerName,
  listener: Listener,
): WorkerChannel {
  const settings: WorkerSettings = { kind: 'cluster', module: module.href, job, index };
  const name = `${job}:${index}`;
  const child: ChildProcess = fork(workerEntry(), [JSON.stringify(settings)], {
    serialization: 'advanced',
    execArgv: execArgvOfFile(),
    env: environmentOfChild(),
  });
  if (child.pid !== undefined) nameProcess(child.pid, name);
  if (children.size === 0) process.on('exit', killChildren);
  children.add(child);
  let isGone = false;
  const end = (error: Error): void => {
    if (isGone) return;
    isGone = true;
    children.delete(child);
    if (children.size === 0) process.off('exit', killChildren);
    listener.onGone(error);
  };
  let cause: unknown;
  child.on('message', (message: unknown) => {
    const own = unpackMessage(message);
    if (own === undefined) return;
    if (own[0] === FROM_WORKER.dying) cause = decode(own[1] as Uint8Array).value;
    else listener.onMessage(own);
  });
  child.on('error', (error) => {
    if (child.pid === undefined) end(gone(`Worker ${name}`, 'could not be started', error, {}));
  });
  child.on('exit', (exitCode, exitSignal) => {
    const how = exitCode === null ? `was killed by ${exitSignal}` : `exited with code ${exitCode}`;
    const fields = exitCode === null ? { exitSignal } : { exitCode };
    const ended = (): void => {
      late.clear();
      end(gone(`Worker ${name}`, how, cause, fields));
    };
    // What it has said may still be on its way, until its channel is closed.
    const late = new Timer(LAST_WORDS_MS, ended);
    child.once('close', ended);
  });
  return {
    pid: child.pid ?? Number.NaN,
    place: `process ${child.pid}`,
    words: new Int32Array(CLAIMS + 1),
    isShared: false,
    // What cannot be cloned is said here; that the child is gone, by its exit.
    post: (message) => void child.send(packValue(message), () => {}),
    setReferenced(referenced) {
      const how = referenced ? 'ref' : 'unref';
      child[how]();
      child.channel?.[how]?.(); // Bun's has neither
    },
    kill: () => void child.kill('SIGKILL'),
  };
}
