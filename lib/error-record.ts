/**
 * The exception record, JavaScript's side: a thrown value as bytes, and back.
 *
 * The bytes are the encoding of native/core/error_record.h. Its header is what
 * native code reads; the field JAVASCRIPT holds the rest, a graph written by
 * `v8.serialize`: every error in it (the thrown one, causes, aggregated errors,
 * errors in fields) is a node with its own fields, and a reference to an error is
 * a placeholder object, told by its identity. A value that cannot be carried
 * becomes a marker, a string that says so. Encoding never fails.
 *
 * Identity: an error keeps its id wherever it goes, so that the thread that
 * knows the original gets the original back, and a stop that comes back as an
 * error is known as an echo.
 */

import { types } from 'node:util';
import * as v8 from 'node:v8';
import { AbortError, errorClasses, NativeError } from './errors.ts';
import { binding } from './native.ts';

/** A thrown value and its identity. Hold it as long as the value should be found by id. */
export type Carried = {
  readonly id: string;
  readonly value: unknown;
  /** The id of the stop whose abort reason this is. */
  readonly echoOf?: string;
};

const byObject = new WeakMap<object, Carried>();
const byId = new Map<string, WeakRef<Carried>>();
const collected = new FinalizationRegistry<string>((id) => {
  if (byId.get(id)?.deref() === undefined) byId.delete(id);
});

function remember(carried: Carried): Carried {
  if (isObject(carried.value)) byObject.set(carried.value, carried);
  byId.set(carried.id, new WeakRef(carried));
  collected.register(carried, carried.id);
  return carried;
}

/** The identity of a thrown value: objects keep theirs, primitives get a new one each time. */
export function carry(value: unknown): Carried {
  const known = isObject(value) ? byObject.get(value) : undefined;
  return known ?? remember({ id: binding().nextIdentity(), value });
}

/** A new AbortError, which is known as the echo of the stop with this id. */
export function abortReason(message: string, stopId: string, cause?: unknown): AbortError {
  const reason = new AbortError(message, cause === undefined ? undefined : { cause });
  remember({ id: binding().nextIdentity(), value: reason, echoOf: stopId });
  return reason;
}

/** From now on `value`, if it has an identity, is known as the echo of that stop. */
export function markEcho(value: unknown, stopId: string): void {
  if (!isObject(value) || byObject.has(value)) return;
  remember({ id: binding().nextIdentity(), value, echoOf: stopId });
}

/**
 * The ids of stops that `value` may be the echo of, and the values without
 * identity (primitives) that it stands for. An AbortError stands for its causes.
 */
export function echoes(value: unknown): { ids: string[]; abortIds: string[]; bare: unknown[] } {
  const ids: string[] = [];
  const abortIds: string[] = [];
  const bare: unknown[] = [];
  const seen = new Set<unknown>();
  let wrapped = false;
  for (let current = value; !seen.has(current); ) {
    seen.add(current);
    if (!isObject(current)) {
      if (!(wrapped && current === undefined)) bare.push(current);
      break;
    }
    const carried = byObject.get(current);
    if (carried !== undefined) {
      ids.push(carried.id);
      if (wrapped) abortIds.push(carried.id);
      if (carried.echoOf !== undefined) {
        ids.push(carried.echoOf);
        abortIds.push(carried.echoOf);
      }
    }
    // Only an AbortError passes the blame on; deeper causes may be anything.
    if (!wrapped && attempt(() => (current as Error).name) !== 'AbortError') break;
    wrapped = true;
    const outer = current;
    current = attempt(() => (outer as Error).cause);
  }
  return { ids, abortIds, bare };
}

// ---------------------------------------------------------------- the bytes

const MAGIC = Buffer.from('ASE\x01', 'latin1');
const TAG = { id: 1, name: 2, message: 3, code: 4, stack: 5, chain: 6, nativeType: 7, js: 8 };

type Header = {
  id: string;
  name: string;
  message: string;
  code: string;
  stack: string;
  nativeType: string;
  chain: string[];
};

function writeFields(header: Header, graph: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [MAGIC];
  const write = (tag: number, value: Uint8Array | string): void => {
    if (value.length === 0) return;
    const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
    const head = Buffer.alloc(5);
    head.writeUInt8(tag, 0);
    head.writeUInt32LE(bytes.length, 1);
    parts.push(head, bytes);
  };
  write(TAG.id, header.id);
  write(TAG.name, header.name);
  write(TAG.message, header.message);
  write(TAG.code, header.code);
  write(TAG.stack, header.stack);
  for (const name of header.chain) write(TAG.chain, name);
  write(TAG.nativeType, header.nativeType);
  write(TAG.js, graph);
  return Buffer.concat(parts);
}

function readFields(bytes: Uint8Array): { header: Header; graph: Uint8Array | undefined } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const header: Header = {
    id: '',
    name: '',
    message: '',
    code: '',
    stack: '',
    nativeType: '',
    chain: [],
  };
  let graph: Uint8Array | undefined;
  for (let at = MAGIC.length; at < buffer.length; ) {
    const tag = buffer.readUInt8(at);
    const end = at + 5 + buffer.readUInt32LE(at + 1);
    const value = buffer.subarray(at + 5, end);
    at = end;
    if (tag === TAG.id) header.id = value.toString('utf8');
    else if (tag === TAG.name) header.name = value.toString('utf8');
    else if (tag === TAG.message) header.message = value.toString('utf8');
    else if (tag === TAG.code) header.code = value.toString('utf8');
    else if (tag === TAG.stack) header.stack = value.toString('utf8');
    else if (tag === TAG.chain) header.chain.push(value.toString('utf8'));
    else if (tag === TAG.nativeType) header.nativeType = value.toString('utf8');
    else if (tag === TAG.js) graph = value;
  }
  return { header, graph };
}

// ---------------------------------------------------------------- encoding

/** One error of the graph. Values hold placeholders where there were errors. */
type Node = {
  id: string;
  echoOf: string | undefined;
  chain: string[];
  name: string;
  message: string | undefined;
  stack: string | undefined;
  /** Wherever it comes from: own, inherited, or from a getter. */
  code: string | number | undefined;
  own: { key: string; enumerable: boolean; value: unknown }[];
};

/**
 * `references[i]` is the placeholder for `nodes[i]`; `thrown`: other objects that have an
 * identity, with their ids.
 */
type Graph = { references: object[]; root: unknown; nodes: Node[]; thrown: [object, string][] };

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

function isError(value: object): value is Error {
  return types.isNativeError(value) || value instanceof Error;
}

/** What `read` returns, or undefined if it throws: getters and proxies may. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function codeOf(value: object): string | number | undefined {
  const code = attempt(() => (value as { code?: unknown }).code);
  return typeof code === 'string' || typeof code === 'number' ? code : undefined;
}

/** Of errors that came from elsewhere: the chain that they had there. */
const chains = new WeakMap<object, string[]>();

/** The names of the constructors of an object, the most derived first. */
function chainOf(value: object): string[] {
  const original = chains.get(value);
  if (original !== undefined) return original;
  const chain: string[] = [];
  let prototype: object | null = attempt(() => Object.getPrototypeOf(value)) ?? null;
  for (let steps = 0; prototype !== null && steps < 64; steps++) {
    const current: object = prototype;
    const made = attempt(
      () => Object.getOwnPropertyDescriptor(current, 'constructor')?.value?.name,
    );
    if (typeof made === 'string' && made !== '' && made !== 'Object') chain.push(made);
    prototype = attempt(() => Object.getPrototypeOf(current)) ?? null;
  }
  return chain;
}

function describe(value: unknown): string {
  const text = attempt(() =>
    typeof value === 'function' ? `function ${value.name}` : String(value),
  );
  return text === undefined || text.trim() === '' ? typeof value : text.slice(0, 80);
}

/** What stands in the place of a value that cannot be carried. */
function marker(value: unknown, why?: unknown): string {
  const reason = textOf(attempt(() => (why as Error).message)) ?? 'it cannot be cloned';
  return `[allstop: not carried: ${describe(value)} (${reason})]`;
}

const TOO_DEEP = new Error('it is nested too deeply');

function isLeaf(value: object): boolean {
  return (
    types.isDate(value) ||
    types.isRegExp(value) ||
    types.isAnyArrayBuffer(value) ||
    types.isArrayBufferView(value) ||
    types.isBoxedPrimitive(value)
  );
}

// Deno has no such function.
const { isExternal }: { isExternal?: (value: object) => boolean } = types;

function isOpaque(value: object): boolean {
  return (
    types.isPromise(value) ||
    types.isWeakMap(value) ||
    types.isWeakSet(value) ||
    types.isGeneratorObject(value) ||
    isExternal?.(value) === true ||
    types.isModuleNamespaceObject(value) ||
    value instanceof WeakRef
  );
}

/** An instance without a property, which yet has something to say: a URL, a Blob, an iterator. */
function hidesState(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return !isPlain && Object.keys(value).length === 0 && describe(value) !== '[object Object]';
}

/**
 * Deeper values become markers. Every thread must be able to read the record, and
 * the main thread's stack is a quarter of a worker's.
 */
const MAX_DEPTH = 500;

/** Copies values into a form that `v8.serialize` takes, errors becoming nodes. */
class Packer {
  // `root` before `nodes`: serialized in the order in which values were copied, it
  // recurses no deeper than the copying did.
  readonly #graph: Graph = { references: [], root: undefined, nodes: [], thrown: [] };
  readonly #seen = new Map<object, unknown>();
  readonly #unfinished: [Error, Node][] = []; // their fields are still to be copied
  readonly #careful: boolean; // tries what only the serializer can tell, one by one
  #depth = 0;

  constructor(careful: boolean) {
    this.#careful = careful;
  }

  pack(root: unknown): Uint8Array {
    const graph = this.#graph;
    graph.root = this.#value(root);
    // A queue that grows as it is walked: a chain of causes may be of any length.
    for (const [error, node] of this.#unfinished) this.#fields(error, node);
    try {
      return v8.serialize(graph);
    } catch {
      if (!this.#careful) return new Packer(true).pack(root);
      for (const node of graph.nodes) {
        for (const field of node.own) field.value = serializable(field.value);
      }
      graph.root = serializable(graph.root);
      return v8.serialize(graph);
    }
  }

  /** Never throws: a value that cannot be read is one that cannot be carried. */
  #value(value: unknown): unknown {
    if (typeof value === 'function' || typeof value === 'symbol') return marker(value);
    if (!isObject(value)) return value;
    const seen = this.#seen.get(value);
    if (seen !== undefined) return seen;
    this.#depth++;
    try {
      if (isError(value)) return this.#error(value);
      if (this.#depth > MAX_DEPTH) return marker(value, TOO_DEEP);
      const copy = this.#copy(value);
      const id = byObject.get(value)?.id;
      if (id !== undefined && isObject(copy)) this.#graph.thrown.push([copy, id]);
      return copy;
    } catch (why) {
      return this.#remember(value, marker(value, why));
    } finally {
      this.#depth--;
    }
  }

  #copy(value: object): unknown {
    if (isLeaf(value)) return this.#remember(value, this.#careful ? serializable(value) : value);
    if (isOpaque(value)) return this.#remember(value, marker(value));
    if (types.isMap(value)) {
      const copy = this.#remember(value, new Map());
      for (const [key, item] of value) copy.set(this.#value(key), this.#value(item));
      return copy;
    }
    if (types.isSet(value)) {
      const copy = this.#remember(value, new Set());
      for (const item of value) copy.add(this.#value(item));
      return copy;
    }
    if (Array.isArray(value)) {
      const copy: unknown[] = this.#remember(value, []);
      // By key: an array of length 2^32 - 1 may have three items.
      for (const key of Object.keys(value)) {
        if (key === `${copy.length}`) copy.push(this.#property(value, key));
        else set(copy, key, true, this.#property(value, key));
      }
      copy.length = value.length;
      return copy;
    }
    if (hidesState(value)) return this.#remember(value, marker(value));
    const copy: object = this.#remember(value, {});
    for (const key of Object.keys(value)) set(copy, key, true, this.#property(value, key));
    return copy;
  }

  #remember<T>(value: object, copy: T): T {
    this.#seen.set(value, copy);
    return copy;
  }

  /** A property, or the marker that says why not: a getter may throw. */
  #property(of: object, key: string): unknown {
    let value: unknown;
    try {
      value = (of as Record<string, unknown>)[key];
    } catch (why) {
      return marker(`property ${key}`, why);
    }
    return this.#value(value);
  }

  #error(error: Error): object {
    const placeholder = this.#remember(error, {});
    const carried = carry(error);
    const chain = chainOf(error);
    const node: Node = {
      id: carried.id,
      echoOf: carried.echoOf,
      chain,
      name: textOf(attempt(() => error.name)) ?? chain[0] ?? 'Error',
      message: textOf(attempt(() => error.message)),
      stack: textOf(attempt(() => error.stack)),
      code: codeOf(error),
      own: [],
    };
    this.#graph.references.push(placeholder);
    this.#graph.nodes.push(node);
    this.#unfinished.push([error, node]);
    return placeholder;
  }

  #fields(error: Error, node: Node): void {
    for (const key of attempt(() => Object.getOwnPropertyNames(error)) ?? []) {
      if ((key === 'stack' || key === 'message') && node[key] !== undefined) continue;
      const descriptor = attempt(() => Object.getOwnPropertyDescriptor(error, key));
      node.own.push({
        key,
        enumerable: descriptor?.enumerable ?? true,
        value: this.#property(error, key),
      });
    }
  }
}

function serializable(value: unknown): unknown {
  try {
    v8.serialize(value);
    return value;
  } catch (why) {
    return marker(value, why);
  }
}

/** Defines, so that a key such as `__proto__` is nothing special. */
function set(on: object, key: string, enumerable: boolean, value: unknown): void {
  Object.defineProperty(on, key, { value, enumerable, writable: true, configurable: true });
}

function headerOf(id: string, value: unknown): Header {
  const header: Header = {
    id,
    name: typeof value,
    message: describe(value),
    code: '',
    stack: '',
    nativeType: '',
    chain: [],
  };
  if (!isObject(value)) return header;
  header.chain = chainOf(value);
  const fallback = attempt(() => isError(value)) ? 'Error' : 'Object';
  header.name = textOf(attempt(() => (value as Error).name)) ?? header.chain[0] ?? fallback;
  header.message = textOf(attempt(() => (value as Error).message)) ?? header.message;
  header.stack = textOf(attempt(() => (value as Error).stack)) ?? '';
  header.nativeType = textOf(attempt(() => (value as NativeError).nativeType)) ?? '';
  header.code = String(codeOf(value) ?? '');
  return header;
}

/** Any thrown value as a record. Never fails. */
export function encode(value: unknown): { carried: Carried; bytes: Uint8Array } {
  const carried = carry(value);
  let graph: Uint8Array;
  try {
    graph = new Packer(false).pack(value);
  } catch (why) {
    // A hostile proxy, or a value that is larger than memory.
    const root = attempt(() => marker(value, why)) ?? marker('a value');
    graph = v8.serialize({ references: [], root, nodes: [], thrown: [] } satisfies Graph);
  }
  return { carried, bytes: writeFields(headerOf(carried.id, value), graph) };
}

// ---------------------------------------------------------------- decoding

type AnyErrorClass = abstract new (...args: never[]) => Error;

function isErrorClass(value: unknown): value is AnyErrorClass {
  return value === Error || (typeof value === 'function' && value.prototype instanceof Error);
}

/** JavaScript's, as far as this runtime has them. */
const builtinClasses = new Map<string, AnyErrorClass>(
  [
    Error,
    TypeError,
    RangeError,
    SyntaxError,
    ReferenceError,
    EvalError,
    URIError,
    AggregateError,
    DOMException,
    (globalThis as { SuppressedError?: unknown }).SuppressedError, // Node 24
    ...['CompileError', 'LinkError', 'RuntimeError'].map(
      (name) => (globalThis as { WebAssembly?: Record<string, unknown> }).WebAssembly?.[name],
    ),
  ]
    .filter(isErrorClass)
    .map((errorClass) => [errorClass.name, errorClass]),
);

/** The first class of the chain that every thread knows. */
function classOf(chain: string[]): AnyErrorClass {
  for (const name of chain) {
    const known = errorClasses.get(name) ?? builtinClasses.get(name);
    if (known !== undefined) return known;
  }
  return Error;
}

/** An error of that class, without what its constructor would add. */
function makeError(node: Pick<Node, 'name' | 'message' | 'chain'>): Error {
  const errorClass = classOf(node.chain);
  if (errorClass === DOMException) return new DOMException(node.message, node.name);
  const error = new Error(node.message); // a real one: it has V8's error slot
  Object.setPrototypeOf(error, errorClass.prototype);
  if (error.name !== node.name) set(error, 'name', false, node.name);
  return error;
}

/** The same view, on a buffer of its own: v8 makes views on the bytes of the record. */
function ownMemory(view: NodeJS.ArrayBufferView): NodeJS.ArrayBufferView {
  const { buffer, byteOffset, byteLength } = view;
  const memory = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
  if (Buffer.isBuffer(view)) return Buffer.from(memory);
  return new (view.constructor as new (memory: ArrayBuffer) => NodeJS.ArrayBufferView)(memory);
}

class Unpacker {
  readonly #graph: Graph;
  // Errors by placeholder; views, and objects that this thread knows, by themselves.
  readonly #replaced = new Map<object, unknown>();
  readonly #seen = new Set<object>();

  constructor(graph: Graph) {
    this.#graph = graph;
  }

  unpack(): unknown {
    const { references, nodes, root, thrown } = this.#graph;
    const made: [Error, Node][] = [];
    nodes.forEach((node, i) => {
      const known = byId.get(node.id)?.deref();
      if (known !== undefined) {
        this.#replaced.set(references[i] as object, known.value);
        return;
      }
      const error = makeError(node);
      this.#replaced.set(references[i] as object, error);
      remember(
        node.echoOf === undefined
          ? { id: node.id, value: error }
          : { id: node.id, value: error, echoOf: node.echoOf },
      );
      made.push([error, node]);
    });
    for (const [object, id] of thrown) {
      const known = byId.get(id)?.deref();
      if (known !== undefined) this.#replaced.set(object, known.value);
    }
    const restored = this.#value(root); // first, as it was copied first
    for (const [error, node] of made) {
      set(error, 'stack', false, node.stack);
      for (const { key, enumerable, value } of node.own) {
        set(error, key, enumerable, this.#value(value));
      }
      const inherited = node.code !== undefined && codeOf(error) !== node.code;
      if (inherited) set(error, 'code', true, node.code);
      chains.set(error, node.chain);
    }
    for (const [object, id] of thrown) {
      if (byId.get(id)?.deref() === undefined) remember({ id, value: this.#value(object) });
    }
    return restored;
  }

  /** Puts the errors back in the place of their placeholders, in place. */
  #value(value: unknown): unknown {
    if (!isObject(value)) return value;
    if (this.#replaced.has(value)) return this.#replaced.get(value);
    if (types.isArrayBufferView(value)) {
      const view = ownMemory(value);
      this.#replaced.set(value, view);
      return view;
    }
    if (this.#seen.has(value) || isLeaf(value)) return value;
    this.#seen.add(value);
    if (types.isMap(value)) {
      const entries = [...value];
      value.clear();
      for (const [key, item] of entries) value.set(this.#value(key), this.#value(item));
    } else if (types.isSet(value)) {
      const items = [...value];
      value.clear();
      for (const item of items) value.add(this.#value(item));
    } else {
      for (const key of Object.keys(value)) {
        const item = (value as Record<string, unknown>)[key];
        const restored = this.#value(item);
        if (restored !== item) set(value, key, true, restored);
      }
    }
    return value;
  }
}

/** The error of a native thread, which has no graph. */
function nativeError(header: Header): Error {
  const { name, message, code, nativeType } = header;
  const ours = errorClasses.get(name) ?? (builtinClasses.has(name) ? undefined : NativeError);
  const error: Error =
    ours === undefined
      ? makeError({ name, message, chain: [name] })
      : Reflect.construct(ours, [message]);
  if (error.name !== name) set(error, 'name', false, name);
  if (code !== '' && codeOf(error) !== code) set(error, 'code', true, code);
  if (nativeType !== '') set(error, 'nativeType', true, nativeType);
  const title = nativeType === '' ? name : `${name} [${nativeType}]`;
  const frames = header.stack === '' ? '    at a native thread' : header.stack;
  set(error, 'stack', false, `${title}: ${message}\n${frames}`);
  chains.set(error, header.chain);
  return error;
}

/** The value that a record holds: the original, if this thread knows it, else a copy. */
export function decode(bytes: Uint8Array): Carried {
  const { header, graph } = readFields(bytes);
  const known = byId.get(header.id)?.deref();
  if (known !== undefined) return known;
  if (graph === undefined) return remember({ id: header.id, value: nativeError(header) });
  const value = new Unpacker(v8.deserialize(graph)).unpack();
  // Errors were remembered on the way; other values are so only now.
  return byId.get(header.id)?.deref() ?? remember({ id: header.id, value });
}

/**
 * An error that Node has carried between threads (a Worker's `error` event),
 * which keeps name and fields but loses the class: gives ours their class back.
 */
export function restoreClass(value: unknown): unknown {
  if (!isObject(value) || !isError(value)) return value;
  const ours = errorClasses.get(value.name);
  if (ours !== undefined && !(value instanceof ours)) Object.setPrototypeOf(value, ours.prototype);
  return value;
}
