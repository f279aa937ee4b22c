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

import type { Hash } from 'node:crypto';
import { types } from 'node:util';
import { checkString } from '../../base/arguments.ts';
import { builtin } from '../../base/builtins.ts';
import { attempt, fieldOf, isError, isThenable, messageOf } from '../../base/thrown-value.ts';
import { classOf } from '../../base/typed-arrays.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import type {
  CheckedOptions,
  HeldCall,
  KeptResults,
  KeptResultsHost,
  Started,
} from '../../pool/calls/calls.ts';
import type { Work } from '../../pool/queue/call.ts';
import type { Outcome, Settle } from '../../pool/queue/call-queue.ts';
import { deadlineExceeded, UNLIMITED, watch } from '../../pool/queue/time-limits.ts';
import { packValue, unpackValue } from '../../values/value.ts';
import { entriesOf, itemsOf } from '../../values/walk.ts';
import { bytesOf, Variable } from '../variables/variable.ts';

// The seam between calls with a key and the stores that keep their results.

/** Lets a few asynchronous operations run at once; the others wait, in the order of their calls. */
export class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  async take<T>(body: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await body();
    } finally {
      const next = this.#waiting.shift(); // which takes over this turn
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/**
 * Keeps records by name. Each is whole or not there, also if two programs put one at once: then the
 * last one counts. A name has 64 hexadecimal digits.
 */
export interface ResultStore {
  /** @throws (rejects) UnavailableError: the store cannot be read */
  get(name: string): Promise<Uint8Array | undefined>;
  /**
   * Resolves when the record survives the death of this program.
   *
   * @param mayWrite - awaited before the record becomes visible, at each attempt: it rejects if the
   *   program may write no more
   * @throws (rejects) UnavailableError: the store cannot be written; the error of `mayWrite`
   */
  put(name: string, record: Uint8Array, mayWrite: () => Promise<void>): Promise<void>;
  /** Where the record of this name is, for messages. */
  whereIs(name: string): string;
  /** Resolves when nothing of the store keeps the program alive. Nothing is called afterwards. */
  close(): Promise<void>;
}

const sha256 = (data: string | Uint8Array): Hash =>
  builtin('node:crypto').createHash('sha256').update(data);

// A stored result as bytes:
//
// MAGIC, 16 bytes; the length of the header, 4 bytes, little-endian; the header, JSON; the value,
// packed (values/value.ts); the SHA-256 of all this, 32 bytes.

const MAGIC: Buffer = Buffer.from('allstop-result-1', 'latin1');
const PREFIX_BYTES: number = MAGIC.length + 4;
const HASH_BYTES = 32;

/** Which result it is. */
type Header = {
  /** The name of the function. */
  readonly function: string;
  readonly key: string;
  /** The fingerprint of the module that the function was in. */
  readonly definition: string;
  /** The hash of the arguments. */
  readonly arguments: string;
};

const FIELDS = ['function', 'key', 'definition', 'arguments'] satisfies (keyof Header)[];

/** Why bytes are no record, for people. */
class NotARecord extends Error {}

const BUCKET = /^[\w-]{1,64}$/;

/** @throws TypeError, InvalidArgumentError */
export function checkBucket(bucket: unknown): asserts bucket is string {
  checkString('options.bucket', bucket);
  if (BUCKET.test(bucket)) return;
  throw new InvalidArgumentError(
    `The name of a bucket must be 1 to 64 letters, digits, '-' and '_'. Received '${bucket}'`,
  );
}

/** The name under which the result of a function's key is stored, whatever characters both have. */
const recordName = (functionName: string, key: string): string =>
  // JSON escapes lone surrogates, which UTF-8 would make equal.
  sha256(JSON.stringify([functionName, key])).digest('hex');

/** @param value - packed */
function encodeRecord(header: Header, value: Uint8Array): Uint8Array {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  const record = Buffer.concat([MAGIC, length, json, value, Buffer.alloc(HASH_BYTES)]);
  record.set(hashOf(record), record.length - HASH_BYTES);
  return record;
}

/**
 * @returns the header and the packed value, which shares the memory of the record
 * @throws NotARecord
 */
function decodeRecord(bytes: Uint8Array): { header: Header; value: Uint8Array } {
  const record = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = record.length - HASH_BYTES;
  if (end < PREFIX_BYTES) throw new NotARecord(`it has only ${record.length} bytes`);
  if (!record.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new NotARecord('it does not begin as a result of this version');
  }
  if (!record.subarray(end).equals(hashOf(record))) {
    throw new NotARecord('its checksum does not match');
  }
  const at = PREFIX_BYTES + record.readUInt32LE(MAGIC.length);
  const header: unknown = attempt(() => JSON.parse(record.subarray(PREFIX_BYTES, at).toString()));
  const isHeader = FIELDS.every((field) => typeof fieldOf(header, field) === 'string');
  if (at > end || !isHeader) throw new NotARecord('its header cannot be read');
  return { header: header as Header, value: record.subarray(at, end) };
}

const hashOf = (record: Uint8Array): Uint8Array =>
  sha256(record.subarray(0, record.length - HASH_BYTES)).digest();

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
    note(
      this.#waiting,
      promise.then(() => {}).catch(() => {}),
    );
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
    caller.unwatch = watch(
      limits,
      () => {
        const value = deadlineExceeded(run.functionName, limits.timeoutMs);
        this.#leave(run, caller, { state: 'failed', value });
      },
      (value) => this.#leave(run, caller, { state: 'cancelled', value }),
    );
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
        const leave = (error: unknown): void =>
          this.#leave(run, caller, { state: 'cancelled', value: error });
        try {
          const told = caller.onProgress?.(value);
          if (!isThenable(told)) continue;
          void Promise.resolve(told).catch((error: unknown) => {
            if (!callers.has(caller)) throw error; // nobody else would hear of it
            leave(error);
          });
        } catch (error) {
          leave(error);
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

  /** A caller gives up. */
  #leave(run: Run, caller: Caller, outcome: Outcome): void {
    if (!run.callers.delete(caller)) return;
    caller.unwatch();
    caller.settle(outcome.state, outcome.value);
    if (run.callers.size > 0 || run.hasEnded) return;
    this.#runs.delete(run.name); // while it waits for room, its end is heard later
    this.#host.decide(run.call, outcome);
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
    if (this.#runs.get(run.name) === run) this.#runs.delete(run.name);
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

// The hash of the arguments of a call: equal for arguments that structuredClone copies to equal
// values. By it a stored result knows its arguments.
//
// The order of an object's keys does not count, that of a Map or Set does. Two references to one
// object count as two equal objects, as after JSON; only in a value that contains itself does the
// identity of objects count. The class of an object does not count, nor does the `stack` of an
// error: copies have none of it.
//
// Each object becomes a line of text, in which tokens stand for what it contains. Equal lines are
// one line, with a number, and its token is that number. So an object that is reached by many ways
// is visited once.

/** Thrown when values are compared by what they contain, and one contains itself. */
const CIRCULAR = Symbol('circular');

/**
 * @param args - what a call was given, and structuredClone takes
 * @throws InvalidArgumentError: a value that is not known, or may change: a Variable, shared memory,
 *   an object of Node's own; the error of a getter
 */
function hashArguments(args: readonly unknown[]): string {
  try {
    return new Walk(false).hashOf(args);
  } catch (error) {
    if (error instanceof RangeError) throw refused('are nested too deeply, or too long');
    if (error !== CIRCULAR) throw error;
  }
  return new Walk(true).hashOf(args);
}

class Walk {
  readonly #isByIdentity: boolean;
  readonly #tokens = new Map<object, string | undefined>();
  readonly #lines = new Map<string, number>();
  readonly #hash = builtin('node:crypto').createHash('sha256');
  #count = 0;

  constructor(isByIdentity: boolean) {
    this.#isByIdentity = isByIdentity;
  }

  hashOf(args: readonly unknown[]): string {
    return this.#hash.update(this.#token(args)).digest('hex');
  }

  #token(value: unknown): string {
    switch (typeof value) {
      case 'string':
        return JSON.stringify(value);
      case 'bigint':
        return `${value}n`;
      case 'number':
        return Object.is(value, -0) ? '-0' : String(value);
      case 'object':
        return value === null ? 'null' : this.#tokenOf(value);
      default:
        return String(value); // a boolean or undefined: nothing else can be copied
    }
  }

  #tokenOf(value: object): string {
    if (this.#tokens.has(value)) {
      const known = this.#tokens.get(value);
      if (known === undefined) throw CIRCULAR;
      return known;
    }
    if (this.#isByIdentity) {
      const own = `@${this.#count++}`;
      this.#tokens.set(value, own);
      this.#hash.update(`${own}=${this.#line(value)}\n`);
      return own;
    }
    this.#tokens.set(value, undefined);
    const line = this.#line(value);
    let number = this.#lines.get(line);
    if (number === undefined) {
      number = this.#lines.size;
      this.#lines.set(line, number);
      this.#hash.update(`${line}\n`);
    }
    const token = `#${number}`;
    this.#tokens.set(value, token);
    return token;
  }

  #line(value: object): string {
    if (Array.isArray(value)) return `Array ${value.length}${this.#fields(value)}`;
    if (ArrayBuffer.isView(value)) {
      return `${classOf(value) ?? 'DataView'} ${bytesHash(bytesOf(value))}`;
    }
    if (types.isAnyArrayBuffer(value)) return `ArrayBuffer ${bytesHash(new Uint8Array(value))}`;
    if (types.isDate(value)) return `Date ${Number(value)}`;
    if (types.isRegExp(value)) return `RegExp ${JSON.stringify([value.source, value.flags])}`;
    if (types.isMap(value)) {
      return `Map ${[...entriesOf(value)].map(([key, item]) => `${this.#token(key)}:${this.#token(item)}`).join()}`;
    }
    if (types.isSet(value))
      return `Set ${[...itemsOf(value)].map((item) => this.#token(item)).join()}`;
    if (types.isBoxedPrimitive(value)) return `Object(${this.#token(value.valueOf())})`;
    if (isError(value)) {
      const cause = Object.hasOwn(value, 'cause') ? this.#token(value.cause) : '';
      return `Error ${JSON.stringify([value.name, value.message])}${cause}`;
    }
    if (value instanceof Variable) throw refused('are not known: a Variable is among them');
    if (!isPlain(value) && Object.keys(value).length === 0) {
      // Its state is hidden, or nothing of it is copied.
      throw refused(`cannot be compared: a ${nameOf(value)} is among them`);
    }
    return `Object ${this.#fields(value)}`;
  }

  /** The properties that are copied: of an array its elements, too, without its holes. */
  #fields(value: object): string {
    const keys = Object.keys(value);
    if (!Array.isArray(value)) keys.sort();
    // Indexes come first among the keys: here there is nothing else, and no hole.
    else if (keys.length === value.length && keys.at(-1) === String(value.length - 1)) {
      return `[${value.map((each) => this.#token(each)).join()}]`;
    }
    const fields = keys.map(
      (key) => `${JSON.stringify(key)}:${this.#token(Reflect.get(value, key))}`,
    );
    return `{${fields.join()}}`;
  }
}

function bytesHash(bytes: Uint8Array): string {
  if (!types.isArrayBuffer(bytes.buffer)) throw refused('may change: shared memory is among them');
  return sha256(bytes).digest('hex');
}

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

const nameOf = (value: object): string => {
  const name = fieldOf(fieldOf(value, 'constructor'), 'name');
  return typeof name === 'string' && name !== '' ? name : 'strange object';
};

const refused = (why: string): InvalidArgumentError =>
  new InvalidArgumentError(
    `The arguments of a call with a key are stored as a hash, and these ${why}. Pass plain values, or leave out the key`,
  );
