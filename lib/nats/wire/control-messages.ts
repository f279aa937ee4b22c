/**
 * The messages outside sessions: who, hello, welcome, refused, probes, and the report for a
 * doctor. JSON, so that a node with another protocol version can still parse them and be told
 * `version-mismatch`.
 */

import { checkEnginePhase, checkTaskPhase } from '../../errors/phases.ts';
import type { ReadinessReport, TaskReadiness } from '../../errors/readiness-report.ts';
import type { ModuleHooks } from '../../pool/worker/module-options.ts';
import { RETRIES } from '../../pool/worker/protocol.ts';
import {
  cleaned,
  isCount,
  isListOf,
  isMaybe,
  isName,
  isObject,
  isText,
  isUnprintable,
  isWord,
} from './shapes.ts';

/** Nodes with another protocol number are refused. Raise the number with incompatible changes. */
export const PROTOCOL = 6;

/**
 * Tokens begin as milliseconds since 1970. A message whose token is further ahead of a coordinator's
 * than this (50 days, more than clocks of machines differ) is forged, and the coordinator ignores it.
 */
export const FURTHEST_TOKEN: number = 2 ** 32;

const RUNTIMES = ['bun', 'deno', 'node']; // Bun and Deno set process.versions.node, too
const own = RUNTIMES.find((name) => process.versions[name] !== undefined) as string;
/** The runtime of this process: "node 20.20.2". */
export const RUNTIME: string = `${own} ${process.versions[own]}`;

/** What a node says about itself and its machine. */
export type NodeInfo = {
  protocol: number;
  /** The node's name: random, one for each process. */
  node: string;
  job: 'worker' | 'ps';
  /** The task that the node was started with (`--task`). Undefined when any task will do. */
  task?: number;
  /** How many threads the node has. */
  slots: number;
  /** What the node has, for functions that need it (`--resources`). */
  resources?: Record<string, number>;
  /** The fingerprint of the node's module file, or `given:` and its `--definition`. */
  definition: string;
  /** The fingerprint of the ClusterSpec that the node was started with (`--spec`). */
  spec?: string;
  host: string;
  /** The addresses and names by which a ClusterSpec may name the node's machine, besides `host`. */
  addresses: string[];
  pid: number;
  version: string;
  runtime: string;
  /** In bytes. */
  freeMemory: number;
  cores: number;
  /** The session that the node is in. */
  session?: string;
  /** How many malformed messages the node has dropped. */
  dropped?: number;
};

export type Who = { kind: 'who'; run: string; token: number };
/** A coordinator asks another, `of`, whether it holds the cluster; '': any. */
export type Ask = { kind: 'ask'; run: string; of: string };
/** A coordinator says that it holds the cluster; `to`: to the one that has asked. */
export type Alive = {
  kind: 'alive';
  run: string;
  token: number;
  host: string;
  pid: number;
  since: string;
  to?: string;
};
export type Hello = { kind: 'hello'; info: NodeInfo };
/** The node ends. Without it the node might come back, and its session would be kept. */
export type Bye = { kind: 'bye'; node: string; session: string };
export type Welcome = {
  kind: 'welcome';
  run: string;
  token: number;
  session: string;
  task: number;
  cancelGraceMs: number;
  /** How often a data set is made again after the death of the worker that made it. */
  retries: number;
  /** The longest time for which a stop record of the node is provisional. */
  unavailableAfterMs: number;
  /** The fingerprint of the coordinator's module file; an older coordinator sends none. */
  definition?: string;
} & ModuleHooks;
/** `phase`: a RefusalPhase of the coordinator's version, which the node prints unchecked. */
export type Refused = { kind: 'refused'; run: string; token: number; phase: string; why: string };
export type Probe = { kind: 'probe'; run: string; token: number; session: string };
/** `session`: the node's present session. If the probe named another session, that one is over. */
export type ProbeReply = { session: string | null; token: number; vitals?: Vitals };
/** How the node's process and machine do: milliseconds, the load of a minute, bytes. */
export type Vitals = { loopDelayMs?: number; load?: number; freeMemory?: number };

/** A node that got no task. `phase`: a RefusalPhase of the coordinator's version. */
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

/** What waits, runs and fails in a run. */
export type WorkReport = {
  waiting: number;
  oldest?: { name: string; ms: number };
  /** Why no worker can take the oldest call. */
  blocked?: string;
  running: { worker: string; name: string; ms: number }[];
  failures: { name: string; count: number; last: string }[];
};

/** What a coordinator tells a doctor. */
export type CoordinatorReport = {
  run: string;
  report: ReadinessReport;
  /** How many tasks the report leaves out, because of its length. */
  leftOff: number;
  turnedAway: RefusedNode[];
  work?: WorkReport;
  /** How many malformed messages the coordinator has dropped. */
  dropped: number;
};

/** The index of a task: as large as a ClusterSpec permits. */
const isIndex = (value: unknown): boolean => isCount(value) && value <= 1_000_000;
export const MOST_ADDRESSES = 1_000;

const MOST_RESOURCES = 100;

const areResources = (value: unknown): boolean =>
  isObject(value) &&
  Object.keys(value).length <= MOST_RESOURCES &&
  Object.entries(value).every(
    ([name, amount]) => isName(name) && typeof amount === 'number' && amount > 0,
  );

function isInfo(value: unknown): value is NodeInfo {
  if (!isObject(value)) return false;
  const { protocol, node, job, task, slots, definition, host, addresses, pid, session } = value;
  const { version, runtime, freeMemory, cores, dropped, spec, resources } = value;
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
    isMaybe(areResources, resources) &&
    isMaybe(isCount, dropped)
  );
}

/** Whether `value` is a duration: null is Infinity, as JSON writes it. */
const isDuration = (value: unknown): boolean =>
  value === null || (typeof value === 'number' && value >= 0);

function areVitals(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { loopDelayMs, load, freeMemory } = value;
  const isAmount = (amount: unknown): boolean =>
    typeof amount === 'number' && Number.isFinite(amount) && amount >= 0;
  return [loopDelayMs, load, freeMemory].every((each) => isMaybe(isAmount, each));
}

type Control = Who | Ask | Alive | Hello | Bye | Welcome | Refused | Probe;

const controls: Record<Control['kind'], (value: Record<string, unknown>) => boolean> = {
  who: ({ run, token }) => isName(run) && isCount(token),
  ask: ({ run, of }) => isName(run) && (of === '' || isName(of)),
  alive: ({ run, token, host, pid, since, to }) =>
    isName(run) &&
    isCount(token) &&
    isWord(host) &&
    isCount(pid) &&
    isWord(since) &&
    isMaybe(isName, to),
  hello: ({ info }) => isInfo(info),
  bye: ({ node, session }) => isName(node) && isName(session),
  welcome: ({ run, token, session, task, retries, setup, teardown, definition, ...durations }) =>
    isName(run) &&
    isCount(token) &&
    isName(session) &&
    isCount(task) &&
    (retries === null || isMaybe(isCount, retries)) &&
    isMaybe(isWord, definition) &&
    [durations['cancelGraceMs'], durations['unavailableAfterMs']].every(isDuration) &&
    [setup, teardown].every((each) => isMaybe(isText, each)),
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

/** @returns undefined if the message is malformed, or of none of `kinds` */
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
    const { retries = RETRIES } = value; // an older coordinator sends none
    value['retries'] = retries ?? Number.POSITIVE_INFINITY;
  }
  return value as Extract<Control, { kind: K }>;
}

/**
 * Reads a hello that `parseControl` refuses because a word in it is not printable ASCII.
 *
 * @returns the node with each such word cleaned, and their names; undefined if the hello is
 *   malformed in another way
 */
export function parseUnprintable(
  bytes: Uint8Array,
): { info: NodeInfo; names: string[] } | undefined {
  const given = parse(bytes)?.['info'];
  if (!isObject(given)) return undefined;
  const info = { ...given };
  const names: string[] = [];
  for (const name of ['host', 'version', 'runtime', 'definition', 'spec']) {
    const value = info[name];
    if (!isUnprintable(value)) continue;
    names.push(name);
    info[name] = cleaned(value);
  }
  const { addresses } = info;
  if (isListOf(isText, addresses) && addresses.some(isUnprintable)) {
    names.push('addresses');
    info['addresses'] = addresses.map((each) => (isUnprintable(each) ? cleaned(each) : each));
  }
  return names.length > 0 && isInfo(info) ? { info, names } : undefined;
}

/** @returns undefined if it is malformed */
export function parseProbeReply(bytes: Uint8Array): ProbeReply | undefined {
  const value = parse(bytes);
  if (value === undefined || !isCount(value['token'])) return undefined;
  const { session, vitals } = value;
  const isReply = (session === null || isName(session)) && isMaybe(areVitals, vitals);
  return isReply ? (value as ProbeReply) : undefined;
}

/**
 * Reads the report of a coordinator, which may be of another version: phases that this version
 * does not know become 'unknown'.
 *
 * @returns undefined if it is malformed
 */
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
    isListOf((each) => isTask(each) && isText((each as RefusedNode).cause), turnedAway) &&
    isMaybe(isWork, value['work']);
  if (!isReport) return undefined;
  const found = value as unknown as CoordinatorReport;
  checkEnginePhase(found.report.engine);
  for (const task of found.report.tasks) checkTaskPhase(task);
  for (const each of [...found.report.tasks, ...found.turnedAway]) {
    each.since = new Date(each.since);
  }
  return found;
}

const isHealth = (value: unknown): boolean =>
  areVitals(value) && typeof (value as Record<string, unknown>)['roundTripMs'] === 'number';

const isMs = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);

function isWork(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { waiting, oldest, blocked, running, failures } = value;
  const hasTexts = (each: unknown, ...names: string[]): each is Record<string, unknown> =>
    isObject(each) && names.every((name) => isText(each[name]));
  return (
    isCount(waiting) &&
    isMaybe((each) => hasTexts(each, 'name') && isMs(each['ms']), oldest) &&
    isMaybe(isText, blocked) &&
    isListOf((each) => hasTexts(each, 'worker', 'name') && isMs(each['ms']), running) &&
    isListOf((each) => hasTexts(each, 'name', 'last') && isCount(each['count']), failures)
  );
}

const isReason = ({ cause, remedy }: Record<string, unknown>): boolean =>
  isMaybe(isText, cause) && isMaybe(isText, remedy);

function isTask(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { job, task, address, host, pid, phase, since, health } = value;
  return (
    isMaybe(isHealth, health) &&
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
