/** The variables whose values are in this process. */

import { InvalidArgumentError, poolClosed } from '../../errors/errors.ts';
import type { NativeArray, NativeVariable, NativeVariables } from '../../native/binding.ts';
import { binding } from '../../native/native.ts';
import { encode } from '../../record/encoded-error.ts';
import {
  byteLengthOf,
  checkFits,
  type Definition,
  definitionOf,
  emptyArray,
  makeVariable,
  type NativeOperations,
  nativeOperations,
  otherShape,
  type Variable,
  type VariableValue,
} from './variable.ts';
import type { Answer, Request, Values, VariableSource, VariableStore } from './variable-store.ts';

/** The workers of a cluster, on this machine. */
export interface VariableUsers {
  /** They are threads of this process. */
  readonly sharesMemory?: boolean;
  /** Tells them of a new variable. */
  define?(definition: Definition): void;
}

type Entry = {
  definition: Definition;
  native: NativeVariable;
  /** Those of `variable`. */
  operations: NativeOperations;
  variable: Variable;
};

/**
 * Of this length a message costs more than a copy by far. (Each published value takes a file
 * descriptor, of which a process may have no more than 1,024.)
 */
const PUBLISHED_BYTES = 64 * 1024;

const refuse = (): never => {
  throw poolClosed('cluster');
};

export class ClusterVariables implements VariableStore, VariableSource {
  readonly #owner: object;
  readonly #native: NativeVariables = binding().createVariables();
  readonly #entries = new Map<string, Entry>();

  readonly #workers: (() => VariableUsers) | undefined;
  #isClosed = false;

  /**
   * @param owner - the ClusterCoordinator; on a parameter server, which makes no Variable that
   *   leaves it, any object
   * @param workers - those of the cluster, on this machine
   */
  constructor(owner: object, workers?: () => VariableUsers) {
    this.#owner = owner;
    this.#workers = workers;
  }

  async variable(name: string, initial: VariableValue): Promise<Variable> {
    return this.define(name, initial);
  }

  /** For `findVariables` in a worker thread. */
  get id(): number {
    return Number(this.#native.id);
  }

  get definitions(): Definition[] {
    return [...this.#entries.values()].map(({ definition }) => definition);
  }

  /**
   * The variable of this name, made with a copy of `initial` if there was none.
   *
   * @throws TypeError: `initial`; InvalidArgumentError: it has another type or length
   */
  define(name: string, initial: unknown): Variable {
    const shape = definitionOf(name, initial);
    const workers = this.#workers?.();
    const isPublished =
      byteLengthOf(shape) >= PUBLISHED_BYTES && workers !== undefined && !workers.sharesMemory;
    const native = this.#native.define(name, shape.type, initial as VariableValue, isPublished);
    const known = this.#entries.get(name);
    if (native === null) throw otherShape((known as Entry).definition, shape);
    if (known !== undefined) return known.variable;
    const { path } = native;
    const definition = path === undefined ? shape : { ...shape, path };
    const operations = nativeOperations(native, definition, () => undefined);
    const variable = makeVariable(definition, operations, this.#owner);
    native.bindCapsule(variable);
    this.#entries.set(name, { definition, native, operations, variable });
    workers?.define?.(definition);
    return variable;
  }

  answer(request: Request, reply: (answer: Answer) => void): void {
    let answer: Answer;
    try {
      answer = [this.perform(request)];
    } catch (error) {
      answer = [undefined, encode(error).bytes];
    }
    reply(answer);
  }

  /** @throws InvalidArgumentError, TypeError: no such variable, or a value that does not fit it */
  perform([operation, name, call, ordinal, value]: Request): VariableValue | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new InvalidArgumentError(`There is no variable '${name}'`);
    const { native, definition } = entry;
    const operations = nativeOperations(native, definition, () => ({ call, ordinal }));
    if (operation === 'read') return operations.read();
    checkFits('value', definition, value);
    if (operation === 'assign') operations.assign(value);
    else operations.assignAdd(value);
    return undefined;
  }

  /** The values of all variables at one moment: no update is in one of them and missing in another. */
  async snapshot(): Promise<Values> {
    if (this.#isClosed) refuse();
    const values: Values = new Map();
    for (const [name, { definition }] of this.#entries) {
      values.set(name, { definition, value: emptyArray(definition) });
    }
    const natives = [...this.#entries.values()].map(({ native }) => native);
    this.#native.readAll(
      natives,
      [...values.values()].map(({ value }) => value),
    );
    return values;
  }

  /** Sets the variables of `values`, which has values that fit, at one moment. */
  async restore(values: Values): Promise<void> {
    if (this.#isClosed) refuse();
    const natives: NativeVariable[] = [];
    const arrays: NativeArray[] = [];
    for (const [name, { native }] of this.#entries) {
      const value = values.get(name)?.value;
      if (value === undefined) continue;
      natives.push(native);
      arrays.push(value);
    }
    this.#native.assignAll(natives, arrays);
  }

  /** The call has ended for good. */
  forget(call: number): void {
    if (this.#entries.size > 0) this.#native.forget(call);
  }

  close(): void {
    this.#isClosed = true;
    this.#native.endPublishing();
    const refused: NativeOperations = { read: refuse, assign: refuse, assignAdd: refuse };
    for (const { operations } of this.#entries.values()) Object.assign(operations, refused);
  }
}
