/** Starts a worker thread or process, and carries messages to and from it. */

import type { ChildProcess } from 'node:child_process';
import type { Writable } from 'node:stream';
import type { ResourceLimits, SHARE_ENV } from 'node:worker_threads';
import { builtin, workerThreads } from '../../base/builtins.ts';
import { attempt, namedMessageOf } from '../../base/thrown-value.ts';
import { clearImmediate, now, RealTimer, setImmediate, turn } from '../../base/timer.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import type { Coordinator } from '../../coordinator/coordinator.ts';
import { openLine } from '../../coordinator/threads/fork.ts';
import { causeOfDeath, forgetWorker } from '../../coordinator/threads/watch.ts';
import { execArgvOfFile, startWorker, workerEntry } from '../../coordinator/threads/workers.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { binding } from '../../native/native.ts';
import { decode } from '../../record/encoded-error.ts';
import { nameProcess, threadNameOf } from '../../record/stop-record.ts';
import type { Movable } from '../../values/to-thread.ts';
import { packMessage, unpackMessage } from '../../values/value.ts';
import type { StrategyHost } from '../queue/strategy.ts';
import {
  CLAIMS,
  type FromWorker,
  isFromWorker,
  type ToWorker,
  type WorkerSettings,
} from '../worker/messages.ts';
import type { ModuleHooks } from '../worker/module.ts';
import { bytesOf, type Chunk, type Done, isPipe, writeAll } from '../worker/output.ts';

// Writes what a worker thread has written to stdout and stderr to this thread's own, in the order
// in which it was written, and before anything that the worker has sent later is read.

const nothing = (): void => {};

class Output {
  readonly #onWritten: (descriptor: number) => void;
  /** What has come in this turn of the event loop, all for one stream. */
  #chunks: (string | Uint8Array)[] = [];
  #descriptor = 1;
  #isAsked = false;
  #immediate: NodeJS.Immediate | undefined;
  #unwritten = 0;
  #onAll: (() => void) | undefined;

  /** `onWritten`: the worker has asked when this was written. */
  constructor(onWritten: (descriptor: number) => void) {
    this.#onWritten = onWritten;
  }

  add({ descriptor, chunk, asks }: Extract<FromWorker, { kind: 'allstop:output' }>): void {
    if (descriptor !== this.#descriptor) this.flush();
    this.#descriptor = descriptor;
    this.#chunks.push(chunk);
    this.#isAsked ||= asks;
    // One write for many lines: a socket takes few small ones.
    this.#immediate ??= setImmediate(() => this.flush());
  }

  flush(): void {
    if (this.#immediate === undefined) return;
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    const chunks = this.#chunks;
    const descriptor = this.#descriptor;
    const isAsked = this.#isAsked;
    this.#chunks = [];
    this.#isAsked = false;
    this.#unwritten += 1;
    write(descriptor, chunks, () => {
      this.#unwritten -= 1;
      if (isAsked) this.#onWritten(descriptor);
      if (this.#unwritten === 0) this.#onAll?.();
    });
  }

  /**
   * The worker has ended. Calls `onAll` when all is written, or after `limitMs`: whoever reads may
   * have stopped reading. What is left then is written all the same, when it can be.
   */
  end(limitMs: number, onAll: () => void): void {
    this.flush();
    if (this.#unwritten === 0) return onAll();
    const over = (): void => {
      this.#onAll = undefined;
      limit.clear();
      onAll();
    };
    const limit = new RealTimer(limitMs, over);
    this.#onAll = over;
  }
}

/** As `console.log`, an error of the stream is nobody's: the reader has gone, for example. */
function write(
  descriptor: number,
  chunks: readonly (string | Uint8Array)[],
  onWritten: () => void,
): void {
  const stream = descriptor === 1 ? process.stdout : process.stderr;
  writeAllAtExit(descriptor);
  const isText = chunks.every((chunk) => typeof chunk === 'string');
  const all = isText ? chunks.join('') : Buffer.concat(chunks.map((chunk) => Buffer.from(chunk)));
  stream.once('error', nothing);
  stream.write(all, (error) => {
    if (error && stream.listenerCount('error') === 0) stream.once('error', nothing);
    onWritten();
  });
  stream.off('error', nothing);
}

// Has the exit of the process, by `process.exit()` for example, write what its stdout and stderr have
// not written yet: what workers printed, and what the program did. A full pipe takes the rest of a
// stream only while the event loop runs. (Files and terminals take all at once, and so do pipes on
// Windows.)

type Outlet = Writable & {
  /** What waits until the system has taken what was written before. */
  readonly writableBuffer?: readonly Chunk[];
  readonly _handle?: { readonly writeQueueSize?: number };
  [seen]?: true;
};

/** Other copies of this code, in bundles, see to the same streams. */
const seen = Symbol.for('allstop.wholeOutput');

/** So long the exit waits for a reader that takes nothing. */
const PATIENCE_MS = 5_000;

/** Sees to one of the two streams, once. */
function writeAllAtExit(descriptor: number): void {
  const stream: Outlet = descriptor === 1 ? process.stdout : process.stderr;
  if (stream[seen] || !workerThreads().isMainThread) return;
  stream[seen] = true;
  if (process.platform === 'win32' || !isPipe(descriptor)) return;
  const { _write, _writev } = stream;
  /** What the stream has given to the system, which may have a part of it still. */
  let given: readonly Chunk[] = [];
  const taken =
    (done: Done): Done =>
    (error) => {
      given = [];
      done(error);
    };
  stream._write = (chunk: Chunk['chunk'], encoding, done) => {
    given = [{ chunk, encoding }];
    Reflect.apply(_write, stream, [chunk, encoding, taken(done)]);
  };
  if (typeof _writev === 'function') {
    stream._writev = (chunks: readonly Chunk[], done) => {
      given = chunks;
      Reflect.apply(_writev, stream, [chunks, taken(done)]);
    };
  }
  process.on('exit', () => {
    const { writableBuffer = [], _handle } = stream;
    const sent = bytesOf(given);
    const left = Math.min(_handle?.writeQueueSize ?? 0, sent.length);
    const rest = Buffer.concat([sent.subarray(sent.length - left), bytesOf(writableBuffer)]);
    attempt(() => writeAll(descriptor, rest, PATIENCE_MS)); // the reader may have gone
  });
}

export type Isolation = 'thread' | 'process';

export interface ChannelListener {
  onMessage(message: FromWorker): void;
  /**
   * Called when a message of a thread cannot be deserialized.
   *
   * @returns false if it is not known whose result the message is: the thread is ended then
   */
  onUnreadable(error: unknown): boolean;
  /** Whether the worker runs nothing, and can end by itself. */
  isIdle(): boolean;
  /** The thread was killed, and is blocked in native code. `onGone` follows when it has ended. */
  onStuck(): void;
  /** The worker has ended, and what it printed is written. Called once; no other call follows. */
  onGone(cause: Error): void;
}

/** The coordinator's end of the channel. */
export interface WorkerChannel {
  /** NaN if the process could not be started. */
  readonly pid: number;
  /** For messages: `thread 5` or `process 4711`. */
  readonly place: string;
  /** Undefined: a process. */
  readonly threadId: number | undefined;
  /** The claims (messages.ts). */
  readonly words: Int32Array;
  /** Whether the worker sees `words`: a thread does, a process does not. */
  readonly isShared: boolean;
  post(message: ToWorker, transfer?: readonly Movable[]): void;
  /** Ends the worker by force. `onGone` is called when it has ended. */
  kill(): void;
}

export type WorkerName = { job: string; index: number };

/** When a worker is replaced, between functions. */
export type Recycle = {
  /** After this many functions. By default their number does not matter. */
  readonly tasks?: number | undefined;
  /** After a function that leaves its heap larger, in MB (2 ** 20 bytes). Default: Infinity. */
  readonly heapMb?: number | undefined;
};

/** What each worker is started with, besides its name. */
export type WorkerOptions = ModuleHooks & {
  readonly module: URL;
  /** How many asynchronous functions run at once on one worker (1). */
  readonly concurrency?: number | undefined;
  readonly recycle?: Recycle | undefined;
  /** Options of Node's Worker and `fork`; the first two are for threads only. */
  readonly workerData?: unknown;
  readonly resourceLimits?: ResourceLimits | undefined;
  readonly execArgv?: readonly string[] | undefined;
  readonly argv?: readonly string[] | undefined;
  readonly env?: NodeJS.ProcessEnv | typeof SHARE_ENV | undefined;
};

function goneError(what: string, how: string, cause: unknown, fields: object): Error {
  const because = cause === undefined ? '' : `: ${namedMessageOf(cause)}`;
  const error = new UnavailableError(
    `${what} ${how}${because}`,
    cause === undefined ? {} : { cause },
  );
  return Object.assign(error, fields);
}

function settingsOf(
  options: WorkerOptions,
  { job, index }: WorkerName,
  { name }: Coordinator,
): WorkerSettings {
  const { module, setup, teardown, concurrency = 1, recycle } = options;
  const own = { module: module.href, setup, teardown, concurrency, heapMb: recycle?.heapMb };
  return { kind: 'cluster', poolName: name, job, index, ...own };
}

/** The number of claims: each call that was sent has one. */
const claimsOf = ({ concurrency = 1 }: WorkerOptions): number => Math.max(CLAIMS, concurrency);

/** A thread that has not ended this long after `terminate()` is blocked in native code. */
const STUCK_AFTER_MS = 1_000;

export function startThread(
  { coordinator, variables, cancelGraceMs }: StrategyHost,
  options: WorkerOptions,
  { job, index }: WorkerName,
  listener: ChannelListener,
): WorkerChannel {
  const { resourceLimits, execArgv, argv, env } = options;
  const length = claimsOf(options);
  const words = new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));
  const workerData: WorkerSettings = {
    ...settingsOf(options, { job, index }, coordinator),
    words,
    workerData: options.workerData,
  };
  if (variables.id !== undefined) workerData.variables = variables.id;
  else workerData.definitions = [...variables.definitions];
  const name = `${job}:${index}`;
  let cause: unknown;
  let stuck: RealTimer | undefined;
  const output = new Output((descriptor) =>
    worker.postMessage({ kind: 'written', descriptor } satisfies ToWorker),
  );
  const worker = startWorker(
    attachmentOf(coordinator),
    workerEntry(),
    {
      name: threadNameOf(job, index),
      workerData,
      ...(resourceLimits !== undefined && { resourceLimits }),
      ...(execArgv !== undefined && { execArgv: [...execArgv] }),
      ...(argv !== undefined && { argv: [...argv] }),
      ...(env !== undefined && { env }),
    },
    (made) => {
      const { threadId } = made;
      made.on('message', (message: unknown) => {
        if (!isFromWorker(message)) return;
        if (message.kind === 'allstop:output') return output.add(message);
        output.flush();
        listener.onMessage(message);
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
        stuck?.clear();
        forgetWorker(threadId);
        const how = cause === undefined ? `exited with code ${exitCode}` : 'died';
        const gone = goneError(`Worker ${name}`, how, cause, { exitCode });
        output.end(cancelGraceMs, () => listener.onGone(gone));
      });
    },
  );
  worker.unref(); // the pool holds the event loop while it is needed
  return {
    pid: process.pid,
    place: `thread ${worker.threadId}`,
    threadId: worker.threadId,
    words,
    isShared: true,
    post: (message, transfer) => worker.postMessage(message, transfer as ArrayBuffer[]),
    kill() {
      void worker.terminate();
      stuck ??= new RealTimer(STUCK_AFTER_MS, () => listener.onStuck());
    },
  };
}

/**
 * An environment variable that counts how deep pools of processes are nested, so that a
 * module which makes a pool when it is imported does not start processes without end.
 */
const DEPTH_VARIABLE = 'ALLSTOP_CLUSTER_DEPTH';
const MAX_DEPTH = 3;

/**
 * `fork` starts `process.execPath`. In a single executable application that is the application
 * itself, which would make this pool again, and so on.
 */
function refuseSingleExecutable(): void {
  if (!process.getBuiltinModule?.('node:sea')?.isSea?.()) return;
  throw new UnavailableError(
    "A single executable application has no worker processes: each would be the application itself. Use the option isolation: 'thread'",
  );
}

function environmentOfChild(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const depth = Number(process.env[DEPTH_VARIABLE] ?? 0);
  if (depth < MAX_DEPTH) return { ...env, [DEPTH_VARIABLE]: String(depth + 1) };
  throw new UnavailableError(
    `Pools of worker processes can be nested ${MAX_DEPTH} deep. Does the module of the workers make a pool when a worker imports it?`,
  );
}

/**
 * How long after a process's exit we wait for its last messages. The process's channel may never
 * close, if another process, which the user's module has started, has inherited it.
 */
const CLOSE_TIMEOUT_MS = 500;

/**
 * A process that has not begun to run our code after this time is ended: Node itself may hang in it,
 * where memory is short. (The import of the module comes later, and may take as long as it likes.)
 */
const BEGINS_WITHIN_MS = 60_000;

/** Whether the process waits for a debugger before it begins. */
const waitsForDebugger = (execArgv: readonly string[], env: NodeJS.ProcessEnv): boolean =>
  [...execArgv, env['NODE_OPTIONS']].some((text) => /--inspect-(?:brk|wait)/.test(text ?? ''));

/** At the exit of this process, with which nothing else goes on. */
const LONGEST_WAIT_MS = 60_000;

/**
 * The living worker processes, which end when this process exits: those that run nothing by
 * themselves, as they do when their pool is closed; a busy one would go on, and is killed.
 */
const children = new Map<ChildProcess, { isIdle(): boolean; graceMs: number }>();

function endChildren(): void {
  const idle: (readonly [ChildProcess, number])[] = [];
  for (const [child, { isIdle, graceMs }] of children) {
    if (isIdle()) {
      child.send(packMessage({ kind: 'end', letsGo: false } satisfies ToWorker), () => {});
      idle.push([child, now() + graceMs]);
    } else child.kill('SIGKILL');
  }
  for (const [child, until] of idle) {
    const ms = Math.min(LONGEST_WAIT_MS, Math.max(0, Math.ceil(until - now())));
    if (!binding().awaitChild(child.pid as number, ms)) child.kill('SIGKILL');
  }
}

export function startProcess(
  { coordinator, cancelGraceMs }: StrategyHost,
  options: WorkerOptions,
  { job, index }: WorkerName,
  listener: ChannelListener,
): WorkerChannel {
  const { execArgv = execArgvOfFile(), argv = [], env = process.env } = options;
  const name = `${job}:${index}`;
  const settings = settingsOf(options, { job, index }, coordinator);
  const fixed = { threadId: undefined, words: new Int32Array(claimsOf(options)), isShared: false };
  refuseSingleExecutable();
  const environment = environmentOfChild(env as NodeJS.ProcessEnv);
  let line = 0;
  let child: ChildProcess;
  try {
    // It has a line, so that it hears stop and cancellations while it computes.
    child = openLine(attachmentOf(coordinator), ({ id, inherited, down }) => {
      const stdio = ['inherit', 'inherit', 'inherit', 'ipc'] as const;
      const started = JSON.stringify({ ...settings, down: down(stdio.length) });
      const forked = builtin('node:child_process').fork(workerEntry(), [started, ...argv], {
        serialization: 'advanced',
        execArgv: [...execArgv],
        env: environment,
        stdio: [...stdio, ...inherited],
      });
      const close = (): void => binding().closeForkLine(id);
      forked.once('exit', close);
      if (forked.pid === undefined) close();
      line = id;
      return forked;
    });
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    // The system has no descriptor or thread left for a line: as if it had died, it is tried again.
    const gone = goneError(`Worker ${name}`, 'could not be started', error, {});
    process.nextTick(() => listener.onGone(gone));
    return { ...fixed, pid: Number.NaN, place: 'no process', post: nothing, kill: nothing };
  }
  if (child.pid !== undefined) nameProcess(child.pid, name);
  if (children.size === 0) process.on('exit', endChildren);
  children.set(child, { isIdle: () => listener.isIdle(), graceMs: cancelGraceMs });
  let isGone = false;
  const end = (error: Error): void => {
    if (isGone) return;
    isGone = true;
    begins.clear();
    children.delete(child);
    if (children.size === 0) process.off('exit', endChildren);
    listener.onGone(error);
  };
  let cause: unknown;
  let hasBegun = waitsForDebugger(execArgv, environment);
  const begins = new RealTimer(BEGINS_WITHIN_MS, () => {
    // If this thread was busy itself, the message may have come, and not been read.
    void turn().then(() => {
      if (hasBegun || isGone) return;
      const text = `it did not begin within ${BEGINS_WITHIN_MS / 1_000} s: Node, or what execArgv preloads, has hung`;
      cause = new UnavailableError(text);
      child.kill('SIGKILL');
    });
  }).unref();
  child.on('message', (message: unknown) => {
    const own = unpackMessage(message);
    if (!isFromWorker(own)) return;
    if (own.kind === 'allstop:begins') {
      hasBegun = true;
      begins.clear();
    } else if (own.kind === 'allstop:dying') cause = decode(own.error).value;
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
    const late = new RealTimer(CLOSE_TIMEOUT_MS, ended);
    child.once('close', ended);
  });
  child.unref(); // the pool holds the event loop while it is needed
  child.channel?.unref?.(); // Bun's channel has no such method
  return {
    ...fixed,
    pid: child.pid ?? Number.NaN,
    place: `process ${child.pid}`,
    // packMessage throws here for a value that cannot be cloned. A failed send is ignored: the
    // child is gone, and its 'exit' says so.
    post(message) {
      if (message.kind === 'cancel') {
        binding().cancelForkedCall(line, message.id, message.reason);
      }
      child.send(packMessage(message), () => {});
    },
    kill: () => void child.kill('SIGKILL'),
  };
}
