/**
 * What goes through a session (reliable-channel.ts): arrays whose first element says which; arguments and
 * results in them are bytes, as V8 serializes them, so that one which cannot be carried, or
 * read, spoils no other.
 */

import { deserialize, serialize } from 'node:v8';
import { attempt } from '../../../base/thrown-value.ts';
import { decode } from '../../../record/error-record.ts';
import type { Resource } from '../../worker/protocol.ts';
import type { StopMessage } from '../../worker/stop-relay.ts';
import { isBytes, isCount, isListOf, isMaybe, isObject, isText } from './shapes.ts';

export type ToNode =
  /** [...[id, attempt, name, args as bytes, perWorker]] */
  | ['run', ...unknown[]]
  | ['cancel', id: number, reason: Uint8Array, replace: boolean]
  /** What of these is not started comes back. */
  | ['recall', ...number[]]
  | ['resource', resource: PackedResource]
  /** The record of the run's stop. */
  | ['stopped', stop: StopMessage]
  | ['end'];
/** One with arguments has them as bytes. */
export type PackedResource =
  | (Omit<Extract<Resource, { kind: 'dataset' }>, 'args'> & { readonly args: Uint8Array })
  | Exclude<Resource, { kind: 'dataset' }>;
export const RUN_LENGTH = 5;
/** A message with functions or results is not made longer than this, if it need not be. */
export const LONG_BYTES: number = 64 * 1024;

export type FromNode =
  /** [...[id, state, value as bytes, microseconds]] */
  | ['results', ...unknown[]]
  | ['returned', id: number, wasStarted: boolean, cause: Uint8Array | null]
  | ['status', NodeStatus]
  | ['stop', stop: StopMessage]
  /** It takes nothing more, and goes when all that it has is done. */
  | ['leaving']
  /** No worker will live there. */
  | ['failed', cause: Uint8Array];
export const RESULT_LENGTH = 4;

/** The phase of a worker that makes its data sets. */
export const BUILDING = 'building-dataset';

export type NodeStatus = {
  phase: string;
  cause?: string;
  /** So many of its threads can take functions. */
  capacity: number;
  functions?: string[];
  restarts: number;
  stuck: number;
  /** So many resources it knows of; `phase` speaks of them, too. */
  resources?: number;
};

export function pack(message: ToNode | FromNode): Uint8Array {
  return serialize(message);
}

/** An error as bytes (error-record.ts), which can be read. */
const isRecord = (value: unknown): value is Uint8Array =>
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
  const { id, requester, error, at } = value;
  const { language, via, threadName, threadId, pid, host, worker, stack, signal } =
    requester as Record<string, unknown>;
  return (
    isText(id) &&
    id !== '' &&
    isCount(at) &&
    (error === null || isRecord(error)) &&
    (language === 'js' || language === 'native') &&
    isText(via) &&
    isText(threadName) &&
    isCount(threadId) &&
    isCount(pid) &&
    [host, worker, stack, signal].every((each) => isMaybe(isText, each))
  );
}

function isResource(value: unknown): value is PackedResource {
  if (!isObject(value) || !isCount(value['id'])) return false;
  const { kind, name, args, dataset, record } = value;
  if (kind === 'dataset') return isText(name) && isBytes(args);
  return kind === 'iterator' ? isCount(dataset) : kind === 'broken' && isRecord(record);
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

const toNode: Record<ToNode[0], (rest: unknown[]) => boolean> = {
  run: (rest) =>
    inGroups(
      rest,
      RUN_LENGTH,
      ([id, attempts, name, args, perWorker]) =>
        isCount(id) &&
        isCount(attempts) &&
        isText(name) &&
        isBytes(args) &&
        isMaybe((list) => isListOf(isCount, list), perWorker),
    ),
  cancel: ([id, reason, replace]) =>
    isCount(id) && isRecord(reason) && typeof replace === 'boolean',
  recall: (rest) => rest.every(isCount),
  resource: ([resource]) => isResource(resource),
  stopped: ([stop]) => isStop(stop),
  end: () => true,
};

const fromNode: Record<FromNode[0], (rest: unknown[]) => boolean> = {
  results: (rest) =>
    inGroups(
      rest,
      RESULT_LENGTH,
      ([id, state, value, us]) =>
        isCount(id) && (state === 0 || state === 1) && isBytes(value) && isCount(us),
    ),
  returned: ([id, wasStarted, cause]) =>
    isCount(id) && typeof wasStarted === 'boolean' && (cause === null || isRecord(cause)),
  status: ([status]) => isStatus(status),
  stop: ([stop]) => isStop(stop),
  leaving: () => true,
  failed: ([cause]) => isRecord(cause),
};

function unpack(
  bytes: Uint8Array,
  shapes: Record<string, (rest: unknown[]) => boolean>,
): unknown[] | undefined {
  let message: unknown;
  try {
    message = deserialize(bytes);
  } catch {
    return undefined;
  }
  // Elements take a byte at least: one that claims to have more is made of holes.
  if (!Array.isArray(message) || message.length > bytes.byteLength) return undefined;
  if (!isText(message[0])) return undefined;
  const [kind, ...rest] = message as [string, ...unknown[]];
  return Object.hasOwn(shapes, kind) && shapes[kind]?.(rest) === true ? message : undefined;
}

/** Undefined: it is no such message. */
export const unpackToNode = (bytes: Uint8Array): ToNode | undefined =>
  unpack(bytes, toNode) as ToNode | undefined;

/** Undefined: it is no such message. */
export const unpackFromNode = (bytes: Uint8Array): FromNode | undefined =>
  unpack(bytes, fromNode) as FromNode | undefined;

export function unpackStop(bytes: Uint8Array): StopMessage | undefined {
  try {
    const value: unknown = deserialize(bytes);
    return isStop(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export const packStop = (stop: StopMessage): Uint8Array => serialize(stop);
