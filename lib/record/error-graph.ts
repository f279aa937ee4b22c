/**
 * Turns a thrown value, and everything that it refers to, into bytes (`v8.serialize`), and back.
 *
 * Every error (the thrown one, causes, aggregated errors, errors in fields) is a node of a graph
 * with its own fields. A placeholder object stands wherever a value refers to an error. A value
 * that cannot be serialized becomes a marker: a string that names the value and the reason.
 */

import { types } from 'node:util';
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
  marker,
  textOf,
} from '../base/thrown-value.ts';
import { errorClasses } from '../errors/errors.ts';
import { entriesOf, isLeaf, itemsOf } from '../values/walk.ts';
import { carry, idOf, known, remember } from './error-identity.ts';

/** One error of the graph. Its values have placeholders in place of errors. */
type Node = {
  id: string;
  echoOf: string | undefined;
  chain: string[];
  name: string;
  message: string | undefined;
  stack: string | undefined;
  /** The `code`, whether it is an own property, inherited, or the result of a getter. */
  code: string | number | undefined;
  own: { key: string; enumerable: boolean; value: unknown }[];
};

/**
 * `references[i]` is the placeholder for `nodes[i]`. `thrown`: objects other than errors that
 * have been thrown before, with their ids.
 */
type Graph = { references: object[]; root: unknown; nodes: Node[]; thrown: [object, string][] };

const TOO_DEEP = new Error('it is nested too deeply');
const TOO_LARGE = '[allstop: not carried: a value (the error has too many parts)]';

// Deno has no `isExternal`.
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

/** Whether an object keeps its state outside its properties, as a URL, Blob or iterator does. */
function hidesState(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return !isPlain && Object.keys(value).length === 0 && describe(value) !== '[object Object]';
}

/**
 * Whether the property is a method that converts the object. A copy that had a marker in its place
 * could not be converted, neither by `String` nor by `util.inspect`.
 */
function isConversion(value: object, key: string): boolean {
  if (key !== 'toString' && key !== 'valueOf') return false;
  return typeof fieldOf(value, key) === 'function';
}

/**
 * Values below this depth become markers. Every thread must be able to decode the error, and
 * the main thread's stack is a quarter of a worker's.
 */
const MAX_DEPTH = 500;

/**
 * Beyond so much work what is left becomes markers, unread: a getter or a proxy may make a new
 * object at each look, without end.
 */
const MOST_WORK = 2_000_000;
const WORK = { property: 1, object: 10, error: 100 };

/** Copies values into a form that `v8.serialize` takes; errors become nodes. */
class Packer {
  // `root` comes before `nodes`: values are serialized in the order in which they were copied,
  // so that `v8.serialize` recurses no deeper than the copying did.
  readonly #graph: Graph = { references: [], root: undefined, nodes: [], thrown: [] };
  readonly #seen = new Map<object, unknown>();
  readonly #unfinished: [Error, Node][] = []; // errors whose fields have not been copied yet
  readonly #careful: boolean; // serializes leaves and fields one by one, to find what fails
  #depth = 0;
  #work = 0;

  constructor(careful: boolean) {
    this.#careful = careful;
  }

  pack(root: unknown): Uint8Array {
    const graph = this.#graph;
    graph.root = this.#value(root);
    // #fields adds to the list. A loop, not a recursion: a chain of causes may have any length.
    for (const [error, node] of this.#unfinished) this.#fields(error, node);
    try {
      return builtin('node:v8').serialize(graph);
    } catch {
      if (!this.#careful) return new Packer(true).pack(root);
      for (const node of graph.nodes) {
        for (const field of node.own) field.value = serializable(field.value);
      }
      graph.root = serializable(graph.root);
      return builtin('node:v8').serialize(graph);
    }
  }

  /** Never throws: a value that cannot be read becomes a marker. */
  #value(value: unknown): unknown {
    if (typeof value === 'function' || typeof value === 'symbol') return marker(value);
    if (!isObject(value)) return value;
    const seen = this.#seen.get(value);
    if (seen !== undefined) return seen;
    if (this.#isTooMuch(WORK.object)) return TOO_LARGE;
    this.#depth++;
    try {
      if (isError(value)) return this.#error(value);
      if (this.#depth > MAX_DEPTH) return marker(value, TOO_DEEP);
      const copy = this.#copy(value);
      const id = idOf(value);
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
      for (const [key, item] of entriesOf(value)) copy.set(this.#value(key), this.#value(item));
      return copy;
    }
    if (types.isSet(value)) {
      const copy = this.#remember(value, new Set());
      for (const item of itemsOf(value)) copy.add(this.#value(item));
      return copy;
    }
    if (Array.isArray(value)) {
      const copy: unknown[] = this.#remember(value, []);
      // By key, not by index: an array of length 2^32 - 1 may have only three items.
      for (const key of Object.keys(value)) {
        if (key === `${copy.length}`) copy.push(this.#property(value, key));
        else define(copy, key, this.#property(value, key));
      }
      copy.length = value.length;
      return copy;
    }
    if (hidesState(value)) return this.#remember(value, marker(value));
    const copy: object = this.#remember(value, {});
    for (const key of Object.keys(value)) {
      if (!isConversion(value, key)) define(copy, key, this.#property(value, key));
    }
    return copy;
  }

  #remember<T>(value: object, copy: T): T {
    this.#seen.set(value, copy);
    return copy;
  }

  /** The copy of a property, or a marker if its getter throws. */
  #property(of: object, key: string): unknown {
    if (this.#isTooMuch(WORK.property)) return TOO_LARGE;
    let value: unknown;
    try {
      value = Reflect.get(of, key);
    } catch (why) {
      return marker(`property ${key}`, why);
    }
    return this.#value(value);
  }

  #isTooMuch(work: number): boolean {
    this.#work += work;
    return this.#work > MOST_WORK;
  }

  #error(error: Error): object {
    this.#work += WORK.error;
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
      if (isConversion(error, key)) continue;
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
    builtin('node:v8').serialize(value);
    return value;
  } catch (why) {
    return marker(value, why);
  }
}

/** The bytes of a thrown value. Never throws. */
export function pack(value: unknown): Uint8Array {
  try {
    return new Packer(false).pack(value);
  } catch (why) {
    // `value` is a proxy whose traps throw, or is larger than memory.
    const root = attempt(() => marker(value, why)) ?? marker('a value');
    return builtin('node:v8').serialize({
      references: [],
      root,
      nodes: [],
      thrown: [],
    } satisfies Graph);
  }
}

type AnyErrorClass = abstract new (...args: never[]) => Error;

function isErrorClass(value: unknown): value is AnyErrorClass {
  return value === Error || (typeof value === 'function' && value.prototype instanceof Error);
}

/** The error classes of JavaScript that this runtime has, by name. */
export const builtinClasses: ReadonlyMap<string, AnyErrorClass> = new Map<string, AnyErrorClass>(
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
    fieldOf(globalThis, 'SuppressedError'), // Node 24
    ...['CompileError', 'LinkError', 'RuntimeError'].map((name) =>
      fieldOf(fieldOf(globalThis, 'WebAssembly'), name),
    ),
  ]
    .filter(isErrorClass)
    .map((errorClass) => [errorClass.name, errorClass]),
);

/** The first class in `chain` that is built in or one of the package's. */
function classOf(chain: string[]): AnyErrorClass {
  for (const name of chain) {
    const errorClass = errorClasses.get(name) ?? builtinClasses.get(name);
    if (errorClass !== undefined) return errorClass;
  }
  return Error;
}

/** An error of the class in `chain`, made without its constructor, which might add fields. */
export function makeError(node: Pick<Node, 'name' | 'message' | 'chain'>): Error {
  const errorClass = classOf(node.chain);
  if (errorClass === DOMException) return new DOMException(node.message, node.name);
  const error = new Error(node.message); // isNativeError() must be true
  Object.setPrototypeOf(error, errorClass.prototype);
  if (error.name !== node.name) define(error, 'name', node.name, false);
  return error;
}

/** A copy of a view with a buffer of its own: v8 deserializes views on the bytes of the graph. */
function ownMemory(view: NodeJS.ArrayBufferView): NodeJS.ArrayBufferView {
  const { buffer, byteOffset, byteLength } = view;
  const memory = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
  if (Buffer.isBuffer(view)) return Buffer.from(memory);
  return new (view.constructor as new (memory: ArrayBuffer) => NodeJS.ArrayBufferView)(memory);
}

class Unpacker {
  readonly #graph: Graph;
  // What takes the place of an object: of a placeholder its error, of a view its copy, of an
  // object that this thread has thrown the original.
  readonly #replaced = new Map<object, unknown>();
  readonly #seen = new Set<object>();

  constructor(graph: Graph) {
    this.#graph = graph;
  }

  unpack(): unknown {
    const { references, nodes, root, thrown } = this.#graph;
    const made: [Error, Node][] = [];
    nodes.forEach((node, i) => {
      const original = known(node.id);
      if (original !== undefined) {
        this.#replaced.set(references[i] as object, original.value);
        return;
      }
      const error = makeError(node);
      this.#replaced.set(references[i] as object, error);
      const { id, echoOf } = node;
      remember({ id, value: error, ...(echoOf !== undefined && { echoOf }) });
      made.push([error, node]);
    });
    for (const [object, id] of thrown) {
      const original = known(id);
      if (original !== undefined) this.#replaced.set(object, original.value);
    }
    const restored = this.#value(root); // before `made`, in the order of packing
    for (const [error, node] of made) {
      defineStack(error, node.stack);
      for (const { key, enumerable, value } of node.own) {
        define(error, key, this.#value(value), enumerable);
      }
      const inherited = node.code !== undefined && codeOf(error) !== node.code;
      if (inherited) define(error, 'code', node.code);
      chains.set(error, node.chain);
    }
    for (const [object, id] of thrown) {
      if (known(id) === undefined) remember({ id, value: this.#value(object) });
    }
    return restored;
  }

  /** Replaces the placeholders in `value` by their errors, in place. */
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
        const item: unknown = Reflect.get(value, key);
        const restored = this.#value(item);
        if (restored !== item) define(value, key, restored);
      }
    }
    return value;
  }
}

/**
 * Whether `node` is what a Packer writes. The lengths come first: a forged sparse array states
 * any length, and a loop would visit every index of it.
 * @throws TypeError if an entry of `own` is no object
 */
function isNode(node: Partial<Node>, mostItems: number): boolean {
  const isText = (text: unknown) => typeof text === 'string';
  const isTextOrAbsent = (text: unknown) => text === undefined || isText(text);
  const { chain, own, code } = node;
  return (
    isText(node.id) &&
    isText(node.name) &&
    isTextOrAbsent(node.echoOf) &&
    isTextOrAbsent(node.message) &&
    isTextOrAbsent(node.stack) &&
    (isTextOrAbsent(code) || typeof code === 'number') &&
    Array.isArray(chain) &&
    chain.length <= mostItems &&
    Array.from(chain).every(isText) &&
    Array.isArray(own) &&
    own.length <= mostItems &&
    Array.from(own).every(({ key, enumerable }) => isText(key) && typeof enumerable === 'boolean')
  );
}

/** The value of packed bytes. Objects that this thread has thrown are the originals, not copies. */
export function unpack(graph: Uint8Array): unknown {
  const own: Graph = builtin('node:v8').deserialize(graph);
  const most = Math.max(own.nodes.length, own.thrown.length);
  if (!(most <= graph.byteLength)) throw new RangeError('The graph has more entries than bytes');
  for (const node of own.nodes) {
    if (!isNode(node, graph.byteLength)) throw new TypeError('The graph has an entry of no error');
  }
  return new Unpacker(own).unpack();
}
