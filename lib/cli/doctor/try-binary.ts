/** Loads the native binary as a program would, then runs the self-test. */

import { join } from 'node:path';
import { messageOf } from '../../base/thrown-value.ts';
import { Coordinator } from '../../coordinator/coordinator.ts';
import { candidates } from '../../native/binary/binary.ts';
import { explainFailure } from '../../native/binary/binary-failure.ts';
import { root } from '../../native/binary/package-files.ts';
import { binding, tryLoad } from '../../native/native.ts';
import type { Probe } from './check.ts';

const firstLine = (error: unknown): string => messageOf(error).replace(/\n[^]*/, '');

export async function tryBinary(tell: (finding: Probe) => void): Promise<void> {
  const { from, attempts } = tryLoad();
  if (from === undefined) {
    const { cause, remedy, attempt } = explainFailure(attempts);
    const tried = candidates().find(({ path, origin }) =>
      attempt === undefined ? origin !== 'compiled' : path === attempt.path,
    );
    const said = attempt && firstLine(attempt.error).replace(`${attempt.path}: `, '');
    const why = said === undefined || said === cause ? cause : `${cause} (${said})`;
    tell({ failed: { from: tried, cause: why, remedy } });
    return;
  }
  const passedOver = attempts.map((attempt) => `${attempt.path}: ${firstLine(attempt.error)}`);
  let abi: string | undefined;
  try {
    ({ abi } = binding());
  } catch (error) {
    const cause = `the file is not a binary of this package: ${firstLine(error)}`;
    tell({ failed: { from, cause } });
    return;
  }
  tell({ loaded: { from, abi, passedOver } });
  const began = performance.now();
  try {
    await selfTest();
    tell({ tested: { ms: Math.round(performance.now() - began) } });
  } catch (error) {
    tell({ untested: firstLine(error) });
  }
}

// A short program that uses all parts of the native binary: a worker finds its coordinator and
// stops it; native code wakes this thread, which sees the stop and joins the worker.

const DEADLINE_MS = 10_000;

/** @throws (rejects) Error: the test failed; the message says why */
async function selfTest(): Promise<void> {
  const coord = new Coordinator({ name: 'allstop doctor', stopGracePeriodMs: DEADLINE_MS });
  const worker = coord.spawn(join(root(), 'dist/cli/self-test-worker.js'), { name: 'self-test' });
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
