/** Starts a worker thread or process, and carries messages to and from it. */

import { type ChildProcess, fork } from 'node:child_process';
import type { TransferListItem } from 'node:worker_threads';
import { messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { causeOfDeath, forgetWorker } from '../../coordinator/threads/causes-of-death.ts';
import { execArgvOfFile } from '../../coordinator/threads/exec-argv.ts';
import { workerEntry } from '../../coordinator/threads/worker-entry.ts';
import { startWorker } from '../../coordinator/threads/workers.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { decode } from '../../record/encoded-error.ts';
import { CLAIMS, FROM_WORKER, type WorkerSettings } from '../worker/protocol.ts';
import { nameProcess, threadNameOf } from '../worker/requesters.ts';
import { packValue, unpackMessage } from '../worker/value.ts';

export type Isolation = 'thread' | 'process';

export interface ChannelListener {
  onMessage(message: unknown[]): void;
  /**
   * Called when a message of a thread cannot be deserialized.
   *
   * @returns false if it is not known whose result the message is: the thread is ended then
   */
  onUnreadable(error: unknown): boolean;
  /** The worker has ended. Called once; no other call follows. */
  onGone(cause: Error): void;
}

/** The coordinator's end of the channel. */
export interface WorkerChannel {
  /** NaN if the process could not be started. */
  readonly pid: number;
  /** For messages: `thread 5` or `process 4711`. */
  readonly place: string;
  /** The claims and CANCELLED (protocol.ts). */
  readonly words: Int32Array;
  /** Whether the worker sees `words`: a thread does, a process does not. */
  readonly isShared: boolean;
  post(message: unknown[], transfer?: readonly TransferListItem[]): void;
  setReferenced(referenced: boolean): void;
  /** Ends the worker by force. `onGone` is called when it has ended. */
  kill(): void;
}

export type WorkerName = { job: string; index: number };

function goneError(what: string, how: string, cause: unknown, fields: object): Error {
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
  listener: ChannelListener,
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
        if (Array.isArray(message)) listener.onMessage(message); // other messages are the user's
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
        listener.onGone(goneError(`Worker ${name}`, how, cause, { exitCode }));
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

/**
 * An environment variable that counts how deep clusters of processes are nested, so that a
 * module which makes a cluster when it is imported does not start processes without end.
 */
const DEPTH_VARIABLE = 'ALLSTOP_CLUSTER_DEPTH';
const MAX_DEPTH = 3;

function environmentOfChild(): NodeJS.ProcessEnv {
  const depth = Number(process.env[DEPTH_VARIABLE] ?? 0);
  if (depth < MAX_DEPTH) return { ...process.env, [DEPTH_VARIABLE]: String(depth + 1) };
  throw new UnavailableError(
    `Clusters of processes can be nested ${MAX_DEPTH} deep. Does the strategy's module make a cluster when a worker imports it?`,
  );
}

/**
 * How long after a process's exit we wait for its last messages. The process's channel may never
 * close, if another process, which the user's module has started, has inherited it.
 */
const CLOSE_TIMEOUT_MS = 500;

/**
 * The living worker processes, which are killed when this process exits: a busy one would go on.
 */
const children = new Set<ChildProcess>();

function killChildren(): void {
  for (const child of children) child.kill('SIGKILL');
}

export function startProcess(
  module: URL,
  { job, index }: WorkerName,
  listener: ChannelListener,
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
    if (child.pid === undefined)
      end(goneError(`Worker ${name}`, 'could not be started', error, {}));
  });
  child.on('exit', (exitCode, exitSignal) => {
    const how = exitCode === null ? `was killed by ${exitSignal}` : `exited with code ${exitCode}`;
    const fields = exitCode === null ? { exitSignal } : { exitCode };
    const ended = (): void => {
      late.clear();
      end(goneError(`Worker ${name}`, how, cause, fields));
    };
    // The last messages of the process arrive before 'close'.
    const late = new Timer(CLOSE_TIMEOUT_MS, ended);
    child.once('close', ended);
  });
  return {
    pid: child.pid ?? Number.NaN,
    place: `process ${child.pid}`,
    words: new Int32Array(CLAIMS + 1),
    isShared: false,
    // packValue throws here for a value that cannot be cloned. A failed send is ignored: the
    // child is gone, and its 'exit' says so.
    post: (message) => void child.send(packValue(message), () => {}),
    setReferenced(referenced) {
      const how = referenced ? 'ref' : 'unref';
      child[how]();
      child.channel?.[how]?.(); // Bun's channel has neither method
    },
    kill: () => void child.kill('SIGKILL'),
  };
}
