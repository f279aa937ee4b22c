/** TensorFlow's QueueRunner: threads that keep a queue filled. */

import { parse } from 'node:path';
import {
  checkBoolean,
  checkFunction,
  checkFunctionOrUrl,
  checkOptions,
  checkString,
  holds,
  invalidType,
  isList,
  nameOf,
  unchecked,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import { define } from '../base/thrown-value.ts';
import { Attachment, attachmentOf, checkCoordinator } from '../coordinator/attachment.ts';
import type { Coordinator } from '../coordinator/coordinator.ts';
import { checkErrorTypes, type ErrorClass } from '../coordinator/coordinator-options.ts';
import { OwnThread } from '../coordinator/threads/tasks.ts';
import { runInWorker } from '../coordinator/threads/workers.ts';
import { waitForStop } from '../coordinator/waits.ts';
import { counted } from '../coordinator/words.ts';
import { InvalidArgumentError } from '../errors/errors.ts';
import { BoundedQueue } from './bounded-queue.ts';
import { type QueueRunnerWork, runOp } from './queue-runner-worker.ts';

/**
 * The operation that a thread of a QueueRunner calls again and again: a function, called on the
 * event loop of this JavaScript thread, or the URL of a module whose default export is called in
 * a Worker. The Worker ends with the op, whatever its module has left open.
 */
export type EnqueueOp = ((queue: BoundedQueue<any>, coord?: Coordinator) => unknown) | URL;

/** The options of a QueueRunner. */
export type QueueRunnerOptions = {
  /**
   * Errors with which an op ends its thread quietly. Given as `cleanStopErrors` of a Coordinator.
   * Default: `[OutOfRangeError]`.
   */
  queueClosedErrors?: readonly (ErrorClass | string)[] | undefined;
  /** Called when the last op has ended. If it fails, the queue is closed. Default: `queue.close()`. */
  closeOp?: ((queue: BoundedQueue<any>) => unknown) | undefined;
  /** Called on a stop. Default: `queue.close({ cancelPendingEnqueues: true })`. */
  cancelOp?: ((queue: BoundedQueue<any>) => unknown) | undefined;
  /** Default: the name of the queue. */
  name?: string | undefined;
};

/** One thread of a QueueRunner. */
export interface QueueRunnerThread {
  /** `QueueRunnerThread-NAME-OP`: the names of the runner and of the op. */
  readonly name: string;
  /** Whether the thread has been started and has not ended. */
  readonly alive: boolean;
  /** @throws FailedPreconditionError: the thread was started before */
  start(): this;
  /**
   * Resolves when the thread has ended, with or without an error; at once if it was never started.
   *
   * @throws (rejects) SelfJoinError: called from within the thread
   */
  join(): Promise<void>;
}

class RunnerThread implements QueueRunnerThread {
  readonly name: string;
  readonly #thread: OwnThread;
  readonly #body: (thread: OwnThread) => Promise<void>;

  static {
    define(RunnerThread, 'name', 'QueueRunnerThread', false);
    showAs(RunnerThread.prototype, (thread) => ({
      name: thread.name,
      facts: [thread.#thread.state],
    }));
  }

  /** `attachment`: of the program's coordinator, or of a coordinator that only this thread has. */
  constructor(
    attachment: Attachment,
    name: string,
    kind: 'task' | 'worker',
    body: (thread: OwnThread) => Promise<void>,
  ) {
    this.name = name;
    this.#body = body;
    this.#thread = new OwnThread(attachment, this, kind, name);
  }

  get alive(): boolean {
    return this.#thread.alive;
  }

  start(): this {
    this.#thread.run(() => this.#body(this.#thread));
    return this;
  }

  join(): Promise<void> {
    return this.#thread.join();
  }
}

function checkOps(ops: unknown): asserts ops is EnqueueOp[] {
  if (!isList(ops)) throw invalidType('enqueueOps', 'an array of functions and URLs', ops);
  if (ops.length === 0) {
    throw new InvalidArgumentError('A QueueRunner needs at least one enqueue op');
  }
  for (const op of ops) checkFunctionOrUrl('enqueueOps[]', op);
}

function nameOfOp(op: EnqueueOp, index: number): string {
  let name: string | undefined;
  if (typeof op === 'function') name = nameOf(op);
  else if (op.protocol === 'file:') name = parse(op.pathname).name;
  return name || `op-${index + 1}`;
}

const OPTIONS = {
  queueClosedErrors: unchecked,
  closeOp: checkFunction,
  cancelOp: checkFunction,
  name: checkString,
};

/**
 * Keeps a queue filled: calls each of its enqueue ops again and again, each op in a thread of its
 * own.
 *
 * - An op that fails with an error of `queueClosedErrors` ends its thread quietly. Any other error
 *   ends the thread, too, and requests a stop of the coordinator; without a coordinator the error
 *   is kept in `exceptionsRaised`.
 * - When the last op has ended, for whatever reason, `closeOp` is called: consumers drain the
 *   queue and never hang. If `closeOp` fails, the queue is closed. (TensorFlow calls it only if the
 *   last op ends with an error of `queueClosedErrors`, and leaves the queue open if it fails.)
 * - With a coordinator there is one more thread, `…-close_on_stop`. It calls `cancelOp` on a
 *   stop, so that no producer stays blocked by a full queue, and ends with the last op.
 *   (TensorFlow's thread goes on waiting for a stop, and a join waits for that thread.)
 *
 * @example
 * ```js
 * import { BoundedQueue, Coordinator, OutOfRangeError, QueueRunner } from 'allstop';
 *
 * const coord = new Coordinator();
 * const queue = new BoundedQueue({ capacity: 2, coordinator: coord });
 * const lines = ['a', 'b', 'c'];
 * const readLine = async () => {
 *   const line = lines.shift();
 *   if (line === undefined) throw new OutOfRangeError('no line is left');
 *   await queue.enqueue(line);
 * };
 * new QueueRunner(queue, [readLine]).createThreads({ coordinator: coord, start: true });
 * for await (const line of queue) console.log(line); // a, b, c
 * ```
 */
export class QueueRunner {
  /** The option `name`. */
  readonly name: string;
  readonly #queue: BoundedQueue<any>;
  readonly #ops: EnqueueOp[];
  readonly #queueClosedTypes: string[];
  readonly #closeOp: (queue: BoundedQueue<any>) => unknown;
  readonly #cancelOp: (queue: BoundedQueue<any>) => unknown;
  #running = 0; // op threads that have been made and have not ended
  #exceptionsRaised: (() => unknown)[] = [];

  static {
    showAs(QueueRunner.prototype, (runner) => {
      const facts = [counted(runner.#ops.length, 'op'), counted(runner.#running, 'thread')];
      const errors = runner.#exceptionsRaised.length;
      if (errors > 0) facts.push(counted(errors, 'error'));
      return { name: runner.name, facts };
    });
  }

  /**
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`); InvalidArgumentError: no ops
   */
  constructor(queue: BoundedQueue<any>, enqueueOps: EnqueueOp[], options?: QueueRunnerOptions) {
    const isQueue = holds(() => queue instanceof BoundedQueue && queue.capacity > 0);
    if (!isQueue) {
      throw invalidType('queue', 'an instance of BoundedQueue', queue);
    }
    checkOps(enqueueOps);
    const given = checkOptions('options', options, OPTIONS);
    const { queueClosedErrors, closeOp, cancelOp, name } = given;
    this.#queueClosedTypes = checkErrorTypes(
      'options.queueClosedErrors',
      queueClosedErrors === undefined ? ['OutOfRangeError'] : queueClosedErrors,
    );
    this.#queue = queue;
    this.#ops = [...enqueueOps];
    this.#closeOp = closeOp ?? (() => queue.close());
    this.#cancelOp = cancelOp ?? (() => queue.close({ cancelPendingEnqueues: true }));
    this.name = name ?? queue.name;
  }

  /**
   * The errors of the ops since `createThreads` last made threads; empty if those threads have a
   * coordinator, which gets the errors.
   */
  get exceptionsRaised(): unknown[] {
    return this.#exceptionsRaised.map((give) => give());
  }

  /**
   * Makes a thread for each op, named `QueueRunnerThread-NAME-OP`, and with a coordinator one
   * more, named `QueueRunnerThread-NAME-close_on_stop`. The coordinator registers all of them.
   * Joins of the coordinator wait for a thread once it is started: by this call, or by its
   * `start()`.
   *
   * @returns an empty array while an op thread of an earlier call has not ended, even if it was
   *   never started (as in TensorFlow)
   * @throws TypeError: an option is not valid. The errors of ops go to the coordinator, or to
   *   `exceptionsRaised`
   */
  createThreads(options?: {
    /** Gets the errors of the ops, and its stop ends the ops. Default: no coordinator. */
    coordinator?: Coordinator | undefined;
    /** Whether to start the threads, too. Default: false, as in TensorFlow. */
    start?: boolean | undefined;
  }): QueueRunnerThread[] {
    const known = { coordinator: checkCoordinator, start: checkBoolean };
    const { coordinator, start = false } = checkOptions('options', options, known);
    const shared = coordinator && attachmentOf(coordinator);
    if (this.#running > 0) return [];
    const prefix = `QueueRunnerThread-${this.name}`;
    const allEnded = new AbortController();
    const threads = this.#ops.map((op, index) => {
      const opName = nameOfOp(op, index);
      const name = `${prefix}-${opName}`;
      // Without a coordinator each thread has one of its own, which keeps its error.
      const own = shared ?? Attachment.create(name, [], 0);
      const body = (thread: OwnThread): Promise<void> =>
        this.#runThread(thread, op, opName, coordinator, allEnded);
      return new RunnerThread(own, name, typeof op === 'function' ? 'task' : 'worker', body);
    });
    if (shared !== undefined) {
      const body = (thread: OwnThread): Promise<void> => this.#closeOnStop(thread, allEnded.signal);
      threads.push(new RunnerThread(shared, `${prefix}-close_on_stop`, 'task', body));
    }
    this.#running = this.#ops.length;
    this.#exceptionsRaised = [];
    if (start) for (const thread of threads) thread.start();
    return threads;
  }

  async #runThread(
    thread: OwnThread,
    op: EnqueueOp,
    opName: string,
    coord: Coordinator | undefined,
    allEnded: AbortController,
  ): Promise<void> {
    try {
      if (op instanceof URL) await this.#runInWorker(thread, op, opName, coord);
      else {
        const call = (): unknown => op(this.#queue, coord);
        await runOp(call, () => thread.stopWasRequested, this.#queueClosedTypes);
      }
    } catch (error) {
      thread.fail(error, { via: 'exception' });
    }
    const { attachment } = thread;
    const error = coord === undefined ? attachment.native.stop()?.error : undefined;
    if (error) this.#exceptionsRaised.push(() => attachment.errors.give(error));
    if (this.#running === 1) {
      try {
        await this.#closeOp(this.#queue);
      } catch {
        this.#queue.close(); // the error is ignored, as in TensorFlow, but consumers must not hang
      }
      allEnded.abort();
    }
    this.#running -= 1; // last: until then createThreads makes no new ones
  }

  #runInWorker(
    thread: OwnThread,
    op: URL,
    opName: string,
    coord: Coordinator | undefined,
  ): Promise<void> {
    return runInWorker<QueueRunnerWork>(thread, op, {
      kind: 'queue-runner',
      title: `the op '${opName}' of the QueueRunner '${this.name}'`,
      queue: this.#queue.handle,
      queueClosedTypes: this.#queueClosedTypes,
      hasCoordinator: coord !== undefined,
    });
  }

  async #closeOnStop(thread: OwnThread, allEnded: AbortSignal): Promise<void> {
    const { attachment, generation } = thread;
    const stopped = waitForStop(attachment, Number.POSITIVE_INFINITY, allEnded, generation);
    await stopped.catch(() => {}); // the last op has ended, maybe since it saw the stop first
    if (!thread.stopWasRequested) return;
    try {
      await this.#cancelOp(this.#queue);
    } catch {} // ignored, as in TensorFlow
  }
}
