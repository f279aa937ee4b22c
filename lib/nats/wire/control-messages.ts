/**
 * The messages outside sessions: who, hello, welcome, refused, probes, and the report for a
 * doctor. JSON, so that a node with another protocol version can still parse them and be told
 * `version-mismatch`.
 */

import { createHash } from 'node:crypto';
import { attempt } from '../../base/thrown-value.ts';
import type { ClusterSpec } from '../../cluster/cluster-spec.ts';
import {
  checkEnginePhase,
  checkTaskPhase,
  type EnginePhase,
  type EngineReadiness,
  type NodeHealth,
  type ReadinessReport,
  type TaskPhase,
  type TaskReadiness,
} from '../../errors/phases.ts';
import type { ModuleHooks } from '../../pool/worker/module.ts';
import {
  cleaned,
  type Guard,
  isBoolean,
  isCount,
  isEither,
  isListOf,
  isMaybe,
  isMessage,
  isName,
  isNull,
  isNumber,
  isObject,
  isOneOf,
  isRecord,
  isText,
  isUnprintable,
  isWord,
  type Layout,
} from './shapes.ts';

/** Nodes with another protocol number are refused. Raise the number with incompatible changes. */
export const PROTOCOL = 7;

/**
 * Tokens begin as milliseconds since 1970. A message whose token is further ahead of a coordinator's
 * than this (50 days, more than clocks of machines differ) is forged, and the coordinator ignores it.
 */
export const FURTHEST_TOKEN: number = 2 ** 32;

/** The SHA-256 of a ClusterSpec: equal ones have equal ones, in whatever order their tasks were given. */
export function specFingerprint(spec: ClusterSpec): string {
  return createHash('sha256').update(JSON.stringify(spec)).digest('hex');
}

const RUNTIMES = ['bun', 'deno', 'node']; // Bun and Deno set process.versions.node, too
const own = RUNTIMES.find((name) => process.versions[name] !== undefined) ?? 'node';
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

/** What a run says of itself, and its token. */
export type RunInfo = { run: string; token: number; host: string; pid: number; since: string };
export type Who = { kind: 'who'; run: string; token: number };
/** A coordinator asks another, `of`, whether it holds the cluster; '': any. */
export type Ask = { kind: 'ask'; run: string; of: string };
/** A coordinator says that it holds the cluster; `to`: to the one that has asked. */
export type Alive = RunInfo & { kind: 'alive'; to?: string };
export type Hello = { kind: 'hello'; info: NodeInfo };
/** The node ends. Without it the node might come back, and its session would be kept. */
export type Bye = { kind: 'bye'; node: string; session: string };
export type Welcome = {
  kind: 'welcome';
  run: string;
  token: number;
  session: string;
  task: number;
  cancelGraceMs: Amount;
  /** How often a data set is made again after the death of the worker that made it. */
  retries: Amount;
  /** The longest time for which a stop record of the node is provisional. */
  unavailableAfterMs: Amount;
  /** The fingerprint of the coordinator's module file. */
  definition: string;
} & ModuleHooks;
/** JSON writes Infinity as null. */
type Amount = number | null;
export const amountOf = (amount: Amount): number => amount ?? Number.POSITIVE_INFINITY;

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

type Aged = { name: string; ms: number };

/** What waits, runs and fails in a run. */
export type WorkReport = {
  waiting: number;
  oldest?: Aged;
  /** Which call no worker can take, if it is not the oldest, and why. */
  blocked?: string;
  running: (Aged & { worker: string })[];
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
  /** How long ago the run was stopped, and by whom: it runs nothing any more. */
  stop?: { ms: number; why: string };
  /** How many malformed messages the coordinator has dropped. */
  dropped: number;
};

/** The index of a task: as large as a ClusterSpec permits. */
const isIndex = (value: unknown): value is number => isCount(value) && value <= 1_000_000;
export const MOST_ADDRESSES = 1_000;

export const MOST_RESOURCES = 100;

const areResources = (value: unknown): value is Record<string, number> =>
  isObject(value) &&
  Object.keys(value).length <= MOST_RESOURCES &&
  Object.entries(value).every(([name, amount]) => isName(name) && isNumber(amount) && amount > 0);

const isJob: Guard<'worker' | 'ps'> = isOneOf('worker', 'ps');

const isInfo: Guard<NodeInfo> = isRecord<NodeInfo>({
  protocol: isCount,
  node: isName,
  job: isJob,
  task: isMaybe(isIndex),
  slots: isCount,
  resources: isMaybe(areResources),
  definition: isWord,
  spec: isMaybe(isWord),
  host: isWord,
  addresses: isListOf(isWord, MOST_ADDRESSES),
  pid: isCount,
  version: isWord,
  runtime: isWord,
  freeMemory: isCount,
  cores: isCount,
  session: isMaybe(isName),
  dropped: isMaybe(isCount),
});

const isPositive = (value: unknown): value is number => isNumber(value) && value >= 0;
const isAmount: Guard<Amount> = isEither(isNull, isPositive);

const VITALS = {
  loopDelayMs: isMaybe(isPositive),
  load: isMaybe(isPositive),
  freeMemory: isMaybe(isPositive),
};

/** The layout of a RunInfo. */
export const RUN: Layout<RunInfo> = {
  run: isName,
  token: isCount,
  host: isWord,
  pid: isCount,
  since: isWord,
};

type Control = Who | Ask | Alive | Hello | Bye | Welcome | Refused | Probe;

const isControl = isMessage<Control>({
  who: { run: isName, token: isCount },
  ask: { run: isName, of: (of): of is string => of === '' || isName(of) },
  alive: { ...RUN, to: isMaybe(isName) },
  hello: { info: isInfo },
  bye: { node: isName, session: isName },
  welcome: {
    run: isName,
    token: isCount,
    session: isName,
    task: isCount,
    cancelGraceMs: isAmount,
    retries: isAmount,
    unavailableAfterMs: isAmount,
    definition: isWord,
    setup: isMaybe(isText),
    teardown: isMaybe(isText),
  },
  refused: { run: isName, token: isCount, phase: isText, why: isText },
  probe: { run: isName, token: isCount, session: isName },
});

const parse = (bytes: Uint8Array): unknown =>
  attempt<unknown>(() => JSON.parse(Buffer.from(bytes).toString('utf8')));

export const json = (value: object): Uint8Array => Buffer.from(JSON.stringify(value));

/** @returns undefined if the message is malformed, or of none of `kinds` */
export function parseControl<K extends Control['kind']>(
  bytes: Uint8Array,
  ...kinds: K[]
): Extract<Control, { kind: K }> | undefined {
  const value = parse(bytes);
  const isWanted = (control: Control): control is Extract<Control, { kind: K }> =>
    isOneOf(...kinds)(control.kind);
  return isControl(value) && isWanted(value) ? value : undefined;
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
  const hello = parse(bytes);
  const given = isObject(hello) ? hello['info'] : undefined;
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
  if (isListOf(isText)(addresses) && addresses.some(isUnprintable)) {
    names.push('addresses');
    info['addresses'] = addresses.map((each) => (isUnprintable(each) ? cleaned(each) : each));
  }
  return names.length > 0 && isInfo(info) ? { info, names } : undefined;
}

const isReply: Guard<ProbeReply> = isRecord<ProbeReply>({
  session: isEither(isNull, isName),
  token: isCount,
  vitals: isMaybe(isRecord<Vitals>(VITALS)),
});

/** @returns undefined if it is malformed */
export function parseProbeReply(bytes: Uint8Array): ProbeReply | undefined {
  const value = parse(bytes);
  return isReply(value) ? value : undefined;
}

/** A Date, which is text in JSON; `parseReport` makes a Date of it. */
const isDate = (value: unknown): value is Date => isText(value) && !Number.isNaN(Date.parse(value));

const PLACE = {
  job: isText,
  task: isMaybe(isCount),
  since: isDate,
};

const isTask: Guard<TaskReadiness> = isRecord<TaskReadiness>({
  ...PLACE,
  task: isCount,
  address: isMaybe(isText),
  host: isMaybe(isText),
  pid: isMaybe(isCount),
  ready: isBoolean,
  // `parseReport` makes 'unknown' of what is no phase.
  phase: (phase): phase is TaskPhase => isText(phase),
  cause: isMaybe(isText),
  remedy: isMaybe(isText),
  health: isMaybe(isRecord<NodeHealth>({ ...VITALS, roundTripMs: isNumber })),
});

const AGED = { name: isText, ms: isNumber };

const isWork: Guard<WorkReport> = isRecord<WorkReport>({
  waiting: isCount,
  oldest: isMaybe(isRecord<Aged>(AGED)),
  blocked: isMaybe(isText),
  running: isListOf(isRecord<Aged & { worker: string }>({ ...AGED, worker: isText })),
  failures: isListOf(
    isRecord<WorkReport['failures'][number]>({ name: isText, count: isCount, last: isText }),
  ),
});

const isReport: Guard<CoordinatorReport> = isRecord<CoordinatorReport>({
  run: isName,
  report: isRecord<ReadinessReport>({
    ready: isBoolean,
    engine: isRecord<EngineReadiness>({
      phase: (phase): phase is EnginePhase => isText(phase),
      cause: isMaybe(isText),
      remedy: isMaybe(isText),
    }),
    tasks: isListOf(isTask),
  }),
  leftOff: isCount,
  turnedAway: isListOf(
    isRecord<RefusedNode>({
      ...PLACE,
      host: isText,
      pid: isCount,
      phase: isText,
      cause: isText,
      remedy: isText,
    }),
  ),
  work: isMaybe(isWork),
  stop: isMaybe(isRecord<{ ms: number; why: string }>({ ms: isNumber, why: isText })),
  dropped: isCount,
});

/**
 * Reads the report of a coordinator, which may be of another version: phases that this version
 * does not know become 'unknown'.
 *
 * @returns undefined if it is malformed
 */
export function parseReport(bytes: Uint8Array): CoordinatorReport | undefined {
  const found = parse(bytes);
  if (!isReport(found)) return undefined;
  checkEnginePhase(found.report.engine);
  for (const task of found.report.tasks) checkTaskPhase(task);
  for (const each of [...found.report.tasks, ...found.turnedAway]) {
    each.since = new Date(each.since);
  }
  return found;
}
