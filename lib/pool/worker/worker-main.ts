/** The main functions of a pool's worker thread and worker process. */

import nodeModule from 'node:module';
import workerThreads, { type MessagePort, parentPort } from 'node:worker_threads';
import { shown } from '../../base/thrown-value.ts';
import { attachmentOf } from '../../coordinator/attachment.ts';
import { Coordinator } from '../../coordinator/coordinator.ts';
import { StopPeer } from '../../coordinator/stop-relay.ts';
import { handlesUncaught } from '../../coordinator/threads/watch.ts';
import { onlyForOwnWorkers } from '../../coordinator/threads/worker-module.ts';
import { endWithParent } from '../../coordinator/threads/workers.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { binding } from '../../native/native.ts';
import { encode } from '../../record/encoded-error.ts';
import { packMessage, unpackMessage } from '../../values/value.ts';
import { clusterCoordinator } from './coordinator-of-cluster.ts';
import { CancelledCalls, FunctionRunner } from './function-runner.ts';
import { type FromWorker, isToWorker, type ToWorker, type WorkerSettings } from './messages.ts';
import { blockOutput, postOutput } from './output.ts';
import type { MakeWorkerVariables } from './variables.ts';

type Listener = (...args: never[]) => void;

/** What `addLasting` uses of a port and of `process`. Bun's port has no `removeAllListeners`. */
type Target = {
  on(event: string, listener: Listener): unknown;
  listeners?(event: string): unknown[];
  removeAllListeners?(event?: string): unknown;
};

/**
 * Adds listeners that a worker keeps whatever its functions remove: without them it would hear of no
 * call, answer or cancellation any more, and what it was sent would never end. They are added again
 * at once when they are removed. `process` tells of each with 'removeListener', unless all listeners
 * of all events are removed; a port tells of none.
 */
function addLasting(
  to: MessagePort | NodeJS.Process,
  listeners: Readonly<Record<string, Listener>>,
): void {
  const target = to as unknown as Target;
  const listen = (removed?: string): void => {
    for (const [event, listener] of Object.entries(lasting)) {
      if (removed !== undefined && event !== removed) continue;
      // A port has no `listeners`, and ignores a listener that it has.
      if (!target.listeners?.(event).includes(listener)) target.on(event, listener);
    }
  };
  const lasting = { ...listeners, removeListener: (event: string) => listen(event) };
  listen();
  const { removeAllListeners } = target;
  if (removeAllListeners === undefined) return;
  target.removeAllListeners = (...event) => {
    Reflect.apply(removeAllListeners, target, event);
    listen(...event);
    return target;
  };
}

/** The threads of Bun and Deno write to the descriptors themselves. */
const isNode = process.versions['bun'] === undefined && process.versions['deno'] === undefined;

/**
 * Shows the error that ends this thread, as Node does for a process: an error of a timer, say, may
 * come when no call runs, and so reaches no caller. Called once in a thread.
 */
export function showUncaught({ job, index }: WorkerSettings): void {
  addLasting(process, {
    uncaughtExceptionMonitor: (error: unknown) => {
      if (handlesUncaught()) return;
      process.stderr.write(`Uncaught in ${job}:${index}: ${shown(error)}\n`);
    },
  });
}

export async function runClusterThread(
  settings: WorkerSettings,
  makeVariables: MakeWorkerVariables,
): Promise<void> {
  const port = parentPort;
  const coordinator = Coordinator.current();
  if (port === null || coordinator === undefined) throw onlyForOwnWorkers();
  const post = (message: FromWorker, transfer?: readonly unknown[]): void =>
    port.postMessage(message, transfer as ArrayBuffer[]);
  const onWritten = isNode ? postOutput(post) : undefined;
  // After the last message the pool ends the thread.
  const runner = new FunctionRunner({ post, end: post }, coordinator, settings, makeVariables);
  // From now on `workerData` of node:worker_threads is the user's: our own settings were there.
  // Neither throws where another runtime's module cannot be changed.
  Reflect.set(workerThreads, 'workerData', settings.workerData);
  nodeModule.syncBuiltinESMExports?.();
  // Before setup functions run: an operation on a variable gets its answer by a message.
  addLasting(port, {
    message: (message: ToWorker) => {
      if (message.kind === 'written') onWritten?.(message.descriptor);
      else runner.receive(message);
    },
    // The calls of a message that cannot be deserialized would never end. The worker throws and
    // so ends itself, and its calls run again.
    messageerror: (error: unknown) => {
      throw error;
    },
    // Nor would those of a thread whose function has closed the port.
    close: () => {
      throw new Error('The parentPort of the thread was closed');
    },
  });
  await runner.load();
}

/** How long the functions of a process may go on without the parent, or its thread. */
const ORPHAN_GRACE_MS = 1_000;

/**
 * The parent's stop, its end or that of its thread which made the pool, and the cancellation of a
 * function come twice: to a native thread (listenToParent), so that a function that computes sees
 * them, and to the event loop.
 */
export async function runClusterProcess(
  settings: WorkerSettings,
  makeVariables: MakeWorkerVariables,
): Promise<void> {
  const send = (message: FromWorker, onSent = (): void => {}): void => {
    // A failed send is ignored: the parent is gone, and 'disconnect' says so.
    process.send?.(packMessage(message), undefined, undefined, onSent);
  };
  send({ kind: 'allstop:begins' });
  blockOutput();
  const parent = process.ppid;
  // A busy event loop would not see 'disconnect'; this ends the process all the same.
  endWithParent(ORPHAN_GRACE_MS);
  const coordinator = clusterCoordinator(settings.poolName, settings);
  const cancelled = new CancelledCalls(settings.concurrency);
  if (settings.down !== undefined) {
    const { native } = attachmentOf(coordinator);
    const { words } = cancelled;
    binding().listenToParent(native, settings.down, parent, words, ORPHAN_GRACE_MS);
  }
  const stops = new StopPeer(coordinator, {
    send: (stop) => send({ kind: 'allstop:stop', stop }),
  });
  let isOrphaned = false;
  const post = (message: FromWorker): void => {
    stops.sendStops();
    send(message);
    if (isOrphaned && runner.isIdle) process.exit();
  };
  // By itself: 'exit' listeners run, and coverage and profiles are written.
  const end = (message: FromWorker): void => {
    stops.sendStops();
    send(message, () => process.exit());
  };
  const runner = new FunctionRunner({ post, end }, coordinator, settings, makeVariables, cancelled);
  addLasting(process, {
    message: (bytes: unknown) => {
      const message = unpackMessage(bytes);
      if (!isToWorker(message)) return;
      if (message.kind === 'stop') stops.answer(message.stop);
      else runner.receive(message);
    },
    disconnect: () => {
      if (runner.isIdle) process.exit();
      isOrphaned = true;
      // The timer holds the event loop, which nothing else may: a function that awaits the stop
      // would end with the loop, before it has heard of it. A function may also have closed the
      // channel itself: then the parent lives on, and waits for the end of this process.
      setTimeout(() => process.exit(), ORPHAN_GRACE_MS);
      const gone = `The parent process ${parent}, or its thread that made this ${coordinator.name}, has ended`;
      if (!coordinator.shouldStop()) coordinator.requestStop(new UnavailableError(gone));
      stops.end();
    },
    uncaughtExceptionMonitor: (error: unknown) =>
      send({ kind: 'allstop:dying', error: encode(error).bytes }),
    // Ctrl-C in a terminal signals the whole process group; the parent decides when workers end.
    SIGINT: () => {},
    // The parent lets its functions end, and then ends it.
    SIGTERM: () => {
      runner.leave();
      send({ kind: 'allstop:leaving' });
    },
  });
  // The channel holds the event loop by a listener of Node's own, which a function may remove, too.
  process.channel?.ref?.(); // Bun's channel has no such method
  await runner.load();
}
