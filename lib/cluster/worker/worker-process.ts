/** The main function of a cluster's worker process. */

import { endWithParent } from '../../coordinator/threads/workers.ts';
import { encode } from '../../record/encoded-error.ts';
import { clusterCoordinator } from './coordinator-of-cluster.ts';
import { FunctionRunner } from './function-runner.ts';
import { FROM_WORKER, TO_WORKER, type WorkerSettings } from './protocol.ts';
import { answerStop, LateErrors, type StopMessage, stopMessage } from './stop-relay.ts';
import { packValue, unpackMessage } from './value.ts';

export async function runClusterProcess(settings: WorkerSettings): Promise<void> {
  const send = (message: unknown[]): void => {
    // A failed send is ignored: the parent is gone, and 'disconnect' says so.
    process.send?.(packValue(message), undefined, undefined, () => {});
  };
  // A busy event loop would not see 'disconnect'; this ends the process all the same.
  endWithParent();
  const coordinator = clusterCoordinator(settings);
  const late = new LateErrors(coordinator);
  const post = (message: unknown[]): void => {
    // The stop is sent first: the parent has to know it to recognise a function's error as an echo.
    if (coordinator.shouldStop()) {
      sendStop();
      for (const error of late.take()) send([FROM_WORKER.stop, error]);
    }
    send(message);
  };
  const runner = new FunctionRunner({ post }, coordinator, settings);
  // Ctrl-C in a terminal signals the whole process group; the parent decides when workers end.
  process.on('SIGINT', () => {});
  process.on('disconnect', () => process.exit());
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    send([FROM_WORKER.dying, encode(error).bytes]);
  });
  let isStopSent = false;
  const sendStop = (): void => {
    if (isStopSent) return;
    isStopSent = true;
    const own = stopMessage(coordinator) as StopMessage;
    late.skip(own);
    send([FROM_WORKER.stop, own]);
  };
  coordinator.signal.addEventListener('abort', sendStop);
  process.on('message', (bytes: unknown) => {
    const message = unpackMessage(bytes);
    if (message === undefined) return;
    if (message[0] === TO_WORKER.stop) {
      // If a native thread has stopped this process before, the parent hears of that stop first.
      if (coordinator.shouldStop()) sendStop();
      isStopSent = true;
      answerStop(coordinator, message[1] as StopMessage);
    } else runner.receive(message);
  });
  await runner.load();
}
