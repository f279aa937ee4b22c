/** The variables of a run at a node: those that a parameter server keeps, and those that threads use. */

import { answerOf, type ClusterVariables } from '../../cluster/variables/cluster-variables.ts';
import { UnavailableError } from '../../errors/errors.ts';
import type { NativeArray } from '../../native/binding.ts';
import type { Answer, Definition, Request, VariableSource } from '../../pool/worker/variables.ts';
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

/** What a parameter server answers, which keeps `variables` for one session. */
export const keptAnswer = (variables: ClusterVariables, request: ServerRequest): Answer =>
  answerOf(() => {
    const [operation, name, call, , value] = request;
    if (operation === 'define') return void variables.define(name, value);
    if (operation === 'forget') return variables.forget(call);
    return variables.perform(request as Request);
  });
