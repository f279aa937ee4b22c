/**
 * The messages of a session, which go through its ReliableChannel: arrays, serialized by V8,
 * whose first element is the kind. Each argument list and result is packed to bytes by itself
 * before, so that a value that cannot be packed or read fails its own function only. Elements that
 * are long bytes are attached: the message has `undefined` in their places, and as its last
 * element the list of these places.
 */

import { deserialize, serialize } from 'node:v8';
import { attempt } from '../../base/thrown-value.ts';
import { type Definition, definitionOf } from '../../cluster/variables/variable.ts';
import type { Answer, Request } from '../../cluster/variables/variable-store.ts';
import type { StopMessage } from '../../coordinator/stop-relay.ts';
import { checkTaskPhase, type TaskPhase } from '../../errors/phases.ts';
import { VARIABLE_TYPES } from '../../native/binding.ts';
import type { Fate, Resource } from '../../pool/worker/protocol.ts';
import { decode } from '../../record/encoded-error.ts';
import {
  isBoolean,
  isBytes,
  isCount,
  isListOf,
  isMaybe,
  isObject,
  isText,
  isWord,
} from './shapes.ts';

export type ToNode =
  /**
   * RUN_LENGTH elements for each closure: id, attempt, name, packed arguments, perWorker, context,
   * hasVariables, runTimeoutMs, isKeyed.
   */
  | ['run', ...unknown[]]
  | ['cancel', id: number, reason: Uint8Array, replace: boolean]
  /** The ids of closures. The node returns the closures among these that it has not started. */
  | ['recall', ...number[]]
  | ['resource', resource: PackedResource]
  /** Nobody has the data set or iterator any more. */
  | ['forget', id: number]
  /** To a parameter server. An id of 0 wants no answer. */
  | ['operate', id: number, ...ServerRequest]
  /**
   * To a worker: variables that its functions find. The first one, which may have none, starts the
   * threads.
   */
  | ['defined', ...Definition[]]
  /** To a worker: the value for its 'operate', or an encoded error. */
  | ['answer', id: number, ...Answer]
  /** The stop record of the run. */
  | ['stopped', stop: StopMessage]
  /** The session is over; 'closed': because the program has closed the coordinator. */
  | ['end', why?: 'closed'];
/** A Request, or what only the coordinator asks of a parameter server. */
export type ServerRequest =
  | Request
  | [
      operation: 'define' | 'forget',
      name: string,
      closure: number,
      ordinal: number,
      value?: unknown,
    ];
/** A Resource; the arguments of a data set are packed. */
export type PackedResource =
  | (Omit<Extract<Resource, { kind: 'dataset' }>, 'args'> & { readonly args: Uint8Array })
  | Exclude<Resource, { kind: 'dataset' }>;
export const RUN_LENGTH = 9;
/** A batch of closures or results that is longer than this is sent at once. */
export const LONG_BYTES: number = 64 * 1024;

export type FromNode =
  /** RESULT_LENGTH elements for each closure: id, state, packed value, microseconds. */
  | ['results', ...unknown[]]
  /** What the function of a closure has reported, each value packed. */
  | ['progress', id: number, ...values: Uint8Array[]]
  | ['returned', id: number, fate: Fate, cause: Uint8Array | null]
  /** The function of a closure has run for its `runTimeoutMs`. */
  | ['overdue', id: number]
  /** A thread of the node has died (`cause` says why), or is blocked and cannot be ended. */
  | ['thread', what: 'lost' | 'stuck', cause: Uint8Array | null]
  | ['status', NodeStatus]
  | ['stop', stop: StopMessage]
  /** A function of a worker asks for an operation on a variable. */
  | ['operate', id: number, ...Request]
  /** Of a parameter server: the value for an 'operate', or an encoded error. */
  | ['answer', id: number, ...Answer]
  /** The node takes no more closures, and leaves when the closures that it has are done. */
  | ['leaving']
  /** No thread of the node was ever set up, and each has failed to; they are started again. */
  | ['setup-failed', cause: Uint8Array]
  /** No worker thread lives on the node: the module cannot be imported there, for example. */
  | ['failed', cause: Uint8Array];
export const RESULT_LENGTH = 4;

export type NodeStatus = {
  /**
   * 'unknown' if the node, of another version, has sent a phase that this version does not know.
   */
  phase: TaskPhase;
  cause?: string;
  /** How many threads of the node can take closures. */
  capacity: number;
  functions?: string[];
  restarts: number;
  stuck: number;
  /** How many resources the node has received; `phase` tells whether they are made. */
  resources?: number;
};

/** Control characters, without line feeds: a cause is printed to terminals. */
const CONTROLS = /(?!\n)\p{Cc}/gu;

export type Packed = [message: Uint8Array, attached: readonly Uint8Array[]];

export function pack(message: ToNode | FromNode): Packed {
  const attached: Uint8Array[] = [];
  const places: number[] = [];
  for (const [place, element] of message.entries()) {
    if (!isBytes(element) || element.byteLength < LONG_BYTES) continue;
    attached.push(element);
    places.push(place);
  }
  if (places.length === 0) return [serialize(message), attached];
  const rest: unknown[] = [...message];
  for (const place of places) rest[place] = undefined;
  return [serialize([...rest, places]), attached];
}

/** Puts the attached bytes into their places. @returns false if the list of places is malformed */
function putBack(message: unknown[], attached: readonly Uint8Array[]): boolean {
  if (attached.length === 0) return true;
  const places = message.pop();
  if (!isListOf(isCount, places) || places.length !== attached.length) return false;
  for (const [at, bytes] of attached.entries()) {
    const place = places[at] as number;
    if (place >= message.length || message[place] !== undefined) return false;
    message[place] = bytes;
  }
  return true;
}

/** Whether `value` is an encoded error (encoded-error.ts) that can be decoded. */
const isEncodedError = (value: unknown): value is Uint8Array =>
  isBytes(value) && attempt(() => decode(value)) !== undefined;
function inGroups(values: unknown[], size: number, is: (group: unknown[]) => boolean): boolean {
  if (values.length === 0 || values.length % size !== 0) return false;
  for (let at = 0; at < values.length; at += size) {
    if (!is(values.slice(at, at + size))) return false;
  }
  return true;
}

function isStop(value: unknown): value is StopMessage {
  if (!isObject(value) || !isObject(value['requester'])) return false;
  const { id, requester, error, at, isReported, isThrown } = value;
  const { language, via, threadName, threadId, pid, host, worker, stack, signal } =
    requester as Record<string, unknown>;
  return (
    isText(id) &&
    id !== '' &&
    isCount(at) &&
    [isReported, isThrown].every((each) => isMaybe(isBoolean, each)) &&
    (error === null || isEncodedError(error)) &&
    (language === 'js' || language === 'native') &&
    isText(via) &&
    isText(threadName) &&
    isCount(threadId) &&
    isCount(pid) &&
    [host, worker].every((each) => isMaybe(isWord, each)) &&
    [stack, signal].every((each) => isMaybe(isText, each))
  );
}

function isResource(value: unknown): value is PackedResource {
  if (!isObject(value) || !isCount(value['id'])) return false;
  const { kind, name, args, dataset, record } = value;
  if (kind === 'dataset') return isText(name) && isBytes(args);
  return kind === 'iterator' ? isCount(dataset) : kind === 'broken' && isEncodedError(record);
}

function isStatus(value: unknown): value is NodeStatus {
  if (!isObject(value)) return false;
  const { phase, cause, capacity, functions, restarts, stuck, resources } = value;
  return (
    isText(phase) &&
    isMaybe(isText, cause) &&
    isMaybe(isCount, resources) &&
    isMaybe((names) => isListOf(isText, names), functions) &&
    [capacity, restarts, stuck].every(isCount)
  );
}

function isDefinition(value: unknown): value is Definition {
  if (!isObject(value)) return false;
  const { name, type, length, path } = value;
  const isShape = isCount(type) && type < VARIABLE_TYPES.length && isCount(length);
  return isText(name) && isShape && path === undefined; // of the coordinator's machine
}

/** Whether a variable can be made with `value`. */
const isInitial = (value: unknown): boolean => attempt(() => definitionOf('', value)) !== undefined;

const isRequest = ([operation, name, closure, ordinal, value]: unknown[]): boolean =>
  isText(name) &&
  isCount(closure) &&
  isCount(ordinal) &&
  (operation === 'read' ||
    ((operation === 'assign' || operation === 'assignAdd') && isInitial(value)));

function isServerRequest(request: unknown[]): boolean {
  const [operation, name, closure, ordinal, value] = request;
  if (isRequest(request)) return true;
  if (!isText(name) || !isCount(closure) || !isCount(ordinal)) return false;
  return operation === 'forget' || (operation === 'define' && isInitial(value));
}

const isAnswer = ([id, value, record]: unknown[]): boolean =>
  isCount(id) && isMaybe(isEncodedError, record) && isMaybe(isInitial, value);

const isDuration = (value: unknown): boolean => typeof value === 'number' && value >= 0;

const toNode: Record<ToNode[0], (rest: unknown[]) => boolean> = {
  run: (rest) =>
    inGroups(
      rest,
      RUN_LENGTH,
      ([id, attempts, name, args, perWorker, context, hasVariables, runTimeoutMs, isKeyed]) =>
        isCount(id) &&
        isCount(attempts) &&
        isText(name) &&
        isBytes(args) &&
        isMaybe((list) => isListOf(isCount, list), perWorker) &&
        isMaybe(isText, context) &&
        typeof hasVariables === 'boolean' &&
        isMaybe(isDuration, runTimeoutMs) &&
        typeof isKeyed === 'boolean',
    ),
  cancel: ([id, reason, replace]) =>
    isCount(id) && isEncodedError(reason) && typeof replace === 'boolean',
  recall: (rest) => rest.every(isCount),
  resource: ([resource]) => isResource(resource),
  forget: ([id]) => isCount(id),
  operate: ([id, ...request]) => isCount(id) && isServerRequest(request),
  defined: (rest) => rest.every(isDefinition),
  answer: isAnswer,
  stopped: ([stop]) => isStop(stop),
  end: () => true,
};

const FATES: readonly unknown[] = ['sent', 'running', 'ended'] satisfies Fate[];

const fromNode: Record<FromNode[0], (rest: unknown[]) => boolean> = {
  results: (rest) =>
    inGroups(
      rest,
      RESULT_LENGTH,
      ([id, state, value, us]) =>
        isCount(id) && (state === 0 || state === 1) && isBytes(value) && isCount(us),
    ),
  progress: ([id, ...values]) => isCount(id) && isListOf(isBytes, values),
  returned: ([id, fate, cause]) =>
    isCount(id) && FATES.includes(fate) && (cause === null || isEncodedError(cause)),
  overdue: ([id]) => isCount(id),
  thread: ([what, cause]) =>
    what === 'lost' ? isEncodedError(cause) : what === 'stuck' && cause === null,
  status: ([status]) => isStatus(status),
  stop: ([stop]) => isStop(stop),
  operate: ([id, ...request]) => isCount(id) && isRequest(request),
  answer: isAnswer,
  leaving: () => true,
  'setup-failed': ([cause]) => isEncodedError(cause),
  failed: ([cause]) => isEncodedError(cause),
};

function unpack(
  [bytes, attached]: Packed,
  shapes: Record<string, (rest: unknown[]) => boolean>,
): unknown[] | undefined {
  let message: unknown;
  try {
    message = deserialize(bytes);
  } catch {
    return undefined;
  }
  // Each element takes a byte at least: an array with more elements than bytes is sparse, and
  // forged.
  if (!Array.isArray(message) || message.length > bytes.byteLength) return undefined;
  if (!putBack(message, attached) || !isText(message[0])) return undefined;
  const [kind, ...rest] = message as [string, ...unknown[]];
  return Object.hasOwn(shapes, kind) && shapes[kind]?.(rest) === true ? message : undefined;
}

/** @returns undefined if it is malformed */
export const unpackToNode = (
  message: Uint8Array,
  attached: readonly Uint8Array[] = [],
): ToNode | undefined => unpack([message, attached], toNode) as ToNode | undefined;

/** @returns undefined if it is malformed */
export function unpackFromNode(
  packed: Uint8Array,
  attached: readonly Uint8Array[] = [],
): FromNode | undefined {
  const message = unpack([packed, attached], fromNode) as FromNode | undefined;
  if (message?.[0] === 'status') {
    const status = message[1];
    checkTaskPhase(status);
    if (status.cause !== undefined) status.cause = status.cause.replaceAll(CONTROLS, ' ');
  }
  return message;
}

/** @returns undefined if it is malformed */
export function unpackStop(bytes: Uint8Array): StopMessage | undefined {
  try {
    const value: unknown = deserialize(bytes);
    return isStop(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Packs a stop for the broadcast, which goes through no session. */
export const packStop = (stop: StopMessage): Uint8Array => serialize(stop);
