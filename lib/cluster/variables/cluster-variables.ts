/** The variables of a cluster, at its coordinator's end. */

import { InvalidArgumentError } from '../../errors/errors.ts';
import type { NativeArray, NativeVariable, NativeVariables } from '../../native/binding.ts';
import { binding } from '../../native/native.ts';
import { encode } from '../../record/encoded-error.ts';
import { nativeOperations } from './native-operations.ts';
import {
  type Definition,
  definitionOf,
  emptyArray,
  shapeOf,
  Variable,
  type VariableValue,
} from './variable.ts';

/** An operation that a worker process asks for: the last is the value, or the delta. */
export type Request = [
  operation: keyof typeof OPERATIONS,
  name: string,
  closure: number,
  ordinal: number,
  value?: VariableValue | undefined,
];

const OPERATIONS = { read: true, assign: true, assignAdd: true };

/** The ClusterVariables of each ClusterCoordinator. */
export const variablesOf: WeakMap<object, ClusterVariables> = new WeakMap();

/** A value of each variable; a number's is a Float64Array with one element. */
export type Values = Map<string, { definition: Definition; value: NativeArray }>;

type Entry = { definition: Definition; native: NativeVariable; variable: Variable };

export class ClusterVariables {
  readonly #owner: object;
  readonly #native: NativeVariables = binding().createVariables();
  readonly #entries = new Map<string, Entry>();

  /** @param owner - the ClusterCoordinator */
  constructor(owner: object) {
    this.#owner = owner;
    variablesOf.set(owner, this);
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
  define(
    name: string,
    initial: unknown,
  ): { variable: Variable; definition: Definition; isNew: boolean } {
    const definition = definitionOf(name, initial);
    const native = this.#native.define(name, definition.type, initial as VariableValue);
    const known = this.#entries.get(name);
    if (native === null) {
      const is = shapeOf((known as Entry).definition);
      throw new InvalidArgumentError(
        `The variable '${name}' is ${is}, not ${shapeOf(definition)}: give it the value that it was made with, or another name`,
      );
    }
    if (known !== undefined) return { variable: known.variable, definition, isNew: false };
    const operations = nativeOperations(native, definition, () => undefined);
    const variable = new Variable(definition, operations, this.#owner);
    this.#entries.set(name, { definition, native, variable });
    return { variable, definition, isNew: true };
  }

  /** @returns [value or undefined, encoded error or undefined] */
  answer([operation, name, closure, ordinal, value]: Request): [unknown, Uint8Array?] {
    try {
      const entry = this.#entries.get(name);
      if (entry === undefined) throw new InvalidArgumentError(`There is no variable '${name}'`);
      const { native, definition } = entry;
      const operations = nativeOperations(native, definition, () => ({ closure, ordinal }));
      return [operations[operation](value as VariableValue)];
    } catch (error) {
      return [undefined, encode(error).bytes];
    }
  }

  /** The values of all variables at one moment: no update is in one of them and missing in another. */
  snapshot(): Values {
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
  restore(values: Values): void {
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

  /** The closure has ended for good. */
  forget(closure: number): void {
    if (this.#entries.size > 0) this.#native.forget(closure);
  }
}
