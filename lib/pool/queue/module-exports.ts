/** Finds the names of the functions that are called, and keeps the calls in order meanwhile. */

import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { didYouMean, invalidType } from '../../base/arguments.ts';
import { messageOf } from '../../base/thrown-value.ts';
import { turn, within } from '../../base/timer.ts';
import {
  type Exports,
  exportedFunction,
  functionNames,
  PASS_A_NAME,
  placeOf,
} from '../worker/module.ts';
import type { CallRules } from './call-rules.ts';

export type AnyFunction = (...args: any[]) => any;

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
  const isTask = typeof fn === 'object' && fn !== null;
  const remedy = isTask ? `the arguments come second, in an array: run('name', [task])` : undefined;
  throw invalidType('fn', `a function, or of type string: ${PASS_A_NAME}`, fn, remedy);
}

/** The name of a module's file, for people: a query, or the text of a `data:` URL, is left out. */
export function fileName({ protocol, pathname }: URL): string {
  return protocol === 'file:' ? basename(pathname) : `${protocol} module`;
}

/**
 * The first calls by name wait this long for a worker that reports which functions exist. If
 * none has, names are accepted unchecked, and a wrong one fails on the worker.
 */
const FIRST_WORKER_MS = 3_000;

export class NameResolver {
  readonly #module: URL;
  readonly #names = new Map<AnyFunction, string>();
  #exports: Promise<Exports> | undefined;
  readonly #rules: CallRules;
  readonly #keepAlive: <T>(promise: Promise<T>) => Promise<T>;
  /** Settles when the last call whose name is still being found has been made. */
  #last: Promise<void> | undefined;
  #firstNames: Promise<void> | undefined;

  /** @param keepAlive - keeps the program alive until the promise has settled */
  constructor(module: URL, rules: CallRules, keepAlive: <T>(promise: Promise<T>) => Promise<T>) {
    this.#module = module;
    this.#rules = rules;
    this.#keepAlive = keepAlive;
  }

  /** Whether the name of a call is still being found: later calls have to wait in `inOrder`. */
  get isBusy(): boolean {
    return this.#last !== undefined;
  }

  /**
   * @returns undefined if the name is not known, or cannot be checked yet
   * @throws TypeError: the module has no function of this name
   */
  known(fn: AnyFunction | string): string | undefined {
    return typeof fn === 'string' ? this.#checkName(fn) : this.#names.get(fn);
  }

  /**
   * Calls `enter` with the function's name, after the earlier calls, and when `defined` has
   * resolved.
   *
   * @param inTime - rejects when the caller's deadline has passed or its signal is aborted;
   *   then later calls do not wait for this one, either
   */
  inOrder<T>(
    fn: AnyFunction | string,
    defined: Promise<void> | undefined,
    inTime: (found: Promise<string>) => Promise<string>,
    enter: (name: string) => T,
  ): Promise<T> {
    const before = this.#last;
    const found = inTime(this.#nameOf(fn, defined));
    found.catch(() => {}); // `found` may reject before `inOrder` awaits it
    const inOrder = async (): Promise<T> => {
      await before;
      return enter(await found);
    };
    const entered = inOrder();
    const end = (): void => {
      if (this.#last === last) this.#last = undefined;
    };
    const last: Promise<void> = entered.then(end, end);
    this.#last = last;
    return entered;
  }

  /** Makes `call` after the calls whose names are being found; at once if the cluster is over. */
  after<T>(call: () => Promise<T>): Promise<T> {
    const last = this.#last;
    return last === undefined || this.#rules.isOver ? call() : last.then(call);
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

  /** Whether the module is the file that this thread executes: a program in one file. */
  get #isProgram(): boolean {
    const file = process.argv[1];
    return file !== undefined && placeOf(pathToFileURL(file)) === placeOf(this.#module);
  }

  async #nameOf(fn: AnyFunction | string, defined: Promise<void> | undefined): Promise<string> {
    let name: string | undefined;
    if (typeof fn === 'function') {
      const found = this.find(fn);
      const named = this.#isProgram ? Promise.race([found, this.#reported(fn)]) : found;
      // The module's import may never end. When the cluster is over any name will do: the queue
      // refuses the call.
      const { changes } = this.#rules;
      name = (await changes.unless(() => this.#rules.isOver, named)) ?? fn.name;
    } else {
      await this.#namesOrTime();
      name = this.#checkName(fn) ?? fn;
    }
    await defined;
    return name;
  }

  /**
   * The name by which a worker knows the function of a program that awaits this call at its top
   * level: the import of the program does not end before the call.
   *
   * @throws (rejects) TypeError: the module has no function of this name
   */
  async #reported(fn: AnyFunction): Promise<string> {
    await turn(); // the import of a program whose top level has ended ends before that
    await this.#namesOrTime();
    const names = this.#rules.engine.functions;
    if (names?.includes(fn.name) === false) throw wrongFunction(notExported(fn, this.#module.href));
    if (names !== undefined) this.#names.set(fn, fn.name);
    return fn.name;
  }

  /** Resolves when a worker has reported function names, or the cluster is over, or time is up. */
  #namesOrTime(): Promise<void> {
    const rules = this.#rules;
    const known = (): boolean => rules.engine.functions !== undefined || rules.isOver;
    this.#firstNames ??= within(FIRST_WORKER_MS, rules.changes.until(known), () => {});
    return this.#keepAlive(this.#firstNames);
  }

  /** @throws TypeError: the module has no function of this name */
  #checkName(name: string): string | undefined {
    const names = this.#rules.engine.functions;
    if (names === undefined || names.includes(name)) return names && name;
    const its = names.length === 0 ? 'no functions' : `the functions ${names.join(', ')}`;
    throw wrongFunction(
      `The module ${this.#module.href} has no function '${name}': ${PASS_A_NAME}. It exports ${its}.${didYouMean(name, names)}`,
    );
  }
}
