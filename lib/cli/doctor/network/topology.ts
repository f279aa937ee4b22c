/**
 * The checks of a cluster: the coordinator that holds it, that coordinator's report, and the nodes
 * that reply.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { fieldOf } from '../../../base/thrown-value.ts';
import { counted } from '../../../coordinator/words.ts';
import {
  type EnginePhase,
  importing,
  type ReadinessReport,
  type TaskPhase,
  type TaskReadiness,
} from '../../../errors/phases.ts';
import { explainFailure } from '../../../nats/connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../../../nats/connection/connection-options.ts';
import { holderOf, type Run } from '../../../nats/coordinator/fence.ts';
import { figuresOf } from '../../../nats/coordinator/tasks.ts';
import {
  type CoordinatorReport,
  json,
  type NodeInfo,
  parseControl,
  parseReport,
  parseUnprintable,
  type RefusedNode,
  type WorkReport,
} from '../../../nats/wire/control-messages.ts';
import { Subjects } from '../../../nats/wire/subjects.ts';
import { type Check, problem } from '../check.ts';

const HOLDER_MS = 1_500;
/** The phases of a coordinator that has never held the cluster. */
const NEW: readonly EnginePhase[] = ['connecting', 'jetstream', 'standby'];

export type Topology = {
  checks: Check[];
  report?: ReadinessReport;
  work?: WorkReport | undefined;
};

export async function topologyOf(
  nats: NatsConnection,
  cluster: string,
  options: NatsConnectionOptions,
): Promise<Topology> {
  let holder: Run | undefined;
  let replies: Replies;
  const refusals = new Refusals(nats);
  try {
    holder = await refusals.rule(holderOf(nats, cluster, options, HOLDER_MS));
    replies = await refusals.rule(askAll(nats, new Subjects(cluster), holder));
  } catch (error) {
    const { cause, remedy } = explainFailure(error);
    return { checks: [problem({ name: 'coordinator', target: cluster }, cause, remedy)] };
  }
  const { reports, nodes } = replies;
  const told = toldBy(holder, reports);
  const others = reports.filter((each) => each !== told).map(({ report }) => report.engine.phase);
  const coordinator = coordinatorCheck(cluster, holder, told, others);
  if (told === undefined) {
    if (holder !== undefined && nodes.length === 0) {
      coordinator.detail = `${coordinator.detail}; no worker of this cluster is connected`;
    }
    return { checks: [coordinator, ...nodes.map((node) => nodeCheck(node, undefined))] };
  }
  const { report, turnedAway, work } = told;
  const living = reports.filter(({ report: { engine } }) => engine.phase === 'ready').length;
  const checks = [
    coordinator,
    ...(living < 2 ? [] : [rivalsCheck(cluster, living)]),
    ...workChecks(work),
    ...report.tasks.map((task) => taskCheck(task, nodes, told.stop !== undefined)),
  ];
  for (const node of nodes) {
    const refused = turnedAway.find((each) => isSame(each, node));
    // The task that a node was refused for shows the refusal, until another node is refused for it.
    const isItsTask = (task: TaskReadiness): boolean =>
      refused === undefined ? node.session !== undefined : task.phase === refused.phase;
    const isKnown = report.tasks.some((task) => isSame(task, node) && isItsTask(task));
    if (!isKnown) checks.push(nodeCheck(node, refused));
  }
  return { checks, report, work };
}

const rivalsCheck = (cluster: string, living: number): Check =>
  problem(
    { name: 'coordinators', target: cluster },
    `${living} coordinators of this name live, and each holds the cluster: they use different JetStreams, or one has not learnt yet that it was taken over`,
    'end all but one, or give each cluster its own name',
  );

/** What waits, runs and fails. A line behind busy workers, and failures, are no problem of the cluster. */
function workChecks(work: WorkReport | undefined): Check[] {
  if (work === undefined) return [];
  const { waiting, oldest, blocked, running, failures } = work;
  const secondsOf = (ms: number): string => `${Math.max(0, ms / 1_000).toFixed(1)} s`;
  const line =
    oldest === undefined
      ? 'no call waits'
      : `${waiting} ${waiting === 1 ? 'call waits' : 'calls wait'}, '${oldest.name}' for ${secondsOf(oldest.ms)}`;
  const runs = running.map(({ worker, name, ms }) => `${name} on ${worker} for ${secondsOf(ms)}`);
  const what = runs.length === 0 ? '' : `; running: ${runs.slice(0, 10).join(', ')}`;
  const check = { name: 'calls', detail: `${line}${what}` };
  const remedy = 'start a worker that can take these calls, or see why those below are not ready';
  const isBlocked = blocked !== undefined;
  const calls = isBlocked ? problem(check, `${line}: ${blocked}`, remedy) : { ...check, ok: true };
  const failed = failures.map(({ name, count, last }) => {
    const detail = `${count} in the last minutes. The last: ${last}`;
    return { name: 'failures', target: name, ok: true, detail };
  });
  return [calls, ...failed];
}

/** How long ago `since` was, for people. Never negative, although clocks of machines may differ. */
function ago(since: Date): string {
  const seconds = Math.max(0, Math.round((Date.now() - since.getTime()) / 1_000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}

function coordinatorCheck(
  cluster: string,
  holder: Run | undefined,
  told: CoordinatorReport | undefined,
  phases: readonly EnginePhase[],
): Check {
  const check = { name: 'coordinator', target: cluster };
  if (holder === undefined && told === undefined) {
    const cause = `no coordinator has ever held the cluster '${cluster}'`;
    const remedy = 'start the program that has the ClusterCoordinator, or correct --cluster';
    return problem(check, cause, remedy);
  }
  const who =
    holder === undefined
      ? 'a coordinator that does not hold the cluster yet'
      : `${holder.host} (pid ${holder.pid}), started ${ago(new Date(holder.since))} ago`;
  if (told === undefined && holder?.ended !== undefined) {
    const ended = `its program closed it ${ago(new Date(holder.ended))} ago`;
    return { ...check, ok: true, detail: `${who}: ${ended}; no other has begun since` };
  }
  if (told === undefined) {
    return problem(
      { ...check, detail: who },
      `the coordinator, on ${who}, does not answer: its process has ended without close(), hangs, or has no connection`,
      'start the program; if it runs, check that process and its connection to the servers',
    );
  }
  const { phase, cause, remedy } = told.report.engine;
  const standBys = phases.filter((each) => each === 'standby').length;
  const older = phases.filter((each) => !NEW.includes(each)).length;
  // Of the workers, each has a line of its own.
  let detail = `${who}: ${phase === 'ready' ? 'holds the cluster' : phase}`;
  if (told.stop !== undefined) {
    const at = new Date(Date.now() - told.stop.ms);
    detail += `; stopped ${ago(at)} ago, since ${told.stop.why}`;
  }
  if (told.leftOff > 0) detail += `; ${told.leftOff} more tasks`;
  if (older > 0) {
    detail += `; ${counted(older, 'older coordinator')}, from which it took over, still ${older === 1 ? 'runs' : 'run'}`;
  }
  if (standBys > 0) detail += `; ${standBys} more ${standBys === 1 ? 'stands' : 'stand'} by`;
  detail += malformed(told.dropped);
  if (phase === 'ready') return { ...check, ok: true, detail };
  const why = cause === undefined ? phase : `${phase}: ${cause}`;
  const where = holder === undefined ? '' : `, on ${who},`;
  const whole = `the coordinator${where} is not ready: ${why}`;
  return problem({ ...check, detail }, whole, remedy ?? 'see the output of that process');
}

/**
 * The number of malformed messages is shown beside a check, but is not counted as a problem:
 * malformed messages do not keep a cluster from starting.
 */
const malformed = (dropped = 0): string =>
  dropped === 0 ? '' : `; ${dropped} malformed messages dropped`;

/** `isOver`: the run was stopped, and needs no worker any more. */
function taskCheck(task: TaskReadiness, nodes: NodeInfo[], isOver: boolean): Check {
  const { job, task: index, address, host, pid, phase, since, ready, cause, remedy, health } = task;
  const where = host === undefined ? address : `${host} (pid ${pid})`;
  const state = `${phase} for ${ago(since)}`;
  const check = {
    name: 'task',
    target: `${job}:${index}`,
    detail: where === undefined ? state : `${where}, ${state}`,
  };
  const there = nodes.find((node) => isSame(task, node));
  if (there !== undefined) check.detail += `; ${machineOf(there)}`;
  if (health !== undefined) check.detail += `; ${figuresOf(health)}`;
  if (ready && cause !== undefined) check.detail += `; ${cause}. What to do: ${remedy}`;
  check.detail += malformed(there?.dropped);
  if (phase === 'left' || isOver) return { ...check, ok: true };
  if (there !== undefined && (ready || phase === 'leaving')) return { ...check, ok: true };
  if (ready || (there === undefined && isExpected(task))) {
    return problem(
      check,
      `${where} is in the coordinator's report (${state}), but does not answer: it was killed or crashed, hangs, is stopped (SIGSTOP), or has no connection`,
      'check that process; if need be, end it and start the worker again',
    );
  }
  const why = phase === 'starting' && cause === undefined ? importing : { cause, remedy };
  return problem(
    check,
    why.cause === undefined ? state : `${state}: ${why.cause}`,
    why.remedy ?? 'wait; if the phase does not change, see the output of that worker',
  );
}

/** The machine of a node, in a few words. */
function machineOf({ cores, freeMemory, slots, runtime, version }: NodeInfo): string {
  const free = (freeMemory / 1024 ** 3).toFixed(1);
  return `cores ${cores}, ${free} GB free, slots ${slots}, ${runtime}, allstop ${version}`;
}

/** `refused`: why the coordinator refuses the node; undefined if it does not. */
function nodeCheck(node: NodeInfo, refused: RefusedNode | undefined): Check {
  const { job, task, host, pid } = node;
  const check = { name: 'node', target: `${host} (pid ${pid})` };
  const what = task === undefined ? `any ${job}` : `${job}:${task}`;
  if (refused === undefined) {
    // The session of a coordinator that does not answer, or that a newer one has superseded.
    const has = node.session === undefined ? 'has no task yet' : 'still has its session';
    return { ...check, ok: true, detail: `${what}, ${has}; ${machineOf(node)}` };
  }
  const { phase, since, cause, remedy } = refused;
  const state = `refused for ${ago(since)}: ${phase}`;
  const detail = `${what}, ${state}; ${machineOf(node)}`;
  return problem({ ...check, detail }, `${state}: ${cause}`, remedy);
}

// Asks the coordinators and the nodes of a cluster, and collects their replies. The questions change
// nothing in the cluster.

/** The longest wait for replies. */
const REPLY_MS = 4_000;
/** The longest wait for another reply, once all that are expected have replied. */
const NEXT_REPLY_MS = 400;

/** The phases of a worker that is not expected to reply. */
const GONE: readonly TaskPhase[] = ['lost', 'left', 'failed', 'import-failed', 'closed'];

/** Whether a worker in that phase should reply. */
const isExpected = ({ host, phase }: TaskReadiness): boolean =>
  host !== undefined && !GONE.includes(phase);

/** Whether both are the same process. */
const isSame = (one: { host?: string; pid?: number }, { host, pid }: NodeInfo): boolean =>
  one.host === host && one.pid === pid;

/** What the coordinators and the nodes of a cluster have replied. */
type Replies = { reports: CoordinatorReport[]; nodes: NodeInfo[] };

/**
 * The report of the coordinator that holds the cluster. While none holds it, one that waits for
 * JetStream may still send a report.
 */
const toldBy = (holder: Run | undefined, reports: CoordinatorReport[]) =>
  holder === undefined ? reports[0] : reports.find(({ run }) => run === holder.run);

/**
 * Asks the coordinators for their reports and the nodes for what they are. Ends when all that are
 * expected have replied and NEXT_REPLY_MS have passed without another reply, or after REPLY_MS: a
 * coordinator or a node on a busy machine may reply later than strangers do.
 *
 * @param holder the run that holds the cluster
 */
async function askAll(
  nats: NatsConnection,
  subjects: Subjects,
  holder: Run | undefined,
): Promise<Replies> {
  const replies: Replies = { reports: [], nodes: [] };
  const { reports, nodes } = replies;
  /** Of which the wait is over, or to which nobody listens. */
  const answered = new Set<keyof Replies>();
  let end = (): void => undefined;
  const over = new Promise<undefined>((resolve) => {
    end = () => resolve(undefined);
  });
  /** Whether that coordinator has replied, and each node that its report expects to be alive. */
  const areAllThere = (): boolean => {
    const told = toldBy(holder, reports);
    const isNoneExpected = holder === undefined || holder.ended !== undefined;
    const isTold = told !== undefined || isNoneExpected || answered.has('reports');
    if (!isTold || answered.has('nodes')) return isTold;
    const expected = told?.report.tasks.filter(isExpected) ?? [];
    return expected.every((task) => nodes.some((node) => isSame(task, node)));
  };
  let quiet: NodeJS.Timeout | undefined;
  const onChange = (): void => {
    clearTimeout(quiet);
    if (areAllThere()) quiet = setTimeout(end, NEXT_REPLY_MS);
  };
  const collect = async (
    kind: keyof Replies,
    subject: string,
    question: Uint8Array,
    read: (data: Uint8Array) => void,
  ): Promise<void> => {
    await ask(nats, subject, question, over, (data) => {
      read(data);
      onChange();
    });
    answered.add(kind);
    onChange();
  };
  // Token 0 is older than the token of any run, so no coordinator yields to this message.
  const who = json({ kind: 'who', run: 'doctor', token: 0 });
  try {
    await Promise.all([
      collect('reports', subjects.report, json({}), (data) => {
        const report = parseReport(data);
        if (report !== undefined) reports.push(report);
      }),
      collect('nodes', subjects.who, who, (data) => {
        const node = (parseControl(data, 'hello') ?? parseUnprintable(data))?.info;
        if (node !== undefined) nodes.push(node);
      }),
    ]);
    return replies;
  } finally {
    clearTimeout(quiet);
  }
}

/**
 * Sends a request to all listeners of the subject, and calls `onReply` for each reply, until `over`
 * resolves, for REPLY_MS at most.
 */
async function ask(
  nats: NatsConnection,
  subject: string,
  payload: Uint8Array,
  over: Promise<undefined>,
  onReply: (data: Uint8Array) => void,
): Promise<void> {
  try {
    const options = { strategy: 'timer', maxWait: REPLY_MS } as const;
    const replies = await nats.requestMany(subject, payload, options);
    const iterator = replies[Symbol.asyncIterator]();
    for (;;) {
      const next = await Promise.race([iterator.next(), over]);
      if (next === undefined || next.done === true) return; // close() of `nats` ends the request
      onReply(next.value.data);
    }
  } catch (error) {
    if (!isNoReply(error)) throw error;
  }
}

const isNoReply = (error: unknown): boolean =>
  [error, fieldOf(error, 'cause')].some((each) =>
    ['NoResponders', 'TimeoutError'].includes(String(fieldOf(each, 'name'))),
  );

/**
 * Collects the permission errors of a NATS connection. The server reports them as status events of
 * the connection; the request itself then only times out.
 */
export class Refusals {
  /** The first permission error. */
  first: Error | undefined;

  constructor(nats: NatsConnection) {
    void this.#watch(nats);
  }

  /** Resolves to the result of `work`. @throws (rejects) the permission error, if there was one */
  async rule<T>(work: Promise<T>): Promise<T> {
    try {
      const found = await work;
      if (this.first === undefined) return found;
    } catch (error) {
      throw this.first ?? error;
    }
    throw this.first;
  }

  async #watch(nats: NatsConnection): Promise<void> {
    for await (const status of nats.status()) {
      if (status.type === 'error') this.first ??= status.error;
    }
  }
}
