/** Finds the names of the functions that are called, and keeps the calls in order meanwhile. */

import { Timer, turn } from '../../base/timer.ts';
import type { ChangeListeners } from './change-listeners.ts';
import type { AnyFunction, ModuleExports } from './module-exports.ts';

/**
 * The first calls by name wait this long for a worker that reports which functions exist. If
 * none has, names are accepted unchecked, and a wrong one fails on the worker.
 */
const FIRST_WORKER_MS = 3_000;

export interface NameResolverListener {
  /** The names of the module's functions; undefined until a worker has reported them. */
  functionNames(): readonly string[] | undefined;
  /** Whether the cluster runs nothing more: then no worker will report function names. */
  isOver(): boolean;
  /** Keeps the program alive until the promise has settled. */
  keepAlive<T>(promise: Promise<T>): Promise<T>;
}

export class NameResolver {
  readonly #module: ModuleExports;
  readonly #changes: ChangeListeners;
  readonly #listener: NameResolverListener;
  /** Settles when the last call whose name is still being found has been made. */
  #last: Promise<void> | undefined;
  #firstNames: Promise<void> | undefined;

  /** @param changes - called when a worker has reported function names, or the cluster is over */
  constructor(module: ModuleExports, changes: ChangeListeners, listener: NameResolverListener) {
    this.#module = module;
    this.#changes = changes;
    this.#listener = listener;
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
    return typeof fn === 'string' ? this.#checkName(fn) : this.#module.known(fn);
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
    const found = inTime(this.#find(fn, defined));
    found.catch(() => {}); // `found` may reject before `inOrder` awaits it
    const inOrder = async (): Promise<T> => {
      await before;
      return enter(await found);
    };
    const entered = inOrder();
    const last = entered.then(
      () => {},
      () => {},
    );
    this.#last = last;
    void last.then(() => {
      if (this.#last === last) this.#last = undefined;
    });
    return entered;
  }

  /** Makes `call` after the calls whose names are being found; at once if the cluster is over. */
  after<T>(call: () => Promise<T>): Promise<T> {
    const last = this.#last;
    return last === undefined || this.#listener.isOver() ? call() : last.then(call);
  }

  async #find(fn: AnyFunction | string, defined: Promise<void> | undefined): Promise<string> {
    let name: string | undefined;
    if (typeof fn === 'function') {
      const found = this.#module.find(fn);
      const named = this.#module.isProgram ? Promise.race([found, this.#reported(fn)]) : found;
      // When the cluster is over any name will do: the queue refuses the call.
      name = (await this.#untilOver(named)) ?? fn.name;
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
    const names = this.#listener.functionNames();
    return names === undefined ? fn.name : this.#module.findByName(fn, names);
  }

  #namesOrTime(): Promise<void> {
    this.#firstNames ??= this.#untilNamesAreKnown();
    return this.#listener.keepAlive(this.#firstNames);
  }

  /** Resolves when a worker has reported function names, or the cluster is over, or time is up. */
  #untilNamesAreKnown(): Promise<void> {
    const listener = this.#listener;
    return new Promise((resolve) => {
      const timer = new Timer(FIRST_WORKER_MS, resolve);
      void this.#changes
        .until(() => listener.functionNames() !== undefined || listener.isOver())
        .then(() => {
          timer.clear();
          resolve();
        });
    });
  }

  #checkName(name: string): string | undefined {
    const names = this.#listener.functionNames();
    if (names === undefined) return undefined;
    this.#module.checkName(name, names);
    return name;
  }

  /** Resolves with undefined if the cluster is over first: the module's import may never end. */
  #untilOver<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#changes.delete(look);
        settle();
      };
      const look = (): void => {
        if (this.#listener.isOver()) end(() => resolve(undefined));
      };
      this.#changes.add(look);
      promise.then(
        (value) => end(() => resolve(value)),
        (error: Error) => end(() => reject(error)),
      );
      look();
    });
  }
}
