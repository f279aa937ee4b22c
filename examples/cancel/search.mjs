// The task: a loop that does not give the event loop a turn, so that it hears no message and no
// AbortSignal. It looks at a coordinator, whose handle comes with the task's data.
import { threadId } from 'node:worker_threads';
import { Coordinator } from 'allstop';

/** The first n from `from` on whose square ends with the digits of `ending`. */
export default function search({ from, ending, stop }) {
  const coord = Coordinator.attach(stop);
  const divisor = 10n ** BigInt(String(ending).length);
  for (let n = BigInt(from); ; n++) {
    if (coord.shouldStop()) throw coord.signal.reason; // two reads of memory, no lock
    if ((n * n) % divisor === BigInt(ending)) return { found: Number(n), threadId };
  }
}
