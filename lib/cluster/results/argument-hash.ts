/**
 * The hash of the arguments of a call: equal for arguments that structuredClone copies to equal
 * values. By it a stored result knows its arguments.
 *
 * The order of an object's keys does not count, that of a Map or Set does. Two references to one
 * object count as two equal objects, as after JSON; only in a value that contains itself does the
 * identity of objects count. The class of an object does not count, nor does the `stack` of an
 * error: copies have none of it.
 *
 * Each object becomes a line of text, in which tokens stand for what it contains. Equal lines are
 * one line, with a number, and its token is that number. So an object that is reached by many ways
 * is visited once.
 */

import { types } from 'node:util';
import { builtin } from '../../base/builtins.ts';
import { fieldOf, isError } from '../../base/thrown-value.ts';
import { classOf } from '../../base/typed-arrays.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import { Variable } from '../variables/variable.ts';

/** Thrown when values are compared by what they contain, and one contains itself. */
const CIRCULAR = Symbol('circular');

/**
 * @param args - what a call was given, and structuredClone takes
 * @throws InvalidArgumentError: a value that is not known, or may change: a Variable, shared memory,
 *   an object of Node's own; the error of a getter
 */
export function hashArguments(args: readonly unknown[]): string {
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
    if (ArrayBuffer.isView(value)) return viewLine(value);
    if (types.isAnyArrayBuffer(value)) return `ArrayBuffer ${bytesHash(new Uint8Array(value))}`;
    if (types.isDate(value)) return `Date ${Number(value)}`;
    if (types.isRegExp(value)) return `RegExp ${JSON.stringify([value.source, value.flags])}`;
    if (types.isMap(value)) {
      return `Map ${[...value].map(([key, item]) => `${this.#token(key)}:${this.#token(item)}`).join()}`;
    }
    if (types.isSet(value)) return `Set ${[...value].map((item) => this.#token(item)).join()}`;
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

function viewLine(view: ArrayBufferView): string {
  const { buffer, byteOffset, byteLength } = view;
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  if (!types.isArrayBuffer(buffer)) throw refused('may change: shared memory is among them');
  return `${classOf(view) ?? 'DataView'} ${bytesHash(bytes)}`;
}

function bytesHash(bytes: Uint8Array): string {
  if (!types.isArrayBuffer(bytes.buffer)) throw refused('may change: shared memory is among them');
  return builtin('node:crypto').createHash('sha256').update(bytes).digest('hex');
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
