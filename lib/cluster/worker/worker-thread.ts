/** The main function of a cluster's worker thread. */

import { parentPort, type TransferListItem } from 'node:worker_threads';
import { Attachment } from '../../coordinator/attachment.ts';
import { Coordinator } from '../../coordinator/coordinator.ts';
import { FunctionRunner } from './function-runner.ts';
import type { WorkerSettings } from './protocol.ts';

export async function runClusterThread(settings: WorkerSettings): Promise<void> {
  const port = parentPort;
  const coordinator = Coordinator.current();
  if (port === null || coordinator === undefined) {
    throw new Error('Only allstop can start this file, as a worker of a cluster');
  }
  (Attachment.behind(coordinator) as Attachment).refuseClear =
    'The coordinator of a cluster cannot be cleared';
  const channel = {
    post: (message: unknown[], transfer?: readonly TransferListItem[]): void =>
      port.postMessage(message, transfer as TransferListItem[]),
  };
  const runner = new FunctionRunner(channel, coordinator, settings);
  // The closures of a message that cannot be deserialized would never end: by ending itself the
  // worker has them run again.
  port.on('messageerror', (error) => {
    throw error;
  });
  await runner.load(settings.module);
  port.on('message', (message: unknown[]) => runner.receive(message));
}
