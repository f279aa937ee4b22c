/** The variables of a cluster, in one of its workers. */

import {
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
} from '../../errors/errors.ts';
import type { NativeArray } from '../../native/binding.ts';
import { binding } from '../../native/native.ts';
import type { Calling, MakeWorkerVariables, WorkerVariables } from '../../pool/worker/variables.ts';
import { decode } from '../../record/encoded-error.ts';
import {
  byteLengthOf,
  bytesPerElement,
  type Definition,
  emptyArray,
  makeVariable,
  nativeOperations,
  type Operations,
  revive,
  type Variable,
  type VariableValue,
} from './variable.ts';
import type { Answer, Request } from './variable-store.ts';

/**
 * The operations, of which a function of a call with a key may only read: its result would be kept
 * where an earlier checkpoint is restored, and the write would be missing.
 */
function guarded(name: string, operations: Operations, calling: Calling): Operations {
  const refuse = (): void => {
    if (!calling.isKeyed()) return;
    throw new FailedPreconditionError(
      `The function of a call with a key cannot write to the variable '${name}': its result is kept, and a checkpoint that is older than the result would lack the write. Return the value, and update the variable where the result arrives`,
    );
  };
  return {
    read: () => operations.read(),
    assign(value) {
      refuse();
      return operations.assign(value);
    },
    assignAdd(delta) {
      refuse();
      return operations.assignAdd(delta);
    },
  };
}

const unknown = (name: string): InvalidArgumentError =>
  new InvalidArgumentError(
    `There is no variable '${name}': make it with cluster.variable('${name}', ...) before the function is scheduled`,
  );

/** In a worker thread: the variables are in memory that it shares with the coordinator's thread. */
function threadVariables(id: number, calling: Calling): WorkerVariables {
  const found = new Map<string, Variable>();
  const owner = {};
  const variables = {
    find(name: string): Variable {
      const known = found.get(name);
      if (known !== undefined) return known;
      const all = binding().attachVariables(id);
      if (all === null) throw new UnavailableError("The variables' coordinator has ended");
      const native = all.find(name);
      if (native === null) throw unknown(name);
      const { type, byteLength } = native;
      const definition: Definition = { name, type, length: byteLength / bytesPerElement(type) };
      const operations = nativeOperations(native, definition, () => calling.nextId(name));
      const variable = makeVariable(definition, guarded(name, operations, calling), owner);
      native.bindCapsule(variable);
      found.set(name, variable);
      return variable;
    },
    revive: (args: unknown) => void revive(args, variables.find),
    define: () => {},
    answered: () => {},
  };
  return variables;
}

/** Copies the value, and returns whether it could; null: only messages read it. */
const publishedValue = (definition: Definition): ((into: NativeArray) => boolean) | null =>
  definition.path === undefined
    ? null
    : binding().openPublished(definition.path, byteLengthOf(definition));

/** What a message carries: no memory that is shared, and nothing of the buffer around a view. */
const copyOf = (value: VariableValue): VariableValue =>
  typeof value === 'number' ? value : value.slice();

/**
 * In a worker process, or on a node: messages carry the operations to the values.
 *
 * A value that the coordinator's process publishes is read without a message. No reader sees less
 * than it was told of: an update is in that memory before it is answered (published_bytes.h). While
 * an update of this process is on its way, which a read behind it must see, that is a message, too.
 */
class RemoteVariables implements WorkerVariables {
  readonly #found = new Map<string, Variable>();
  readonly #pending = new Map<
    number,
    { resolve: (value: unknown) => void; reject: (error: unknown) => void }
  >();
  readonly #post: (id: number, request: Request) => void;
  readonly #calling: Calling;
  #lastId = 0;

  constructor(
    post: (id: number, request: Request) => void,
    calling: Calling,
    definitions: readonly Definition[] = [],
  ) {
    this.#post = post;
    this.#calling = calling;
    this.define(...definitions);
  }

  revive(args: unknown): void {
    revive(args, (name) => this.find(name));
  }

  define(...definitions: readonly Definition[]): void {
    for (const definition of definitions) this.#define(definition);
  }

  #define(definition: Definition): void {
    const { name } = definition;
    if (this.#found.has(name)) return;
    const copyInto = publishedValue(definition);
    let updates = 0; // on their way
    const update = async (request: Request): Promise<void> => {
      updates += 1;
      try {
        await this.#ask(request);
      } finally {
        updates -= 1;
      }
    };
    const operations: Operations = {
      read: () => {
        if (copyInto !== null && updates === 0) {
          const into = emptyArray(definition);
          if (copyInto(into)) return into;
        }
        return this.#ask(['read', name, 0, 0]) as Promise<VariableValue>;
      },
      assign: (value) => {
        const [call, attempt] = [this.#calling.id(), this.#calling.attempt()];
        return update(['assign', name, call, attempt, copyOf(value)]);
      },
      assignAdd: (delta) => {
        const { call, ordinal } = this.#calling.nextId(name) ?? { call: 0, ordinal: 0 };
        return update(['assignAdd', name, call, ordinal, copyOf(delta)]);
      },
    };
    const variable = makeVariable(definition, guarded(name, operations, this.#calling), this);
    binding().bindRemoteVariable(variable);
    this.#found.set(name, variable);
  }

  find(name: string): Variable {
    const variable = this.#found.get(name);
    if (variable === undefined) throw unknown(name);
    return variable;
  }

  answered(id: number, [value, record]: Answer): void {
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

export const workerVariables: MakeWorkerVariables = ({ variables, definitions }, calling, post) =>
  variables === undefined
    ? new RemoteVariables(post, calling, definitions)
    : threadVariables(variables, calling);
