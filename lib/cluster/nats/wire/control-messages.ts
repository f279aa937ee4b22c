/**
 * What a session is made of (who, hello, welcome, probes) and what a doctor is told: JSON,
 * since nodes of another version are to understand that they do not understand.
 */

import type { ReadinessReport, TaskReadiness } from '../../../errors/readiness-report.ts';
import { isCount, isListOf, isMaybe, isName, isObject, isText, isWord } from './shapes.ts';

/** Nodes of another number cannot work together. */
export const PROTOCOL = 2;

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
export type ProbeReply = { session: string | null; token: number };

/** A node that was not let in. */
export type RefusedNode = {
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
  turnedAway: RefusedNode[];
  /** So many messages that were none it has dropped. */
  dropped: number;
};

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

export function parseProbeReply(bytes: Uint8Array): ProbeReply | undefined {
  const value = parse(bytes);
  if (value === undefined || !isCount(value['token'])) return undefined;
  const { session } = value;
  return session === null || isName(session) ? (value as ProbeReply) : undefined;
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
    isListOf((each) => isTask(each) && isText((each as RefusedNode).cause), turnedAway);
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
