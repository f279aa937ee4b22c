/** The functions that a worker's module exports. */

import { didYouMean } from '../../../base/arguments.ts';
import { PASS_A_NAME } from '../protocol.ts';

export type Exports = Readonly<Record<string, unknown>>;
export type ExportedFunction = (...args: unknown[]) => unknown;

export const functionNames = (exports: Exports): string[] =>
  Object.keys(exports).filter((name) => typeof exports[name] === 'function');

/** @throws TypeError: the module exports no function of this name */
export function functionOf(exports: Exports, name: string): ExportedFunction {
  const found = exports[name];
  if (typeof found === 'function') return found as ExportedFunction;
  const meant = didYouMean(name, functionNames(exports));
  const error = new TypeError(
    `The module has no function '${name}': ${PASS_A_NAME}${meant && `.${meant}`}`,
  );
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
}
