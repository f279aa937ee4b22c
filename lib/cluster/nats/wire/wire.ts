/**
 * What the coordinator and the nodes of a cluster say to each other, and whether it is that.
 *
 * What a session is made of (welcome, probes) is JSON, since nodes of another version are to
 * understand that they do not understand. What goes through a session (link.ts) are arrays
 * whose first element says which; arguments and results in them are bytes, as V8 serializes
 * them, so that one which cannot be carried, or read, spoils no other.
 */

import { deserialize, serialize } from 'node:v8';
import { attempt } from '../../../base/thrown-value.ts';
import { decode } from '../../../record/error-record.ts';
import type { Resource } from '../../closures/per-worker.ts';
import type { ReadinessReport, TaskReadiness } from '../../closures/strategy.ts';
import type { StopMessage } from '../../worker/stop-relay.ts';

/** Nodes of another number cannot work together. */
export const PROTOCOL = 1;

const RUNTIMES = ['bun', 'deno', 'node']; // the others say that they are Node, too
const own = RUNTIMES.find((name) => process.versions[name] !== undefined) as string;
/** What runs this: "node 20.20.2". */
export const RUNTIME: string = `${own} ${process.versions[own]}`;

/** Who a node is, and what its machine is like. */
export type NodeInfo = {
  protocol: number;
  /** Of this process, and no other. */
  node: string;
  job: 'worker' | 'ps';
  /** Undefined: any. */
  task?: number;
  slots: number;
  /** Of the module's file. */
  definition: string;
  /** Of the ClusterSpec that it was given. */
  spec?: string;
  host: string;
  /** The names and addresses under which it may stand in a ClusterSpec. */
  addresses: string[];
  pid: number;
  version: string;
  runtime: string;
  freeMemory: number;
  cores: number;
  /** The session that it is in. */
  session?: string;
  /** So many messages that were none it has dropped. */
  dropped?: number;
};

export type Who = { kind: 'who'; run: string; token: number };
export type Hello = { kind: 'hello'; info: NodeInfo };
export type Welcome = {
  kind: 'welcome';
  run: string;
  token: number;
  session: string;
  task: number;
  cancelGraceMs: number;
  /** How long a stop that the node has asked for is provisional at most. */
  unavailableAfterMs: number;
};
export type Refused = { kind: 'refused'; run: string; token: number; phase: string; why: string };
export type Probe = { kind: 'probe'; run: string; token: number; session: string };
/** `session`: the node's own; another's is over. */
export type ProbeAnswer = { session: string | null; token: number };

/** A node that was not let in. */
export type TurnedAway = {
  job: string;
  task?: number;
  host: string;
  pid: number;
  phase: string;
  since: Date;
  cause: string;
  remedy: string;
};

/** What a coordinator tells a doctor. `leftOff`: so many tasks are not in the report. */
export type CoordinatorReport = {
  run: string;
  report: ReadinessReport;
  leftOff: number;
  turnedAway: TurnedAway[];
  /** So many messages that were none it has dropped. */
  dropped: number;
};

export type ToNode =
  /** [...[id, attempt, name, args as bytes, perWorker]] */
  | ['run', ...unknown[]]
  | ['cancel', id: number, reason: Uint8Array, replace: boolean]
  /** What of these is not started comes back. */
  | ['revoke', ...number[]]
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
  | ['lost', id: number, wasStarted: boolean, cause: Uint8Array | null]
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

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
const isText = (value: unknown): value is string => typeof value === 'string';
/** A name of a machine, a version: no longer than such are. */
const isWord = (value: unknown): value is string => isText(value) && value.length <= 256;
const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;
/** An error as bytes (error-record.ts), which can be read. */
const isRecord = (value: unknown): value is Uint8Array =>
  isBytes(value) && attempt(() => decode(value)) !== undefined;
const isMaybe = (is: (value: unknown) => boolean, value: unknown): boolean =>
  value === undefined || is(value);
/** No list of ours is longer. One with holes costs its sender nothing, whatever its length. */
const LONGEST_LIST = 100_000;
const isListOf = (is: (value: unknown) => boolean, value: unknown): value is unknown[] =>
  Array.isArray(value) && value.length <= LONGEST_LIST && Array.from(value).every(is);

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
  revoke: (rest) => rest.every(isCount),
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
  lost: ([id, wasStarted, cause]) =>
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

// ---------------------------------------------------------------- JSON

const isName = (value: unknown): boolean => isText(value) && /^[A-Za-z0-9_-]{1,64}$/.test(value);

/** As of a ClusterSpec. */
const isIndex = (value: unknown): boolean => isCount(value) && value <= 1_000_000;
const MOST_ADDRESSES = 1_000;

function isInfo(value: unknown): value is NodeInfo {
  if (!isObject(value)) return false;
  const { protocol, node, job, task, slots, definition, host, addresses, pid, session } = value;
  const { version, runtime, freeMemory, cores, dropped, spec } = value;
  return (
    isCount(protocol) &&
    isName(node) &&
    (job === 'worker' || job === 'ps') &&
    isMaybe(isIndex, task) &&
    [slots, pid, freeMemory, cores].every(isCount) &&
    [definition, host, version, runtime].every(isWord) &&
    isListOf(isWord, addresses) &&
    addresses.length <= MOST_ADDRESSES &&
    isMaybe(isName, session) &&
    isMaybe(isWord, spec) &&
    isMaybe(isCount, dropped)
  );
}

/** JSON has no Infinity, and writes null. */
const isDuration = (value: unknown): boolean =>
  value === null || (typeof value === 'number' && value >= 0);

type Control = Who | Hello | Welcome | Refused | Probe;

const controls: Record<Control['kind'], (value: Record<string, unknown>) => boolean> = {
  who: ({ run, token }) => isName(run) && isCount(token),
  hello: ({ info }) => isInfo(info),
  welcome: ({ run, token, session, task, cancelGraceMs, unavailableAfterMs }) =>
    isName(run) &&
    isCount(token) &&
    isName(session) &&
    isCount(task) &&
    [cancelGraceMs, unavailableAfterMs].every(isDuration),
  refused: ({ run, token, phase, why }) =>
    isName(run) && isCount(token) && isText(phase) && isText(why),
  probe: ({ run, token, session }) => isName(run) && isCount(token) && isName(session),
};

function parse(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export const json = (value: object): Uint8Array => Buffer.from(JSON.stringify(value));

/** Undefined: it is none of these. */
export function parseControl<K extends Control['kind']>(
  bytes: Uint8Array,
  ...kinds: K[]
): Extract<Control, { kind: K }> | undefined {
  const value = parse(bytes);
  if (value === undefined) return undefined;
  const kind = value['kind'] as K;
  if (!kinds.includes(kind) || !controls[kind](value)) return undefined;
  if (kind === 'welcome') {
    for (const name of ['cancelGraceMs', 'unavailableAfterMs']) {
      value[name] ??= Number.POSITIVE_INFINITY;
    }
  }
  return value as Extract<Control, { kind: K }>;
}

export function parseProbeAnswer(bytes: Uint8Array): ProbeAnswer | undefined {
  const value = parse(bytes);
  if (value === undefined || !isCount(value['token'])) return undefined;
  const { session } = value;
  return session === null || isName(session) ? (value as ProbeAnswer) : undefined;
}

/** Of one's own cluster, as its coordinator told it. */
export function parseReport(bytes: Uint8Array): CoordinatorReport | undefined {
  const value = parse(bytes);
  if (value === undefined) return undefined;
  const { run, report, leftOff, turnedAway, dropped } = value;
  if (!isName(run) || ![leftOff, dropped].every(isCount) || !isObject(report)) return undefined;
  const { ready, engine, tasks } = report;
  const isReport =
    typeof ready === 'boolean' &&
    isObject(engine) &&
    isText(engine['phase']) &&
    isReason(engine) &&
    isListOf((task) => isTask(task) && typeof (task as TaskReadiness).ready === 'boolean', tasks) &&
    isListOf((each) => isTask(each) && isText((each as TurnedAway).cause), turnedAway);
  if (!isReport) return undefined;
  const found = value as unknown as CoordinatorReport;
  for (const each of [...found.report.tasks, ...found.turnedAway])
    each.since = new Date(each.since);
  return found;
}

const isReason = ({ cause, remedy }: Record<string, unknown>): boolean =>
  isMaybe(isText, cause) && isMaybe(isText, remedy);

function isTask(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { job, task, address, host, pid, phase, since } = value;
  return (
    isText(job) &&
    isMaybe(isCount, task) &&
    isMaybe(isText, address) &&
    isMaybe(isText, host) &&
    isMaybe(isCount, pid) &&
    isText(phase) &&
    isText(since) &&
    !Number.isNaN(Date.parse(since)) &&
    isReason(value)
  );
}
