/**
 * The messages of a session, which go through its ReliableChannel: records, serialized by V8, whose
 * `kind` tells which one each is. Each argument list and result is packed to bytes by itself before,
 * so that a value that cannot be packed or read fails its own function only. Those bytes, if they are
 * long, are attached: the message has `undefined` in their places.
 */

import { deserialize, serialize } from 'node:v8';
import { attempt } from '../../base/thrown-value.ts';
import { type Definition, definitionOf } from '../../cluster/variables/variable.ts';
import type { StopMessage } from '../../coordinator/stop-relay.ts';
import { checkTaskPhase, type TaskPhase } from '../../errors/phases.ts';
import { VARIABLE_TYPES } from '../../native/binding.ts';
import type { Fate, Resource } from '../../pool/worker/messages.ts';
import type { Answer, Request } from '../../pool/worker/variables.ts';
import { decode } from '../../record/encoded-error.ts';
import {
  type Guard,
  isBoolean,
  isBytes,
  isCount,
  isEither,
  isListOf,
  isMaybe,
  isMessage,
  isNull,
  isObject,
  isOneOf,
  isRecord,
  isText,
  isWord,
  LONGEST_LIST,
} from './shapes.ts';

/** A call that a node is to run. */
export type SentCall = {
  id: number;
  attempt: number;
  name: string;
  /** The packed arguments. */
  bytes: Uint8Array;
  perWorker?: readonly number[];
  context?: string;
  hasVariables?: boolean;
  runTimeoutMs?: number;
  isKeyed?: boolean;
};

/** `bytes`: the packed result, or an encoded error. `us`: how long the function ran. */
export type SentResult = { id: number; state: 'ready' | 'failed'; bytes: Uint8Array; us: number };

export type ToNode =
  | { kind: 'run'; calls: readonly SentCall[] }
  | { kind: 'cancel'; id: number; reason: Uint8Array; replace: boolean }
  /** The node returns those of these calls that it has not started. */
  | { kind: 'recall'; ids: readonly number[] }
  | { kind: 'resource'; resource: PackedResource }
  /** Nobody has the data set or iterator any more. */
  | { kind: 'forget'; id: number }
  /** To a parameter server. An id of 0 wants no answer. */
  | { kind: 'operate'; id: number; request: ServerRequest }
  /** To a worker: variables that its functions find. The first one starts the threads. */
  | { kind: 'defined'; definitions: readonly Definition[] }
  /** To a worker: the value for its 'operate', or an encoded error. */
  | { kind: 'answer'; id: number; answer: Answer }
  /** The stop record of the run. */
  | { kind: 'stopped'; stop: StopMessage }
  /** The session will be over soon: the functions that run are told. */
  | { kind: 'leave' }
  /** The session is over; `isClosed`: because the program has closed the coordinator. */
  | { kind: 'end'; isClosed: boolean };

/** A Request, or what only the coordinator asks of a parameter server. */
export type ServerRequest =
  | Request
  | [operation: 'define' | 'forget', name: string, call: number, ordinal: number, value?: unknown];
/** A Resource; the arguments of a data set are packed. */
export type PackedResource =
  | (Omit<Extract<Resource, { kind: 'dataset' }>, 'args'> & { readonly args: Uint8Array })
  | Exclude<Resource, { kind: 'dataset' }>;
/** A batch of calls or results that is longer than this is sent at once. */
export const LONG_BYTES: number = 64 * 1024;

export type FromNode =
  | { kind: 'results'; results: readonly SentResult[] }
  /** What the function of a call has reported, each value packed. */
  | { kind: 'progress'; id: number; values: readonly Uint8Array[] }
  | { kind: 'returned'; id: number; fate: Fate; cause: Uint8Array | null }
  /** The function of a call has run for its `runTimeoutMs`. */
  | { kind: 'overdue'; id: number }
  /** A thread of the node has died of `cause`; null: it is blocked and cannot be ended. */
  | { kind: 'thread'; cause: Uint8Array | null }
  | { kind: 'status'; status: NodeStatus }
  | { kind: 'stop'; stop: StopMessage }
  /** A function of a worker asks for an operation on a variable. */
  | { kind: 'operate'; id: number; request: Request }
  /** Of a parameter server: the value for an 'operate', or an encoded error. */
  | { kind: 'answer'; id: number; answer: Answer }
  /** The node takes no more calls, and leaves when those that it has are done. */
  | { kind: 'leaving' }
  /** No thread of the node was ever set up, and each has failed to; they are started again. */
  | { kind: 'setup-failed'; cause: Uint8Array }
  /** No worker thread lives on the node: the module cannot be imported there, for example. */
  | { kind: 'failed'; cause: Uint8Array };

export type NodeStatus = {
  /**
   * 'unknown' if the node, of another version, has sent a phase that this version does not know.
   */
  phase: TaskPhase;
  cause?: string;
  /** How many threads of the node can take calls. */
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

/** What may be long: the records that have `bytes`, or bytes themselves. */
type Part = Uint8Array | { readonly bytes: Uint8Array };

/** By kind of message: the field that lists its parts. */
const LISTS: Partial<Record<string, string>> = {
  run: 'calls',
  results: 'results',
  progress: 'values',
};

const isLong = (part: Part): boolean =>
  (isBytes(part) ? part : part.bytes).byteLength >= LONG_BYTES;

export function pack(message: ToNode | FromNode): Packed {
  const name = LISTS[message.kind];
  const parts: readonly Part[] = name === undefined ? [] : Reflect.get(message, name);
  const attached = parts.filter(isLong).map((part) => (isBytes(part) ? part : part.bytes));
  if (name === undefined || attached.length === 0) return [serialize(message), attached];
  const rest = parts.map((part) => {
    if (!isLong(part)) return part;
    return isBytes(part) ? undefined : { ...part, bytes: undefined };
  });
  return [serialize({ ...message, [name]: rest }), attached];
}

/** Puts the attached bytes into their places. @returns false if there are not as many places */
function putBack(message: Record<string, unknown>, attached: readonly Uint8Array[]): boolean {
  if (attached.length === 0) return true;
  const parts = message[LISTS[String(message['kind'])] ?? ''];
  if (!Array.isArray(parts) || parts.length > LONGEST_LIST) return false;
  let next = 0;
  for (const [place, part] of parts.entries()) {
    if (part === undefined) parts[place] = attached[next++];
    else if (!isBytes(part) && isObject(part) && part['bytes'] === undefined)
      part['bytes'] = attached[next++];
  }
  return next === attached.length;
}

/** Whether `value` is an encoded error (encoded-error.ts) that can be decoded. */
const isEncodedError = (value: unknown): value is Uint8Array =>
  isBytes(value) && attempt(() => decode(value)) !== undefined;

const isStop: Guard<StopMessage> = isRecord<StopMessage>({
  id: (id): id is string => isText(id) && id !== '',
  at: isCount,
  isReported: isMaybe(isBoolean),
  isThrown: isMaybe(isBoolean),
  error: isEither(isEncodedError, isNull),
  requester: isRecord<StopMessage['requester']>({
    language: isOneOf('js', 'native'),
    // Another version may have others.
    via: (via): via is StopMessage['requester']['via'] => isText(via),
    threadName: isText,
    threadId: isCount,
    pid: isCount,
    host: isMaybe(isWord),
    worker: isMaybe(isWord),
    stack: isMaybe(isText),
    signal: isMaybe((signal): signal is NodeJS.Signals => isText(signal)),
  }),
});

const isResource = isMessage<PackedResource>({
  dataset: { id: isCount, name: isText, args: isBytes, hasVariables: isBoolean },
  iterator: { id: isCount, dataset: isCount },
  broken: { id: isCount, record: isEncodedError },
});

const isStatus: Guard<NodeStatus> = isRecord<NodeStatus>({
  // `unpackFromNode` makes 'unknown' of what is no phase.
  phase: (phase): phase is TaskPhase => isText(phase),
  cause: isMaybe(isText),
  capacity: isCount,
  functions: isMaybe(isListOf(isText)),
  restarts: isCount,
  stuck: isCount,
  resources: isMaybe(isCount),
});

const isDefinition: Guard<Definition> = isRecord<Definition>({
  name: isText,
  type: (type): type is number => isCount(type) && type < VARIABLE_TYPES.length,
  length: isCount,
  path: (path): path is undefined => path === undefined, // of the coordinator's machine
});

/** Whether a variable can be made with `value`. */
const isInitial = (value: unknown): boolean => attempt(() => definitionOf('', value)) !== undefined;

/** `plain`: the operations without a value; `writing`: those with one. */
function isOperation(request: unknown, plain: string[], writing: string[]): boolean {
  if (!Array.isArray(request) || request.length > 5) return false;
  const [operation, name, call, ordinal, value] = request;
  if (!isText(name) || !isCount(call) || !isCount(ordinal)) return false;
  return plain.includes(operation) || (writing.includes(operation) && isInitial(value));
}

const isRequest = (request: unknown): request is Request =>
  isOperation(request, ['read'], ['assign', 'assignAdd']);

const isServerRequest = (request: unknown): request is ServerRequest =>
  isRequest(request) || isOperation(request, ['forget'], ['define']);

function isAnswer(answer: unknown): answer is Answer {
  if (!Array.isArray(answer) || answer.length > 2) return false;
  const [value, record] = answer;
  return (value === undefined || isInitial(value)) && isMaybe(isEncodedError)(record);
}

const isDuration = (value: unknown): value is number => typeof value === 'number' && value >= 0;

const isToNode = isMessage<ToNode>({
  run: {
    calls: isListOf(
      isRecord<SentCall>({
        id: isCount,
        attempt: isCount,
        name: isText,
        bytes: isBytes,
        perWorker: isMaybe(isListOf(isCount)),
        context: isMaybe(isText),
        hasVariables: isMaybe(isBoolean),
        runTimeoutMs: isMaybe(isDuration),
        isKeyed: isMaybe(isBoolean),
      }),
    ),
  },
  cancel: { id: isCount, reason: isEncodedError, replace: isBoolean },
  recall: { ids: isListOf(isCount) },
  resource: { resource: isResource },
  forget: { id: isCount },
  operate: { id: isCount, request: isServerRequest },
  defined: { definitions: isListOf(isDefinition) },
  answer: { id: isCount, answer: isAnswer },
  stopped: { stop: isStop },
  leave: {},
  end: { isClosed: isBoolean },
});

const isFromNode = isMessage<FromNode>({
  results: {
    results: isListOf(
      isRecord<SentResult>({
        id: isCount,
        state: isOneOf('ready', 'failed'),
        bytes: isBytes,
        us: isCount,
      }),
    ),
  },
  progress: { id: isCount, values: isListOf(isBytes) },
  returned: {
    id: isCount,
    fate: isOneOf<Fate>('sent', 'unread', 'running', 'ended'),
    cause: isEither(isEncodedError, isNull),
  },
  overdue: { id: isCount },
  thread: { cause: isEither(isEncodedError, isNull) },
  status: { status: isStatus },
  stop: { stop: isStop },
  operate: { id: isCount, request: isRequest },
  answer: { id: isCount, answer: isAnswer },
  leaving: {},
  'setup-failed': { cause: isEncodedError },
  failed: { cause: isEncodedError },
});

function unpack<M>([bytes, attached]: Packed, isOurs: Guard<M>): M | undefined {
  const message = attempt<unknown>(() => deserialize(bytes));
  if (!isObject(message) || !putBack(message, attached)) return undefined;
  return isOurs(message) ? message : undefined;
}

/** @returns undefined if it is malformed */
export const unpackToNode = (
  message: Uint8Array,
  attached: readonly Uint8Array[] = [],
): ToNode | undefined => unpack([message, attached], isToNode);

/** @returns undefined if it is malformed */
export function unpackFromNode(
  packed: Uint8Array,
  attached: readonly Uint8Array[] = [],
): FromNode | undefined {
  const message = unpack([packed, attached], isFromNode);
  if (message?.kind === 'status') {
    const { status } = message;
    checkTaskPhase(status);
    if (status.cause !== undefined) status.cause = status.cause.replaceAll(CONTROLS, ' ');
  }
  return message;
}

/** @returns undefined if it is malformed */
export function unpackStop(bytes: Uint8Array): StopMessage | undefined {
  const value = attempt<unknown>(() => deserialize(bytes));
  return isStop(value) ? value : undefined;
}

/** Packs a stop for the broadcast, which goes through no session. */
export const packStop = (stop: StopMessage): Uint8Array => serialize(stop);
