/** The variables of a run, as the threads of one of its nodes find them. */

import { UnavailableError } from '../../../errors/errors.ts';
import { encode } from '../../../record/encoded-error.ts';
import type { Definition } from '../../variables/variable.ts';
import type { Answer, Request, VariableSource } from '../../variables/variable-store.ts';

export class NodeVariables implements VariableSource {
  readonly id: undefined;
  readonly definitions: Definition[] = [];
  readonly #post: (id: number, request: Request) => void;
  readonly #replies = new Map<number, (answer: Answer) => void>();
  #lastId = 0;

  /** @param post - sends an operation to the coordinator */
  constructor(post: (id: number, request: Request) => void) {
    this.#post = post;
  }

  answer(request: Request, reply: (answer: Answer) => void): void {
    this.#lastId += 1;
    this.#replies.set(this.#lastId, reply);
    this.#post(this.#lastId, request);
  }

  /** The coordinator's answer. */
  answered(id: number, answer: Answer): void {
    this.#replies.get(id)?.(answer);
    this.#replies.delete(id);
  }

  /** The session is over: no answer will come. */
  close(): void {
    const { bytes } = encode(
      new UnavailableError("The session with the variables' coordinator is over"),
    );
    for (const reply of this.#replies.values()) reply([undefined, bytes]);
    this.#replies.clear();
  }
}
