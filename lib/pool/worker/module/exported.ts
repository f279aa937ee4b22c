/** The functions that a worker's module exports. */

import { didYouMean } from '../../../base/arguments.ts';
import { PASS_A_NAME } from '../protocol.ts';

export type Exports = Readonly<Record<string, unknown>>;
export type ExportedFunction = (...args: unknown[]) => unknown;

/** The object of all exports, if the module is CommonJS: Node makes it the default export. */
function moduleExports({ default: all }: Exports): Exports | undefined {
  if (typeof all !== 'object' || all === null) return undefined;
  // An array is data: its keys, which `functionNames` would list, may be millions.
  return Array.isArray(all) || ArrayBuffer.isView(all) ? undefined : (all as Exports);
}

function functionAt(exports: Exports | undefined, name: string): ExportedFunction | undefined {
  try {
    const found = exports !== undefined && Object.hasOwn(exports, name) && exports[name];
    return typeof found === 'function' ? (found as ExportedFunction) : undefined;
  } catch {
    return undefined; // a getter of module.exports: Node, too, takes such an export as missing
  }
}

/**
 * @param exports - what `import()` gave. The functions of a CommonJS module are the properties of
 *   its `module.exports`: Node names only those that it finds in the source.
 * @returns undefined if the module exports no function of this name
 */
export function exportedFunction(exports: Exports, name: string): ExportedFunction | undefined {
  return functionAt(exports, name) ?? functionAt(moduleExports(exports), name);
}

export function functionNames(exports: Exports): string[] {
  const names = new Set([...Object.keys(exports), ...Object.keys(moduleExports(exports) ?? {})]);
  return [...names].filter((name) => exportedFunction(exports, name) !== undefined);
}

/** @throws TypeError: the module exports no function of this name */
export function functionOf(exports: Exports, name: string): ExportedFunction {
  const found = exportedFunction(exports, name);
  if (found !== undefined) return found;
  const meant = didYouMean(name, functionNames(exports));
  const error = new TypeError(
    `The module has no function '${name}': ${PASS_A_NAME}${meant && `.${meant}`}`,
  );
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
}
