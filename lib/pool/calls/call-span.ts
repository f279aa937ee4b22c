/** Begins the span of a call, of OpenTelemetry, when the call is queued. */

import { CallSpan } from '../../telemetry/spans.ts';
import type { Call, Closure } from '../queue/closure.ts';
import type { ClosureQueue } from '../queue/closure-queue.ts';
import { aboutOf } from '../worker/task-channel.ts';

/** Queues the call in a span that ends when its value has settled, or when it cannot be queued. */
export function putTraced(
  closure: Closure,
  { queue, coordinator }: { queue: ClosureQueue<Closure>; coordinator: object },
  context: unknown,
): Promise<void> | undefined {
  const { name } = closure.work as Call;
  const attributes = {
    'allstop.coordinator': aboutOf(coordinator).coordinator,
    'allstop.call': closure.id,
  };
  closure.trace(CallSpan.begin(name, context, attributes));
  try {
    const room = queue.put(closure);
    room?.catch((error: unknown) => closure.refuse(error));
    return room;
  } catch (error) {
    closure.refuse(error);
    throw error;
  }
}
