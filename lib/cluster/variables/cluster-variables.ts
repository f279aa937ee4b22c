/** The variables whose values are in this process. */

import { InvalidArgumentError, poolClosed } from '../../errors/errors.ts';
import type { NativeVariable, NativeVariables } from '../../native/binding.ts';
import { binding } from '../../native/native.ts';
import type { Answer, Request, VariableSource } from '../../pool/worker/variables.ts';
import { encode } from '../../record/encoded-error.ts';
import {
  byteLengthOf,
  checkFits,
  type Definition,
  definitionOf,
  emptyArray,
  makeVariable,
  otherShape,
  readNative,
  type Values,
  type Variable,
  type VariableStore,
  type VariableValue,
} from './variable.ts';

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
  variable: Variable;
};

/**
 * Of this length a message costs more than a copy by far. (Each published value takes a file
 * descriptor, of which a process may have no more than 1,024.)
 */
const PUBLISHED_BYTES = 64 * 1024;

/** What `perform` returns, or the error that it throws. */
export function answerOf(perform: () => unknown): Answer {
  try {
    return [perform()];
  } catch (error) {
    return [undefined, encode(error).bytes];
  }
}

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

  /** Of the native variables, by which a worker thread finds them. */
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
    const variable = makeVariable(
      definition,
      {
        read: () => {
          this.#checkOpen();
          return readNative(native, definition);
        },
        update: (operation, value) => {
          this.#checkOpen();
          if (operation === 'assign') native.assign(value);
          else native.assignAdd(value, 0, 0);
        },
      },
      this.#owner,
    );
    native.bindCapsule(variable);
    this.#entries.set(name, { definition, native, variable });
    workers?.define?.(definition);
    return variable;
  }

  answer(request: Request, reply: (answer: Answer) => void): void {
    reply(answerOf(() => this.perform(request)));
  }

  /** @throws InvalidArgumentError, TypeError: no such variable, or a value that does not fit it */
  perform([operation, name, call, ordinal, value]: Request): VariableValue | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new InvalidArgumentError(`There is no variable '${name}'`);
    const { native, definition } = entry;
    if (operation === 'read') return readNative(native, definition);
    checkFits('value', definition, value);
    if (operation === 'assign') native.assign(value);
    else native.assignAdd(value, call, ordinal);
    return undefined;
  }

  /** The values of all variables at one moment: no update is in one of them and missing in another. */
  async snapshot(): Promise<Values> {
    this.#checkOpen();
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
    this.#checkOpen();
    const known = [...this.#entries].flatMap(([name, { native }]) => {
      const value = values.get(name)?.value;
      return value === undefined ? [] : [{ native, value }];
    });
    this.#native.assignAll(
      known.map(({ native }) => native),
      known.map(({ value }) => value),
    );
  }

  /** The call has ended for good. */
  forget(call: number): void {
    if (this.#entries.size > 0) this.#native.forget(call);
  }

  close(): void {
    this.#isClosed = true;
    this.#native.endPublishing();
  }

  #checkOpen(): void {
    if (this.#isClosed) throw poolClosed('cluster');
  }
}
