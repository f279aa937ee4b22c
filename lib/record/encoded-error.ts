/**
 * Encodes a thrown value as bytes, the encoded error, and decodes it.
 *
 * The bytes are the encoding of native/core/encoded_error.h. Its header is what
 * native code reads; the field kJavaScript holds the rest (error-graph.ts).
 */

import { builtin } from '../base/builtins.ts';
import {
  attempt,
  chainOf,
  chains,
  codeOf,
  define,
  defineStack,
  describe,
  fieldOf,
  isError,
  isObject,
  textOf,
} from '../base/thrown-value.ts';
import { errorClasses, NativeError } from '../errors/errors.ts';
import { binding, onFirstUse } from '../native/native.ts';
import { builtinClasses, makeError, pack, unpack } from './error-graph.ts';
import { type Carried, carry, echoes, known, remember } from './error-identity.ts';

const MAGIC = Buffer.from('ASE\x01', 'latin1');
const TEXT_TAGS = { id: 1, name: 2, message: 3, code: 4, stack: 5, nativeType: 7 };
const TAG = { chain: 6, js: 8, cause: 9, echo: 10, abortEcho: 11, errno: 12 };

type Texts = Record<keyof typeof TEXT_TAGS, string>;
type Header = Texts & {
  /** Of an error of native code, which alone writes it; 0: it has none. */
  errno: number;
  chain: string[];
  /**
   * The encoded cause. Beside a graph, which has the causes too, it is for native code alone, and
   * has no graph itself.
   */
  cause?: Uint8Array | undefined;
};

const TEXTS = Object.entries(TEXT_TAGS) as [keyof Texts, number][];

function newHeader(): Header {
  const texts: Texts = { id: '', name: '', message: '', code: '', stack: '', nativeType: '' };
  return { ...texts, errno: 0, chain: [] };
}

/** The depth of causes that native code keeps: EncodedError::kMaxCauses. */
const MAX_CAUSES = 32;

function field(tag: number, value: Uint8Array | string): [Uint8Array, Uint8Array] {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
  const head = Buffer.alloc(5);
  head.writeUInt8(tag, 0);
  head.writeUInt32LE(bytes.length, 1);
  return [head, bytes];
}

function writeFields(header: Header, graph?: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [MAGIC];
  const write = (tag: number, value: Uint8Array | string): void => {
    if (value.length > 0) parts.push(...field(tag, value));
  };
  for (const [text, tag] of TEXTS) write(tag, header[text]);
  for (const name of header.chain) write(TAG.chain, name);
  if (graph !== undefined) write(TAG.js, graph);
  if (header.cause !== undefined) write(TAG.cause, header.cause);
  return Buffer.concat(parts);
}

/**
 * A text of native code that has more bytes is cut. A string of JavaScript has fewer than 2 ** 29
 * characters, and the stack of an error holds its name and its message, too.
 */
const MOST_TEXT = 2 ** 27;

function textIn(bytes: Buffer): string {
  if (bytes.length <= MOST_TEXT) return bytes.toString('utf8');
  const rest = bytes.length - MOST_TEXT;
  return `${bytes.toString('utf8', 0, MOST_TEXT)}[allstop: not carried: ${rest} more bytes]`;
}

function readFields(bytes: Uint8Array): { header: Header; graph: Uint8Array | undefined } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const header = newHeader();
  let graph: Uint8Array | undefined;
  // Refuses the same bytes as the core does (encoded_error.cc).
  if (!buffer.subarray(0, MAGIC.length).equals(MAGIC))
    throw new TypeError('Not an encoded error (bad magic)');
  for (let at = MAGIC.length; at < buffer.length; ) {
    const tag = buffer.readUInt8(at);
    const isCut = at + 5 > buffer.length;
    const end = isCut ? buffer.length + 1 : at + 5 + buffer.readUInt32LE(at + 1);
    if (end > buffer.length) throw new TypeError('Truncated encoded error');
    const value = buffer.subarray(at + 5, end);
    at = end;
    const text = TEXTS.find(([, each]) => each === tag);
    if (text !== undefined) header[text[0]] = textIn(value);
    else if (tag === TAG.chain) header.chain.push(textIn(value));
    else if (tag === TAG.js) graph = value;
    else if (tag === TAG.cause) header.cause = value;
    else if (tag === TAG.errno && value.length === 4) header.errno = value.readUInt32LE();
  }
  if (header.id === '') throw new TypeError('Encoded error without an id');
  return { header, graph };
}

function headerOf(id: string, value: unknown): Header {
  const header = { ...newHeader(), id, name: typeof value as string, message: describe(value) };
  if (!isObject(value)) return header;
  header.chain = chainOf(value);
  const fallback = attempt(() => isError(value)) ? 'Error' : 'Object';
  header.name = textOf(fieldOf(value, 'name')) ?? header.chain[0] ?? fallback;
  header.message = textOf(fieldOf(value, 'message')) ?? header.message;
  header.stack = textOf(fieldOf(value, 'stack')) ?? '';
  header.nativeType = textOf(fieldOf(value, 'nativeType')) ?? '';
  header.code = String(codeOf(value) ?? '');
  return header;
}

/** What native code reads of the causes of `value`. @returns undefined if it has none */
function causeOf(value: unknown): Uint8Array | undefined {
  const causes: unknown[] = [];
  let current = value;
  while (isObject(current) && causes.length < MAX_CAUSES) {
    const outer = current;
    current = fieldOf(outer, 'cause');
    const isEnd = current === undefined || current === null;
    if (isEnd || current === value || causes.includes(current)) break;
    causes.push(current);
  }
  return causes.reduceRight<Uint8Array | undefined>(
    (cause, each) => writeFields({ ...headerOf(carry(each).id, each), cause }),
    undefined,
  );
}

/** Encodes any thrown value. Never throws. */
export function encode(value: unknown): { carried: Carried; bytes: Uint8Array } {
  const carried = carry(value);
  const graph = pack(value);
  const header = { ...headerOf(carried.id, value), cause: causeOf(value) };
  return { carried, bytes: writeFields(header, graph) };
}

/** Node's `errno` of a system error of native code: a negative number. */
function errnoOf({ errno: number, code, nativeType }: Header): number | undefined {
  if (number !== 0) return -number;
  // A record keeps only the code: an error that is reported again has no number.
  if (nativeType === '' || !/^E[A-Z\d]+$/.test(code)) return undefined;
  const { errno }: { errno: Record<string, number> } =
    process.getBuiltinModule('node:os').constants;
  return errno[code] === undefined ? undefined : -errno[code];
}

function nativeStack({ name, message, nativeType, stack }: Header): string {
  const title = nativeType === '' ? name : `${name} [${nativeType}]`;
  const frames = stack === '' ? '    at a native thread' : stack;
  return `${title}: ${message}\n${frames}`;
}

/** An error of a native thread: its encoding has a header and no graph. */
function nativeError(header: Header): Error {
  const { name, message, code, nativeType } = header;
  const ours = errorClasses.get(name) ?? (builtinClasses.has(name) ? undefined : NativeError);
  const error: Error =
    ours === undefined
      ? makeError({ name, message, chain: [name] })
      : Reflect.construct(ours, [message]);
  if (error.name !== name) define(error, 'name', name, false);
  if (error instanceof AggregateError) define(error, 'errors', [], false); // it always has them
  if (code !== '' && codeOf(error) !== code) define(error, 'code', code);
  if (nativeType !== '') define(error, 'nativeType', nativeType);
  const errno = errnoOf(header);
  if (errno !== undefined) define(error, 'errno', errno);
  defineStack(error, nativeStack(header));
  if (header.cause !== undefined) define(error, 'cause', decode(header.cause).value, false);
  chains.set(error, header.chain);
  return error;
}

/** @throws TypeError: the bytes are not those of a graph, or one that is nested too deeply */
function readGraph(graph: Uint8Array): unknown {
  try {
    return unpack(graph);
  } catch (cause) {
    throw new TypeError('Malformed encoded error: its JavaScript part cannot be read', { cause });
  }
}

const firstFrame = (stack: string): string | undefined => /^ +at .*$/m.exec(stack)?.[0];

/**
 * `fetch` of Node writes its own stack, or none, into the reason of the signal that has ended it (undici
 * calls `Error.captureStackTrace(reason)`), and the reason of `coord.signal` is the error of the stop.
 */
function restoreStack(value: unknown, stack: string): void {
  attempt(() => {
    if (!isError(value) || firstFrame(stack) === undefined) return;
    const now = value.stack ?? '';
    const frame = firstFrame(now);
    // A program may write a stack, too: only what fetch leaves is replaced, its own place or the title.
    const isTheirs = frame === undefined ? stack.startsWith(`${now}\n`) : /\bundici\b/.test(frame);
    if (isTheirs && now !== stack) defineStack(value, stack);
  });
}

/**
 * The value of an encoded error: the original object if this thread has it, else a copy.
 *
 * @throws TypeError: the bytes are not an encoded error
 */
export function decode(bytes: Uint8Array): Carried {
  const { header, graph } = readFields(bytes);
  const original = known(header.id);
  if (original !== undefined) {
    restoreStack(original.value, graph === undefined ? nativeStack(header) : header.stack);
    return original;
  }
  if (graph === undefined) return remember({ id: header.id, value: nativeError(header) });
  const value = readGraph(graph);
  // `unpack` has remembered an error by its id. Any other value has no id yet.
  return known(header.id) ?? remember({ id: header.id, value });
}

/**
 * Gives an error from a Worker's `error` event its class back, if that is a class of the
 * package: Node keeps the name and the fields of such an error and loses its class.
 */
export function restoreClass(value: unknown): unknown {
  if (!isObject(value) || !isError(value)) return value;
  const ours = errorClasses.get(value.name);
  if (ours !== undefined && !(value instanceof ours)) Object.setPrototypeOf(value, ours.prototype);
  return value;
}

/**
 * The name of the function on the global object by which the headers for addons (allstop_napi.hpp)
 * encode an error of JavaScript that was thrown through C++.
 */
const ENCODE_ERROR = Symbol.for('allstop.encodeError');

/** As `encode`, with the stops that the error may be an echo of. */
function encodeForAddon(error: unknown): Uint8Array {
  const { ids, abortIds } = echoes(error);
  return Buffer.concat([
    encode(error).bytes,
    ...ids.flatMap((id) => field(TAG.echo, id)),
    ...abortIds.flatMap((id) => field(TAG.abortEcho, id)),
  ]);
}

/**
 * That of addons, whose functions are made there: a test runner may have evaluated this code in
 * another context (`node:vm`).
 */
const mainGlobal = (): typeof globalThis =>
  Object.getPrototypeOf(binding().nextIdentity) === Function.prototype
    ? globalThis
    : builtin('node:vm').runInThisContext('globalThis');

onFirstUse.push(() => {
  const main = mainGlobal();
  // Another copy of this code was here first. One of another context may have ended with its tests.
  if (Reflect.get(main, ENCODE_ERROR) instanceof main.Function) return;
  Object.defineProperty(main, ENCODE_ERROR, {
    value: encodeForAddon,
    configurable: true,
  });
});
