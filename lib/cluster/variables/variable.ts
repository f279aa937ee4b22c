/**
 * The public class Variable, how one travels among the arguments of a function, and where the values
 * are, as their users see it.
 */

import {
  checkDuration,
  checkOptions,
  checkString,
  illegalConstructor,
  integerFrom,
  invalidType,
} from '../../base/arguments.ts';
import { showAs } from '../../base/inspect.ts';
import { isObject } from '../../base/thrown-value.ts';
import { bufferOf, byteOffsetOf, classOf, lengthOf } from '../../base/typed-arrays.ts';
import { counted } from '../../coordinator/words.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { type NativeArray, type NativeVariable, VARIABLE_TYPES } from '../../native/binding.ts';
import type {
  Definition,
  Request,
  SharedVariable,
  VariableValue,
} from '../../pool/worker/variables.ts';

export type { Definition, VariableValue } from '../../pool/worker/variables.ts';

/** The type of a variable that was made with a value of type `T`: a 0 makes a number. */
export type Widened<T> = T extends number ? number : T;

/** Carries the operations of one variable to its value. Given only values that fit. */
export interface Operations {
  read(): VariableValue | Promise<VariableValue>;
  update(operation: Update, value: VariableValue): void | Promise<void>;
}

export type Update = Exclude<Request[0], 'read'>;

/** Of an array with the value, or a copy of it: by type, as VARIABLE_TYPES. */
const CLASSES = [Float64Array, Float64Array, Float32Array, Int32Array] as const;
const classFor = (type: number) => CLASSES[type] ?? Float64Array;

/** A property that clones of a Variable have, with the variable's name. */
const MARK = 'allstop:variable';

/** While arguments are copied: the cluster that they are for, and whether a Variable was among them. */
let copying: { owner: object; hasVariables: boolean } | undefined;

const DONE: Promise<void> = Promise.resolve();

/** The first argument of the constructor, which programs do not have. */
const MAKING = Symbol('making a Variable');

/** Makes the Variable of `cluster.variable`, and those of workers, for the cluster `owner`. */
export let makeVariable: (
  definition: Definition,
  operations: Operations,
  owner: object,
) => Variable;

/**
 * State that scheduled functions read and update: a variable on TensorFlow's parameter servers.
 * Made by `cluster.variable`. In a worker it is found among the function's arguments, or by
 * `currentCall().variable(name)`.
 *
 * Each operation is atomic: a `read` gives a value from between two others. With worker threads the
 * value is in memory that the threads share; with worker processes it is in the coordinator's
 * process, and a message carries each operation there, but for a `read` of an array of 64 KiB or
 * more on Linux: that memory is shared with them. Over NATS it is on a parameter server, and
 * operations go through the coordinator.
 */
export class Variable<T extends VariableValue = VariableValue> implements SharedVariable<T> {
  readonly #definition: Definition;
  readonly #operations: Operations;

  static {
    makeVariable = (...parts) => new Variable(MAKING, ...parts);
    showAs(Variable.prototype, (variable) => ({
      name: variable.name,
      facts: [shapeOf(variable.#definition)],
    }));
  }

  private constructor(
    making: symbol,
    definition: Definition,
    operations: Operations,
    owner: object,
  ) {
    if (making !== MAKING) {
      throw illegalConstructor('a Variable is made by cluster.variable(name, initial)');
    }
    this.#definition = definition;
    this.#operations = operations;
    // The copy of a class's object is a plain object. The copy of this one says by MARK what it
    // is, and `copying` hears, without a walk through the arguments, that there is one.
    const { name } = definition;
    const mark = (): string => {
      if (copying?.owner !== owner) {
        throw new InvalidArgumentError(
          `The variable '${name}' can only be sent as an argument, to functions of its own cluster`,
        );
      }
      copying.hasVariables = true;
      return name;
    };
    Object.defineProperty(this, MARK, { enumerable: true, get: mark });
  }

  get name(): string {
    return this.#definition.name;
  }

  /**
   * A copy of the value.
   *
   * @throws (rejects) UnavailableError: the variable's memory or process is gone;
   *   FailedPreconditionError: the cluster is closed
   */
  async read(): Promise<T> {
    return (await this.#operations.read()) as T;
  }

  /**
   * Sets the value. In a function that is run again, it is set again.
   *
   * @throws (rejects) TypeError: a value of another type; InvalidArgumentError: of another length;
   *   UnavailableError, FailedPreconditionError: as for `read`
   */
  assign(value: T): Promise<void> {
    return this.#update('assign', 'value', value);
  }

  /**
   * Adds `delta`, element by element; elements of an Int32Array wrap around. In a scheduled
   * function it counts exactly once, also if the function is run again: its n-th `assignAdd` on this
   * variable is added in the first attempt that makes it.
   *
   * @throws (rejects) as `assign`
   */
  assignAdd(delta: T): Promise<void> {
    return this.#update('assignAdd', 'delta', delta);
  }

  #update(operation: Update, what: string, value: T): Promise<void> {
    try {
      checkFits(what, this.#definition, value);
      return this.#operations.update(operation, value) ?? DONE;
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

/**
 * The type and length of a variable that begins with `initial`.
 *
 * @throws TypeError
 */
export function definitionOf(name: string, initial: unknown): Definition {
  if (typeof initial === 'number') return { name, type: 0, length: 1 };
  const type = VARIABLE_TYPES.findIndex((each) => each === classOf(initial));
  if (type === -1) {
    throw invalidType(
      'initial',
      'of type number or an instance of Float64Array, Float32Array or Int32Array',
      initial,
    );
  }
  return { name, type, length: lengthOf(initial) };
}

/** For messages: `a number`, `a Float64Array of 3 elements`. */
export function shapeOf({ type, length }: Definition): string {
  const name = VARIABLE_TYPES[type];
  const article = name === 'Int32Array' ? 'an' : 'a';
  return type === 0 ? 'a number' : `${article} ${name} of ${counted(length, 'element')}`;
}

/** The error of a second `cluster.variable` of one name: `known` is the first. */
export const otherShape = (known: Definition, given: Definition): InvalidArgumentError =>
  new InvalidArgumentError(
    `The variable '${known.name}' is ${shapeOf(known)}, not ${shapeOf(given)}: give it the value that it was made with, or another name`,
  );

/** @throws TypeError, InvalidArgumentError */
export function checkFits(
  what: string,
  definition: Definition,
  value: unknown,
): asserts value is VariableValue {
  const { name, type, length } = definition;
  const known = VARIABLE_TYPES[type] ?? 'number';
  if (known === 'number') {
    if (typeof value !== 'number') throw invalidType(what, 'of type number', value);
    return;
  }
  if (classOf(value) !== known) throw invalidType(what, `an instance of ${known}`, value);
  const given = lengthOf(value);
  if (given !== length) {
    throw new InvalidArgumentError(
      `The variable '${name}' is ${shapeOf(definition)}: a ${what} of ${given} does not fit`,
    );
  }
}

/** Whether `value` can be all of the variable's value; a number's is in a Float64Array. */
export const isArrayFor = ({ type, length }: Definition, value: unknown): value is NativeArray =>
  classOf(value) === classFor(type).name && lengthOf(value) === length;

/** An array of zeros, for a copy of the variable's value; of one element for a number. */
export const emptyArray = ({ type, length }: Definition): NativeArray =>
  new (classFor(type))(length);

/** A view of the elements of `value`, which has as many at `begin`, that have this definition. */
export function elementsOf(
  { type, length }: Definition,
  value: NativeArray,
  begin: number,
): NativeArray {
  const Class = classFor(type);
  const start = byteOffsetOf(value) + begin * Class.BYTES_PER_ELEMENT;
  return new Class(bufferOf(value), start, length);
}

/** `type`: an index into VARIABLE_TYPES. */
export const bytesPerElement = (type: number): number => classFor(type).BYTES_PER_ELEMENT;

/** A view of the bytes of an array. */
export const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** The length of its value, or of a copy of it. */
export const byteLengthOf = ({ type, length }: Definition): number =>
  length * bytesPerElement(type);

/**
 * Calls `copy`, which copies arguments for functions of the cluster `owner`.
 *
 * @returns its result, and whether the copy contains a Variable: then the worker calls `revive`
 */
export function copyWithVariables<T>(owner: object, copy: () => T): [T, boolean] {
  const outer = copying;
  const own = { owner, hasVariables: false };
  copying = own;
  try {
    return [copy(), own.hasVariables];
  } finally {
    copying = outer;
  }
}

/** Puts Variables in the place of their copies, in arrays, plain objects, Maps and Sets. */
export function revive(value: unknown, find: (name: string) => Variable): unknown {
  const done = new Map<object, unknown>();
  const visit = (each: unknown): unknown => {
    if (!isObject(each) || ArrayBuffer.isView(each)) return each;
    if (done.has(each)) return done.get(each);
    if (Object.hasOwn(each, MARK)) {
      const variable = find(Reflect.get(each, MARK));
      done.set(each, variable);
      return variable;
    }
    done.set(each, each);
    if (each instanceof Map) {
      const entries = [...each].map(([key, item]) => [visit(key), visit(item)] as const);
      each.clear();
      for (const [key, item] of entries) each.set(key, item);
    } else if (each instanceof Set) {
      const items = [...each].map(visit);
      each.clear();
      for (const item of items) each.add(item);
    } else {
      for (const key of Object.keys(each)) {
        const item: unknown = Reflect.get(each, key);
        const own = visit(item);
        if (own !== item) (each as Record<string, unknown>)[key] = own;
      }
    }
    return each;
  };
  return visit(value);
}

/** A copy of a value that is in this process. */
export function readNative(native: NativeVariable, definition: Definition): VariableValue {
  if (definition.type === 0) return native.read() as number;
  const into = emptyArray(definition);
  native.read(into);
  return into;
}

// The arguments of `cluster.variable`.

export type VariableOptions = {
  /**
   * The index of the parameter server that keeps the variable. By default its name decides, and one
   * of more than 1 MiB is on several servers, each with a range of its elements. A LocalStrategy has
   * none, and ignores it.
   */
  ps?: number | undefined;
  /**
   * Milliseconds to wait for a parameter server. Default: 60,000. A LocalStrategy has nothing to
   * wait for.
   */
  timeoutMs?: number | undefined;
};

/** @throws TypeError, RangeError, InvalidArgumentError */
export function checkVariableOptions(name: unknown, options: unknown): void {
  checkString('name', name);
  if (name === '') throw new InvalidArgumentError('The name of a variable is empty');
  const known = { ps: integerFrom(0), timeoutMs: checkDuration };
  checkOptions('options', options as VariableOptions | undefined, known);
}

/** A value of each variable; a number's is a Float64Array with one element. */
export type Values = Map<string, { definition: Definition; value: NativeArray }>;

/** The variables of a cluster, as its coordinator uses them. */
export interface VariableStore {
  readonly definitions: Definition[];
  /**
   * The variable of this name, made with a copy of `initial` if there was none.
   *
   * @throws (rejects) TypeError: `initial`; InvalidArgumentError: it has another type or length;
   *   UnavailableError: no parameter server keeps it
   */
  variable(name: string, initial: VariableValue, options?: VariableOptions): Promise<Variable>;
  /** The values of all variables at the moment of the call: a consistent cut. */
  snapshot(): Promise<Values>;
  /** Sets the variables of `values`, which has values that fit, at one moment. */
  restore(values: Values): Promise<void>;
  /** `Engine.assertHeld`, if the engine keeps the variables. */
  assertHeld?(): Promise<void>;
  /** The call has ended for good. */
  forget(call: number): void;
  /**
   * The program has closed the cluster, and no function runs any more: from now on its operations
   * are a FailedPreconditionError.
   */
  close(): void;
}

/** The VariableStore of each ClusterCoordinator. */
export const variablesOf: WeakMap<object, VariableStore> = new WeakMap();
