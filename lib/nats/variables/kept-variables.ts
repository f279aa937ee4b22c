/** The variables that a parameter server keeps for one session. */

import { ClusterVariables } from '../../cluster/variables/cluster-variables.ts';
import type { Answer, Request } from '../../cluster/variables/variable-store.ts';
import { encode } from '../../record/encoded-error.ts';
import type { ServerRequest } from '../wire/session-messages.ts';

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
    const [operation, name, closure, , value] = request;
    switch (operation) {
      case 'define':
        this.#variables.define(name, value);
        return undefined;
      case 'forget':
        return this.#variables.forget(closure);
      default:
        return this.#variables.perform(request as Request);
    }
  }
}
