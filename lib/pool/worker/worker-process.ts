/**
 * The main function of a pool's worker process. The parent's stop, its end or that of its thread
 * which made the pool, and the cancellation of a function come twice: to a native thread
 * (listenToParent), so that a function that computes sees them, and to the event loop.
 */

import { attachmentOf } from '../../coordinator/attachment.ts';
import { StopPeer } from '../../coordinator/stop-relay.ts';
import { endWithParent } from '../../coordinator/threads/workers.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { binding } from '../../native/native.ts';
import { encode } from '../../record/encoded-error.ts';
import { packMessage, unpackMessage } from '../../values/value.ts';
import { CancelledCalls } from './cancelled-calls.ts';
import { clusterCoordinator } from './coordinator-of-cluster.ts';
import { FunctionRunner } from './function-runner.ts';
import { addLasting } from './lasting-listeners.ts';
import { type FromWorker, isToWorker, type WorkerSettings } from './messages.ts';
import { blockOutput } from './output.ts';
import type { MakeWorkerVariables } from './variables.ts';

/** How long the functions of a process may go on without the parent, or its thread. */
const ORPHAN_GRACE_MS = 1_000;

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
  let isOrphaned = false;
  const onDisconnect = (): void => {
    if (runner.isIdle) process.exit();
    isOrphaned = true;
    // The timer holds the event loop, which nothing else may: a function that awaits the stop would
    // end with the loop, before it has heard of it. A function may also have closed the channel
    // itself: then the parent lives on, and waits for the end of this process.
    setTimeout(() => process.exit(), ORPHAN_GRACE_MS);
    const gone = `The parent process ${parent}, or its thread that made this ${coordinator.name}, has ended`;
    if (!coordinator.shouldStop()) coordinator.requestStop(new UnavailableError(gone));
    stops.end();
  };
  const onMessage = (bytes: unknown): void => {
    const message = unpackMessage(bytes);
    if (!isToWorker(message)) return;
    if (message.kind === 'stop') stops.answer(message.stop);
    else runner.receive(message);
  };
  addLasting(process, {
    message: onMessage,
    disconnect: onDisconnect,
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
