/** The operations of a variable whose value is in this process. */

import type { NativeVariable } from '../../native/binding.ts';
import type { OperationId } from '../../pool/worker/variables.ts';
import { type Definition, emptyArray, type VariableValue } from './variable.ts';

/** Operations that are done when they return. */
export type NativeOperations = {
  read(): VariableValue;
  assign(value: VariableValue): void;
  assignAdd(delta: VariableValue): void;
};

/** @param nextId - the id of the next `assignAdd`; undefined: no call makes it */
export function nativeOperations(
  native: NativeVariable,
  definition: Definition,
  nextId: () => OperationId | undefined,
): NativeOperations {
  return {
    read: () => {
      if (definition.type === 0) return native.read() as number;
      const into = emptyArray(definition);
      native.read(into);
      return into;
    },
    assign: (value) => native.assign(value),
    assignAdd: (delta) => {
      const id = nextId();
      native.assignAdd(delta, id?.call ?? 0, id?.ordinal ?? 0);
    },
  };
}
