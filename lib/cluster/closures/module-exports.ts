/** Which export of the module a function is. */

import { invalidType } from '../../base/arguments.ts';
import { PASS_A_NAME } from '../worker/protocol.ts';

export type AnyFunction = (...args: any[]) => any;

export class ModuleExports {
  readonly #module: URL;
  readonly #names = new Map<AnyFunction, string>();
  #exports: Promise<Record<string, unknown>> | undefined;

  constructor(module: URL) {
    this.#module = module;
  }

  /** Undefined: it has to be looked up. */
  known(fn: AnyFunction): string | undefined {
    return this.#names.get(fn);
  }

  /**
   * By identity, else, since test runners load modules twice, by name and source.
   *
   * @throws (rejects) TypeError: the module does not export it, or cannot be imported here
   */
  async find(fn: AnyFunction): Promise<string> {
    let exports: Record<string, unknown>;
    try {
      this.#exports ??= import(/* webpackIgnore: true */ /* @vite-ignore */ this.#module.href);
      exports = await this.#exports;
    } catch (error) {
      throw Object.assign(this.#unknown(fn), { cause: error });
    }
    const names = Object.keys(exports);
    const isSame = (name: string): boolean =>
      name === fn.name &&
      typeof exports[name] === 'function' &&
      String(exports[name]) === String(fn);
    const found = names.find((name) => exports[name] === fn) ?? names.find(isSame);
    if (found === undefined) throw this.#unknown(fn);
    this.#names.set(fn, found);
    return found;
  }

  #unknown(fn: AnyFunction): TypeError {
    const error = new TypeError(
      `The function '${fn.name}' is no export of ${this.#module.href}: ${PASS_A_NAME}`,
    );
    return Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
  }

  /** @throws TypeError: there is no such function */
  checkName(name: string, there: readonly string[]): void {
    if (there.includes(name)) return;
    const error = new TypeError(
      `The module ${this.#module.href} has no function '${name}': ${PASS_A_NAME}. It has ${there.join(', ') || 'none'}`,
    );
    throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' });
  }
}

export function checkFunctionOrName(fn: unknown): asserts fn is AnyFunction | string {
  if (typeof fn === 'function' || typeof fn === 'string') return;
  throw invalidType('fn', `a function, or of type string: ${PASS_A_NAME}`, fn);
}
