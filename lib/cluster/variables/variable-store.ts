/** Where the values of a cluster's variables are, as their users see it. */

import { checkDuration, checkOptions, checkString, integerFrom } from '../../base/arguments.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import type { NativeArray } from '../../native/binding.ts';
import type { Definition, Variable, VariableValue } from './variable.ts';

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

export type { Answer, Request, VariableSource } from '../../pool/worker/variables.ts';

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
