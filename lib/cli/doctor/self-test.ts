/**
 * A short program that uses all parts of the native binary: a worker finds its coordinator and
 * stops it; native code wakes this thread, which sees the stop and joins the worker.
 */

import { join } from 'node:path';
import { Coordinator } from '../../coordinator/coordinator.ts';
import { root } from '../../native/binary/package-files.ts';

const DEADLINE_MS = 10_000;

/** @throws (rejects) Error: the test failed; the message says why */
export async function selfTest(): Promise<void> {
  const coord = new Coordinator({ name: 'allstop doctor', stopGracePeriodMs: DEADLINE_MS });
  const worker = coord.spawn(join(root(), 'dist/cli/self-test-worker.js'), {
    name: 'self-test',
  });
  try {
    if (!(await coord.waitForStop(DEADLINE_MS))) {
      throw new Error(
        `the stop that a worker requested did not arrive within ${DEADLINE_MS / 1_000} s`,
      );
    }
    if (!coord.shouldStop()) throw new Error('shouldStop() is false after a stop');
    await coord.join();
    const stoppedBy = coord.stopRecord?.requester.threadId;
    if (stoppedBy !== worker.threadId && worker.threadId !== -1) {
      throw new Error('the stop record names another thread than the worker');
    }
  } finally {
    await worker.terminate();
  }
}
