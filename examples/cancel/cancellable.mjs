// Any pool whose tasks are data: Piscina, tinypool, workerpool, BullMQ with threads.
import { Coordinator } from 'allstop';

/**
 * Calls `run(stop)`, which has to pass `stop` to the task. When `signal` aborts, the task ends by
 * itself at its next look, and its worker lives on.
 *
 * @throws (rejects) the reason of `signal`; what the task throws
 */
export async function cancellable(signal, run) {
  signal.throwIfAborted();
  const coord = new Coordinator();
  coord.stopOnAbort(signal);
  try {
    return await run(coord.handle);
  } catch (error) {
    signal.throwIfAborted(); // the reason, not its copy from the other thread
    throw error;
  } finally {
    // From now on nothing holds the coordinator. If `signal` has aborted, this throws its reason.
    await coord[Symbol.asyncDispose]().catch(() => {});
  }
}
