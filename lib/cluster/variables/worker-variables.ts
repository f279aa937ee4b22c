/** The variables of a cluster, in one of its workers. */

import {
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
} from '../../errors/errors.ts';
import { VARIABLE_TYPES } from '../../native/binding.ts';
import { binding } from '../../native/native.ts';
import { decode } from '../../record/encoded-error.ts';
import type { Request } from './cluster-variables.ts';
import { nativeOperations, type OperationId } from './native-operations.ts';
import { type Definition, type Operations, Variable, type VariableValue } from './variable.ts';

/** The id of the calling function's next `assignAdd` on the variable; undefined outside functions. */
export type NextId = (name: string) => OperationId | undefined;

export interface WorkerVariables {
  /** @throws InvalidArgumentError: there is none of this name */
  find(name: string): Variable;
}

const unknown = (name: string): InvalidArgumentError =>
  new InvalidArgumentError(
    `There is no variable '${name}': make it with cluster.variable('${name}', ...) before the function is scheduled`,
  );

/** In a worker thread: the variables are in memory that it shares with the coordinator's thread. */
export function threadVariables(id: number, nextId: NextId): WorkerVariables {
  const found = new Map<string, Variable>();
  const owner = {};
  return {
    find(name) {
      const known = found.get(name);
      if (known !== undefined) return known;
      const all = binding().attachVariables(id);
      if (all === null) throw new UnavailableError('The variables’ coordinator has ended');
      const native = all.find(name);
      if (native === null) throw unknown(name);
      const { type, byteLength } = native;
      const bytes = VARIABLE_TYPES[type]?.endsWith('32Array') === true ? 4 : 8;
      const definition: Definition = { name, type, length: byteLength / bytes };
      const operations = nativeOperations(native, definition, () => nextId(name));
      const variable = new Variable(definition, operations, owner);
      found.set(name, variable);
      return variable;
    },
  };
}

/** What a message carries: no memory that is shared, and nothing of the buffer around a view. */
const copyOf = (value: VariableValue): VariableValue =>
  typeof value === 'number' ? value : value.slice();

/** In a worker process: messages carry the operations to the coordinator's process. */
export class ProcessVariables implements WorkerVariables {
  readonly #found = new Map<string, Variable>();
  readonly #pending = new Map<
    number,
    { resolve: (value: unknown) => void; reject: (error: unknown) => void }
  >();
  readonly #post: (id: number, request: Request) => void;
  readonly #nextId: NextId;
  #lastId = 0;

  constructor(post: (id: number, request: Request) => void, nextId: NextId) {
    this.#post = post;
    this.#nextId = nextId;
  }

  define(definition: Definition): void {
    const { name } = definition;
    if (this.#found.has(name)) return;
    const ask = (operation: Request[0], value?: VariableValue): Promise<unknown> => {
      const id = operation === 'assignAdd' ? this.#nextId(name) : undefined;
      return this.#ask([operation, name, id?.closure ?? 0, id?.ordinal ?? 0, value]);
    };
    const operations: Operations = {
      read: () => ask('read') as Promise<VariableValue>,
      assign: (value) => ask('assign', copyOf(value)) as Promise<void>,
      assignAdd: (delta) => ask('assignAdd', copyOf(delta)) as Promise<void>,
    };
    this.#found.set(name, new Variable(definition, operations, this));
  }

  find(name: string): Variable {
    const variable = this.#found.get(name);
    if (variable === undefined) throw unknown(name);
    return variable;
  }

  /** The coordinator's answer. `record`: an encoded error. */
  answered(id: number, value: unknown, record: Uint8Array | undefined): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (record === undefined) pending?.resolve(value);
    else pending?.reject(decode(record).value);
  }

  #ask(request: Request): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#post(id, request);
    });
  }
}

/** In a worker whose strategy has no variables. */
export const noVariables: WorkerVariables = {
  find() {
    throw new FailedPreconditionError('This cluster’s strategy has no variables');
  },
};
