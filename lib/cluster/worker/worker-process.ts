/** What a worker process of a cluster executes. */

import { endWithParent } from '../../coordinator/workers.ts';
import { encode } from '../../record/error-record.ts';
import { clusterCoordinator } from './coordinator-of-cluster.ts';
import { FunctionRunner } from './function-runner.ts';
import { FROM_WORKER, TO_WORKER, type WorkerSettings } from './protocol.ts';
import { answerStop, LateErrors, type StopMessage, stopMessage } from './stop-relay.ts';
import { packValue, unpackMessage } from './value.ts';

export async function runClusterProcess(settings: WorkerSettings): Promise<void> {
  const send = (message: unknown[]): void => {
    // That the parent is gone is said by 'disconnect'.
    process.send?.(packValue(message), undefined, undefined, () => {});
  };
  endWithParent(); // it may be killed, while we are busy
  const coordinator = clusterCoordinator(settings);
  const late = new LateErrors(coordinator);
  const post = (message: unknown[]): void => {
    // What a function comes to because of a stop is understood by who knows of that.
    if (coordinator.shouldStop()) {
      tellStop();
      for (const error of late.take()) send([FROM_WORKER.stop, error]);
    }
    send(message);
  };
  const runner = new FunctionRunner({ post }, coordinator, settings);
  // Ctrl-C in a terminal reaches the whole group: what becomes of us is the parent's affair.
  process.on('SIGINT', () => {});
  process.on('disconnect', () => process.exit());
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    send([FROM_WORKER.dying, encode(error).bytes]);
  });
  let isTold = false;
  const tellStop = (): void => {
    if (isTold) return;
    isTold = true;
    const own = stopMessage(coordinator) as StopMessage;
    late.skip(own);
    send([FROM_WORKER.stop, own]);
  };
  coordinator.signal.addEventListener('abort', tellStop);
  process.on('message', (bytes: unknown) => {
    const message = unpackMessage(bytes);
    if (message === undefined) return;
    if (message[0] === TO_WORKER.stop) {
      // A native thread may have been quicker, and its news be on its way.
      if (coordinator.shouldStop()) tellStop();
      isTold = true;
      answerStop(coordinator, message[1] as StopMessage);
    } else runner.receive(message);
  });
  await runner.load(settings.module);
}
