/**
 * Calls with a key: each gets its result from the store, or has the function run and its result
 * stored.
 *
 * 1. A run is in `#runs` from its first call until its callers have settled. Calls of its function
 *    with its key join it meanwhile.
 * 2. Its call has no limits. It is held, outside the line, until the store has been read; then it
 *    settles with the stored result, or is queued.
 * 3. A caller is in `callers` until it has settled: with the run, or before, by its own deadline,
 *    signal or `cancel`. The last one to give up cancels the call; a result that is being stored
 *    is stored all the same.
 * 4. A result is given when it is stored, and to each caller as it is stored, in a copy of its own:
 *    what the program gets does not depend on whether the function has run.
 */

import { messageOf } from '../../base/thrown-value.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import type { CheckedOptions } from '../../pool/calls/call-options.ts';
import type {
  HeldCall,
  KeptResults,
  KeptResultsHost,
  Started,
} from '../../pool/calls/kept-results.ts';
import type { Work } from '../../pool/queue/call.ts';
import type { Outcome, Settle } from '../../pool/queue/life.ts';
import { deadlineExceeded, type Limits, UNLIMITED, watch } from '../../pool/queue/time-limits.ts';
import { packValue, unpackValue } from '../../values/value.ts';
import { hashArguments } from './argument-hash.ts';
import { decodeRecord, encodeRecord, type Header, NotARecord, recordName } from './record.ts';
import type { ResultStore } from './result-store.ts';

type Caller = {
  readonly settle: Settle;
  readonly onProgress: CheckedOptions['onProgress'];
  /** Removes the timer and the listener of its limits. */
  unwatch: () => void;
};

type Run = HeldCall & {
  readonly name: string;
  readonly functionName: string;
  readonly key: string;
  /** The hash of the arguments. */
  readonly hash: string;
  readonly callers: Set<Caller>;
  /** The call has settled: what a caller does cancels nothing any more. */
  hasEnded: boolean;
  /** The stored result that was found. */
  found: Uint8Array | undefined;
  over: () => void;
};

export class KeyedCalls implements KeptResults {
  readonly #store: ResultStore;
  readonly #definition: string;
  readonly #host: KeptResultsHost;
  readonly #runs = new Map<string, Run>();
  /** Calls that wait for their arguments, and runs; none rejects. */
  readonly #waiting = new Set<Promise<void>>();
  readonly #running = new Set<Promise<void>>();
  #hasWarned = false;

  /** @param definition - the fingerprint of the module */
  constructor(store: ResultStore, definition: string, host: KeptResultsHost) {
    this.#store = store;
    this.#definition = definition;
    this.#host = host;
  }

  /** Whether a call with a key has not settled. */
  get isBusy(): boolean {
    return this.#waiting.size + this.#running.size > 0;
  }

  /** Resolves when all calls that have begun have settled. */
  async settled(): Promise<void> {
    await Promise.all(this.#waiting);
    await Promise.all(this.#running);
  }

  /** Ends the store, when what is being stored is stored. Called when the cluster is over. */
  async close(): Promise<void> {
    await this.settled();
    await this.#store.close();
  }

  /** A call waits for its arguments: `promise` resolves when it has begun. */
  waits<T>(promise: Promise<T>): Promise<T> {
    const over = promise.then(
      () => {},
      () => {},
    );
    note(this.#waiting, over);
    return promise;
  }

  /** @throws InvalidArgumentError: the arguments cannot be compared with stored ones */
  hashOf({ perWorker }: Work, args: readonly unknown[]): string {
    if (perWorker === undefined) return hashArguments(args);
    throw new InvalidArgumentError(
      'PerWorkerValues cannot be arguments of a call with a key: its result would depend on the worker',
    );
  }

  /**
   * Begins a call, with its key and the hash of its arguments in `options`.
   *
   * @throws InvalidArgumentError: a call with the same key and other arguments has not ended
   */
  start(work: Work, options: CheckedOptions, settle: Settle): Started {
    const { key = '', hash = '', limits, onProgress } = options;
    const name = recordName(work.name, key);
    const known = this.#runs.get(name);
    if (known !== undefined && known.hash !== hash) throw otherArguments(work.name, key);
    const run = known ?? this.#begin(name, work, hash, options);
    const caller: Caller = { settle, onProgress, unwatch: () => {} };
    caller.unwatch = this.#watch(run, caller, limits);
    run.callers.add(caller);
    return {
      cancel: (value) => this.#leave(run, caller, { state: 'cancelled', value }),
      room: run.room,
    };
  }

  #begin(name: string, work: Work, hash: string, options: CheckedOptions): Run {
    const { key = '' } = options;
    const callers = new Set<Caller>();
    const onProgress = (value: unknown): void => {
      for (const caller of callers) {
        try {
          caller.onProgress?.(value);
        } catch (error) {
          this.#leave(run, caller, { state: 'cancelled', value: error });
        }
      }
    };
    const held = this.#host.hold(
      { ...work, isKeyed: true },
      { ...options, limits: UNLIMITED, onProgress },
      (state, value) => {
        if (run.hasEnded) return false;
        run.hasEnded = true;
        if (state !== 'ready' || run.found !== undefined) this.#end(run, { state, value });
        else void this.#keep(run, value);
        return true;
      },
    );
    let over = (): void => {};
    note(
      this.#running,
      new Promise<void>((resolve) => {
        over = resolve;
      }),
    );
    const run: Run = {
      ...held,
      name,
      functionName: work.name,
      key,
      hash,
      callers,
      hasEnded: false,
      found: undefined,
      over,
    };
    this.#runs.set(name, run);
    void this.#look(run);
    return run;
  }

  #watch(run: Run, caller: Caller, limits: Limits): () => void {
    return watch(
      limits,
      () => {
        const value = deadlineExceeded(run.functionName, limits.timeoutMs);
        this.#leave(run, caller, { state: 'failed', value });
      },
      (value) => this.#leave(run, caller, { state: 'cancelled', value }),
    );
  }

  /** A caller gives up. */
  #leave(run: Run, caller: Caller, outcome: Outcome): void {
    if (!run.callers.delete(caller)) return;
    caller.unwatch();
    caller.settle(outcome.state, outcome.value);
    if (run.callers.size === 0 && !run.hasEnded) this.#host.decide(run.call, outcome);
  }

  /** Reads the store when there is room for the call. */
  async #look(run: Run): Promise<void> {
    const { call, room } = run;
    try {
      await room;
    } catch (error) {
      run.hasEnded = true;
      this.#end(run, { state: 'failed', value: error });
      return;
    }
    try {
      const found = await this.#find(run);
      if (run.hasEnded) return;
      if (found === undefined) {
        this.#host.release(call);
        return;
      }
      run.found = found;
      this.#host.decide(call, { state: 'ready', value: undefined, isKept: true });
    } catch (error) {
      if (run.hasEnded) return;
      this.#host.decide(call, { state: 'failed', value: error, isKept: true });
    }
  }

  /**
   * @returns the stored result, packed; undefined if the store has no result of this module for the key
   * @throws (rejects) InvalidArgumentError: it is that of other arguments; UnavailableError
   */
  async #find({ name, functionName, key, hash }: Run): Promise<Uint8Array | undefined> {
    const record = await this.#store.get(name);
    if (record === undefined) return undefined;
    try {
      const { header, value } = decodeRecord(record);
      if (header.function !== functionName || header.key !== key) {
        throw new NotARecord('it is the result of another call');
      }
      if (header.definition !== this.#definition) return undefined;
      if (header.arguments !== hash) throw otherArguments(functionName, key);
      unpackValue(value); // another version of Node may have packed it
      return value;
    } catch (error) {
      if (error instanceof InvalidArgumentError) throw error;
      this.#warn(name, functionName, messageOf(error));
      return undefined;
    }
  }

  #warn(name: string, functionName: string, why: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(
      `A stored result of '${functionName}', ${this.#store.whereIs(name)}, cannot be used: ${why}. The function is run again. (This cluster does not warn of others)`,
      { type: 'ResultsWarning', code: 'ALLSTOP_RESULTS' },
    );
  }

  /** Stores the result of the function, then gives it to the callers. */
  async #keep(run: Run, result: unknown): Promise<void> {
    const { name, functionName, key, hash } = run;
    try {
      const value = pack(functionName, result);
      const definition = this.#definition;
      const header: Header = { function: functionName, key, definition, arguments: hash };
      await this.#store.put(name, encodeRecord(header, value), () => this.#host.assertHeld());
      run.found = value;
      this.#end(run, { state: 'ready', value: undefined });
    } catch (error) {
      this.#end(run, { state: 'failed', value: error });
    }
  }

  #end(run: Run, { state, value }: Outcome): void {
    this.#runs.delete(run.name);
    for (const caller of run.callers) {
      caller.unwatch();
      caller.settle(state, state === 'ready' ? unpackValue(run.found as Uint8Array) : value);
    }
    run.callers.clear();
    run.over();
  }
}

/** Keeps the promise in the set until it has resolved. */
function note(set: Set<Promise<void>>, promise: Promise<void>): void {
  set.add(promise);
  void promise.then(() => set.delete(promise));
}

/** @throws DataCloneError */
function pack(functionName: string, result: unknown): Uint8Array {
  try {
    return packValue(result);
  } catch (error) {
    const text = `The result of '${functionName}' cannot be stored: ${messageOf(error)}`;
    throw new DOMException(text, 'DataCloneError');
  }
}

const otherArguments = (functionName: string, key: string): InvalidArgumentError => {
  const shown = key.length > 80 ? `${key.slice(0, 80)}…` : key;
  return new InvalidArgumentError(
    `The key ${JSON.stringify(shown)} of '${functionName}' was used with other arguments: a key names one piece of work. Give other arguments another key`,
  );
};
