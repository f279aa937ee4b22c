/** Publishes the life of one call on the tracing channel, in the thread that made it. */

import type { Call } from '../queue/call.ts';
import type { Settle } from '../queue/life.ts';
import { aboutOf, type TaskMessage, traceEnd, traceStart } from '../worker/task-channel.ts';

export class CallTrace {
  readonly #message: TaskMessage;
  #call: Call | undefined;

  constructor(coordinator: object, name: string) {
    this.#message = { ...aboutOf(coordinator), side: 'caller', name, call: 0, attempt: 1 };
  }

  /** Queues the call by `put`, in the contexts that subscribers have bound to the start. */
  start<T>(call: Call, put: () => T): T {
    this.#call = call;
    this.#message.call = call.id;
    return traceStart(this.#message, put);
  }

  /** `settle`, which then also publishes the end of the call. */
  around(settle: Settle): Settle {
    return (state, value) => {
      const isFirst = settle(state, value);
      if (isFirst) {
        const { attempts = 0, isSpent = false } = this.#call ?? {};
        this.#message.attempt = isSpent ? attempts : attempts + 1;
        traceEnd(this.#message, state === 'ready' ? { result: value } : { error: value });
      }
      return isFirst;
    };
  }
}
