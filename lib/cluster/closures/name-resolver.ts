/** Calls of functions that have to be looked up first, in the order in which they came. */

import { Timer } from '../../base/timer.ts';
import type { ChangeListeners } from './change-listeners.ts';
import type { AnyFunction, ModuleExports } from './module-exports.ts';

/**
 * So long a call waits for a worker that tells what functions there are. Later ones are taken
 * at their word: a worker that may come at any time is no reason to wait.
 */
const PATIENCE_MS = 3_000;

export type NameResolverOptions = {
  functions: ModuleExports;
  /** Names of the module's functions; undefined until a worker has told. */
  there: () => readonly string[] | undefined;
  changes: ChangeListeners;
  /** No worker will tell any more. */
  isOver: () => boolean;
  /** Keeps the program alive meanwhile. */
  wait: <T>(promise: Promise<T>) => Promise<T>;
};

export class NameResolver {
  readonly #options: NameResolverOptions;
  /** The last of the calls that are being looked up. */
  #last: Promise<void> | undefined;
  #told: Promise<void> | undefined;

  constructor(options: NameResolverOptions) {
    this.#options = options;
  }

  /** What is called later has to wait for them. */
  get arePending(): boolean {
    return this.#last !== undefined;
  }

  /**
   * Undefined: it has to be looked up.
   *
   * @throws TypeError: there is no such function
   */
  known(fn: AnyFunction | string): string | undefined {
    return typeof fn === 'string' ? this.#checkName(fn) : this.#options.functions.known(fn);
  }

  /**
   * Calls `enter` with the name, after those that came before, and when `defined` resolves.
   * `inTime` rejects when the caller waits no more, and then nobody behind does, either.
   */
  inTurn<T>(
    fn: AnyFunction | string,
    defined: Promise<void> | undefined,
    inTime: (found: Promise<string>) => Promise<string>,
    enter: (name: string) => T,
  ): Promise<T> {
    const before = this.#last;
    const found = inTime(this.#find(fn, defined));
    found.catch(() => {}); // it may be refused before its turn has come
    const inTurn = async (): Promise<T> => {
      await before;
      return enter(await found);
    };
    const entered = inTurn();
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

  /** Makes the call when it is known what came before it; at once, if that will not be. */
  after<T>(call: () => Promise<T>): Promise<T> {
    const last = this.#last;
    return last === undefined || this.#options.isOver() ? call() : last.then(call);
  }

  async #find(fn: AnyFunction | string, defined: Promise<void> | undefined): Promise<string> {
    const { functions, wait } = this.#options;
    let name: string | undefined;
    if (typeof fn === 'function') {
      name = (await this.#orOver(functions.find(fn))) ?? fn.name; // the queue says so
    } else {
      this.#told ??= this.#untilTold();
      await wait(this.#told);
      name = this.#checkName(fn) ?? fn; // no worker will come: the queue says so; or it comes late
    }
    await defined;
    return name;
  }

  /** Until a worker has told what there is, none will, or it takes too long. */
  #untilTold(): Promise<void> {
    const { there, changes, isOver } = this.#options;
    return new Promise((resolve) => {
      const patience = new Timer(PATIENCE_MS, resolve);
      void changes
        .until(() => there() !== undefined || isOver())
        .then(() => {
          patience.clear();
          resolve();
        });
    });
  }

  #checkName(name: string): string | undefined {
    const { functions, there } = this.#options;
    const names = there();
    if (names === undefined) return undefined;
    functions.checkName(name, names);
    return name;
  }

  /** Undefined when the cluster is over before; its module may never have been imported. */
  #orOver<T>(promise: Promise<T>): Promise<T | undefined> {
    const { changes, isOver } = this.#options;
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        changes.delete(look);
        settle();
      };
      const look = (): void => {
        if (isOver()) end(() => resolve(undefined));
      };
      changes.add(look);
      promise.then(
        (value) => end(() => resolve(value)),
        (error: unknown) => end(() => reject(error as Error)),
      );
      look();
    });
  }
}
