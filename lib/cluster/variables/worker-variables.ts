/** The variables of a cluster, in one of its workers. */

import {
  FailedPreconditionError,
  InvalidArgumentError,
  UnavailableError,
} from '../../errors/errors.ts';
import type { NativeArray } from '../../native/binding.ts';
import { binding } from '../../native/native.ts';
import type {
  Calling,
  MakeWorkerVariables,
  Request,
  WorkerVariables,
} from '../../pool/worker/variables.ts';
import { decode } from '../../record/encoded-error.ts';
import {
  byteLengthOf,
  bytesPerElement,
  type Definition,
  emptyArray,
  makeVariable,
  readNative,
  revive,
  type Variable,
  type VariableValue,
} from './variable.ts';

/**
 * A function of a call with a key may only read: its result would be kept where an earlier
 * checkpoint is restored, and the write would be missing.
 *
 * @throws FailedPreconditionError
 */
function checkMayWrite(name: string, calling: Calling): void {
  if (!calling.isKeyed()) return;
  throw new FailedPreconditionError(
    `The function of a call with a key cannot write to the variable '${name}': its result is kept, and a checkpoint that is older than the result would lack the write. Return the value, and update the variable where the result arrives`,
  );
}

const unknown = (name: string): InvalidArgumentError =>
  new InvalidArgumentError(
    `There is no variable '${name}': make it with cluster.variable('${name}', ...) before the function is scheduled`,
  );

/** In a worker thread: the variables are in memory that it shares with the coordinator's thread. */
function threadVariables(id: number, calling: Calling): WorkerVariables {
  const found = new Map<string, Variable>();
  const owner = {};
  const find = (name: string): Variable => {
    const known = found.get(name);
    if (known !== undefined) return known;
    const all = binding().attachVariables(id);
    if (all === null) throw new UnavailableError("The variables' coordinator has ended");
    const native = all.find(name);
    if (native === null) throw unknown(name);
    const { type, byteLength } = native;
    const definition: Definition = { name, type, length: byteLength / bytesPerElement(type) };
    const variable = makeVariable(
      definition,
      {
        read: () => readNative(native, definition),
        update: (operation, value) => {
          checkMayWrite(name, calling);
          if (operation === 'assign') {
            native.assign(value);
            return;
          }
          const own = calling.nextId(name);
          native.assignAdd(value, own?.call ?? 0, own?.ordinal ?? 0);
        },
      },
      owner,
    );
    native.bindCapsule(variable);
    found.set(name, variable);
    return variable;
  };
  return {
    find,
    revive: (args) => void revive(args, find),
    define: () => {},
    answered: () => {},
  };
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
function remoteVariables(
  post: (id: number, request: Request) => void,
  calling: Calling,
  definitions: readonly Definition[] = [],
): WorkerVariables {
  const found = new Map<string, Variable>();
  const pending = new Map<
    number,
    { resolve: (value: unknown) => void; reject: (error: unknown) => void }
  >();
  const owner = {};
  let lastId = 0;
  const ask = (request: Request): Promise<unknown> => {
    lastId += 1;
    const id = lastId;
    return new Promise((resolve, reject) => {
      pending.set(id, { resolve, reject });
      post(id, request);
    });
  };
  const define = (definition: Definition): void => {
    const { name } = definition;
    if (found.has(name)) return;
    const copyInto = publishedValue(definition);
    let updates = 0; // on their way
    const update = async (request: Request): Promise<void> => {
      updates += 1;
      try {
        await ask(request);
      } finally {
        updates -= 1;
      }
    };
    const variable = makeVariable(
      definition,
      {
        read: () => {
          if (copyInto !== null && updates === 0) {
            const into = emptyArray(definition);
            if (copyInto(into)) return into;
          }
          return ask(['read', name, 0, 0]) as Promise<VariableValue>;
        },
        update: (operation, value) => {
          checkMayWrite(name, calling);
          const own =
            operation === 'assign'
              ? { call: calling.id(), ordinal: calling.attempt() }
              : calling.nextId(name);
          return update([operation, name, own?.call ?? 0, own?.ordinal ?? 0, copyOf(value)]);
        },
      },
      owner,
    );
    binding().bindRemoteVariable(variable);
    found.set(name, variable);
  };
  const find = (name: string): Variable => {
    const variable = found.get(name);
    if (variable === undefined) throw unknown(name);
    return variable;
  };
  for (const definition of definitions) define(definition);
  return {
    find,
    revive: (args) => void revive(args, find),
    define(...added) {
      for (const definition of added) define(definition);
    },
    answered(id, [value, record]) {
      const asked = pending.get(id);
      pending.delete(id);
      if (record === undefined) asked?.resolve(value);
      else asked?.reject(decode(record).value);
    },
  };
}

export const workerVariables: MakeWorkerVariables = ({ variables, definitions }, calling, post) =>
  variables === undefined
    ? remoteVariables(post, calling, definitions)
    : threadVariables(variables, calling);
