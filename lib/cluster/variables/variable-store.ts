/** Where the values of a cluster's variables are, as their users see it. */

import type { NativeArray } from '../../native/binding.ts';
import type { Definition, Variable, VariableValue } from './variable.ts';
import type { VariableOptions } from './variable-options.ts';

/** An operation that a message carries: the last is the value, or the delta. */
export type Request = [
  operation: 'read' | 'assign' | 'assignAdd',
  name: string,
  /** The id of the closure that makes it; 0: none does. */
  closure: number,
  /**
   * Of an `assignAdd`: its number, from 1, among those of the closure on the variable. Of an
   * `assign`: the number of the closure's attempt; 0 outside functions.
   */
  ordinal: number,
  value?: VariableValue | undefined,
];

/** What comes back for a `Request`: the value, or an encoded error. */
export type Answer = [value: unknown, record?: Uint8Array];

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
  /** The closure has ended for good. */
  forget(closure: number): void;
  /**
   * The program has closed the cluster, and no function runs any more: from now on its operations
   * are a FailedPreconditionError.
   */
  close(): void;
}

/** The variables of a cluster, as its workers find them. */
export interface VariableSource {
  /** For `attachVariables` in a worker thread; undefined: messages carry the operations. */
  readonly id: number | undefined;
  readonly definitions: Definition[];
  /** Calls `reply` once, with the value or an encoded error; at once, or later. */
  answer(request: Request, reply: (answer: Answer) => void): void;
}

/** The VariableStore of each ClusterCoordinator. */
export const variablesOf: WeakMap<object, VariableStore> = new WeakMap();
