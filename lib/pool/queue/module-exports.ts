/** Finds the name under which the strategy's module exports a function. */

import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { didYouMean, invalidType } from '../../base/arguments.ts';
import { messageOf } from '../../base/thrown-value.ts';
import {
  type Exports,
  exportedFunction,
  functionNames,
  placeOf,
} from '../worker/module/own-module.ts';
import { PASS_A_NAME } from '../worker/protocol.ts';

export type AnyFunction = (...args: any[]) => any;

export class ModuleExports {
  readonly #module: URL;
  readonly #names = new Map<AnyFunction, string>();
  #exports: Promise<Exports> | undefined;

  constructor(module: URL) {
    this.#module = module;
  }

  /** Whether the module is the file that this thread executes: a program in one file. */
  get isProgram(): boolean {
    const file = process.argv[1];
    return file !== undefined && placeOf(pathToFileURL(file)) === placeOf(this.#module);
  }

  /** @returns undefined if `find` has not been called for the function */
  known(fn: AnyFunction): string | undefined {
    return this.#names.get(fn);
  }

  /**
   * Finds the export that is the function, or else has the same name and source: test runners load
   * a module twice.
   *
   * @throws (rejects) TypeError: the module does not export it, or cannot be imported here
   */
  async find(fn: AnyFunction): Promise<string> {
    const { href } = this.#module;
    let exports: Exports;
    try {
      this.#exports ??= import(/* webpackIgnore: true */ /* @vite-ignore */ href);
      exports = await this.#exports;
    } catch (error) {
      const text = `The name of the function '${fn.name}' cannot be found, since ${href} cannot be imported here: ${messageOf(error)}. Instead of the function, ${PASS_A_NAME}`;
      throw Object.assign(wrongFunction(text), { cause: error });
    }
    const names = functionNames(exports);
    const isSame = (name: string): boolean =>
      name === fn.name && String(exportedFunction(exports, name)) === String(fn);
    const found =
      names.find((name) => exportedFunction(exports, name) === fn) ?? names.find(isSame);
    if (found === undefined) {
      const isOther = fn.name !== '' && names.includes(fn.name);
      throw wrongFunction((isOther ? isNotTheExport : notExported)(fn, href));
    }
    this.#names.set(fn, found);
    return found;
  }

  /**
   * Finds the function among the names of the module's functions, by its own name.
   *
   * @throws TypeError: its name is not among them
   */
  findByName(fn: AnyFunction, exported: readonly string[]): string {
    if (!exported.includes(fn.name)) throw wrongFunction(notExported(fn, this.#module.href));
    this.#names.set(fn, fn.name);
    return fn.name;
  }

  /**
   * @param exported - the names of the module's functions
   * @throws TypeError: `name` is not among them
   */
  checkName(name: string, exported: readonly string[]): void {
    if (exported.includes(name)) return;
    const its = exported.length === 0 ? 'no functions' : `the functions ${exported.join(', ')}`;
    throw wrongFunction(
      `The module ${this.#module.href} has no function '${name}': ${PASS_A_NAME}. It exports ${its}.${didYouMean(name, exported)}`,
    );
  }
}

function isNotTheExport({ name }: AnyFunction, href: string): string {
  return `The function '${name}' has another source than the export of that name of ${href}: pass the name '${name}', if that export is meant. (vitest, for example, changes the source of the modules that it loads.)`;
}

function notExported({ name }: AnyFunction, href: string): string {
  const what =
    name === ''
      ? 'A function without a name cannot be scheduled'
      : `The function '${name}' is not an export of ${href}`;
  const where = name === '' ? `from ${href}` : 'there';
  return `${what}: workers find functions by name. Export it ${where} and pass the name of the export`;
}

function wrongFunction(message: string): TypeError {
  return Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_TYPE' });
}

export function checkFunctionOrName(fn: unknown): asserts fn is AnyFunction | string {
  if (typeof fn === 'function' || typeof fn === 'string') return;
  throw invalidType('fn', `a function, or of type string: ${PASS_A_NAME}`, fn);
}

/** The name of a module's file, for people: a query, or the text of a `data:` URL, is left out. */
export function fileName({ protocol, pathname }: URL): string {
  return protocol === 'file:' ? basename(pathname) : `${protocol} module`;
}
