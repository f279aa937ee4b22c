/** The variables of a run at a node: those that a parameter server keeps, and those that threads use. */

import { ClusterVariables } from '../../cluster/variables/cluster-variables.ts';
import type { Definition } from '../../cluster/variables/variable.ts';
import type { Answer, Request, VariableSource } from '../../cluster/variables/variable-store.ts';
import { UnavailableError } from '../../errors/errors.ts';
import type { NativeArray } from '../../native/binding.ts';
import { encode } from '../../record/encoded-error.ts';
import type { ServerRequest } from '../wire/session-messages.ts';

/** As the threads of a node find them. */
export class NodeVariables implements VariableSource {
  readonly id: undefined;
  readonly definitions: Definition[] = [];
  readonly #post: (id: number, request: Request) => void;
  readonly #replies = new Map<number, (answer: Answer) => void>();
  #lastId = 0;
  /** An encoded error: the session is over. */
  #over: Uint8Array | undefined;

  /** @param post - sends an operation to the coordinator */
  constructor(post: (id: number, request: Request) => void) {
    this.#post = post;
  }

  answer(request: Request, reply: (answer: Answer) => void): void {
    if (this.#over !== undefined) {
      reply([undefined, this.#over]);
      return;
    }
    this.#lastId += 1;
    this.#replies.set(this.#lastId, reply);
    this.#post(this.#lastId, request);
  }

  /** The coordinator's answer. An array is copied: the message's is a view of a longer buffer. */
  answered(id: number, [value, record]: Answer): void {
    const own = ArrayBuffer.isView(value) ? (value as NativeArray).slice() : value;
    this.#replies.get(id)?.(record === undefined ? [own] : [own, record]);
    this.#replies.delete(id);
  }

  /** The session is over: no answer will come. */
  close(): void {
    this.#over = encode(
      new UnavailableError("The session with the variables' coordinator is over"),
    ).bytes;
    for (const reply of this.#replies.values()) reply([undefined, this.#over]);
    this.#replies.clear();
  }
}

/** Those that a parameter server keeps for one session. */
export class KeptVariables {
  readonly #variables: ClusterVariables = new ClusterVariables(this);

  /** What to send back. */
  answer(request: ServerRequest): Answer {
    try {
      return [this.#perform(request)];
    } catch (error) {
      return [undefined, encode(error).bytes];
    }
  }

  #perform(request: ServerRequest): unknown {
    const [operation, name, call, , value] = request;
    switch (operation) {
      case 'define':
        this.#variables.define(name, value);
        return undefined;
      case 'forget':
        return this.#variables.forget(call);
      default:
        return this.#variables.perform(request as Request);
    }
  }
}
