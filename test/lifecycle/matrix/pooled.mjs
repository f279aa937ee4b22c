// The function of the pool that a worker of the matrix has of its own.
import { once } from 'node:events';
import { currentCall } from 'allstop/cluster';

/** Adds to the variable, says that it runs, and ends with the pool. */
export async function untilStopped(sum) {
  await sum.assignAdd(1);
  const { signal } = currentCall();
  currentCall().report('runs');
  if (!signal.aborted) await once(signal, 'abort');
}
