/**
 * The checks of a cluster: the coordinator that holds it, that coordinator's report, and the nodes
 * that reply.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { fieldOf } from '../../../base/thrown-value.ts';
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
import type { Check } from '../check.ts';
import { Refusals } from './ladder.ts';

const HOLDER_MS = 1_500;
/** The phases of a coordinator that has never held the cluster. */
const NEW: readonly EnginePhase[] = ['connecting', 'jetstream', 'standby'];

export type Topology = { checks: Check[]; report?: ReadinessReport; work?: WorkReport };

export async function topologyOf(
  nats: NatsConnection,
  cluster: string,
  options: NatsConnectionOptions,
): Promise<Topology> {
  const subjects = new Subjects(cluster);
  let holder: Run | undefined;
  let replies: Replies;
  const refusals = new Refusals(nats);
  try {
    holder = await refusals.rule(holderOf(nats, cluster, options, HOLDER_MS));
    replies = await refusals.rule(askAll(nats, subjects, holder));
  } catch (error) {
    const why = explainFailure(error);
    return { checks: [{ name: 'coordinator', ok: false, target: cluster, ...why }] };
  }
  const { told, reports, nodes } = replies;
  const others = reports.filter((each) => each !== told).map(({ report }) => report.engine.phase);
  const coordinator = coordinatorCheck(cluster, holder, told, others);
  if (told === undefined) {
    if (holder !== undefined && nodes.length === 0) {
      coordinator.detail = `${coordinator.detail}; no worker of this cluster is connected`;
    }
    return { checks: [coordinator, ...nodes.map((node) => nodeCheck(node, undefined))] };
  }
  const { report, turnedAway, work } = told;
  const living = reports.filter(({ report: { engine } }) => engine.phase === 'ready');
  const checks = [
    coordinator,
    ...twoChecks(cluster, living.length),
    ...workChecks(work),
    ...report.tasks.map((task) => taskCheck(task, nodes, told.stop !== undefined)),
  ];
  const isPlaced = (node: NodeInfo): boolean =>
    report.tasks.some((task) => isSame(task, node) && node.session !== undefined);
  // The task that a node was refused for shows the refusal, until another node is refused for it.
  const isShown = ({ phase }: RefusedNode, node: NodeInfo): boolean =>
    report.tasks.some((task) => isSame(task, node) && task.phase === phase);
  for (const node of nodes) {
    const refused = turnedAway.find((each) => isSame(each, node));
    const isKnown = refused === undefined ? isPlaced(node) : isShown(refused, node);
    if (!isKnown) checks.push(nodeCheck(node, refused));
  }
  return { checks, report, ...(work !== undefined && { work }) };
}

function twoChecks(cluster: string, living: number): Check[] {
  if (living < 2) return [];
  return [
    {
      name: 'coordinators',
      target: cluster,
      ok: false,
      cause: `${living} coordinators of this name live, and each holds the cluster: they use different JetStreams, or one has not learnt yet that it was taken over`,
      remedy: 'end all but one, or give each cluster its own name',
    },
  ];
}

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
  const calls: Check =
    blocked === undefined
      ? { ...check, ok: true }
      : {
          ...check,
          ok: false,
          cause: `${line}: ${blocked}`,
          remedy: 'start a worker that can take these calls, or see why those below are not ready',
        };
  const failed = failures.map(
    ({ name, count, last }): Check => ({
      name: 'failures',
      target: name,
      ok: true,
      detail: `${count} in the last minutes. The last: ${last}`,
    }),
  );
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
    return {
      ...check,
      ok: false,
      cause: `no coordinator has ever held the cluster '${cluster}'`,
      remedy: 'start the program that has the ClusterCoordinator, or correct --cluster',
    };
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
    return {
      ...check,
      ok: false,
      detail: who,
      cause: `the coordinator, on ${who}, does not answer: its process has ended without close(), hangs, or has no connection`,
      remedy: 'start the program; if it runs, check that process and its connection to the servers',
    };
  }
  const { phase, cause, remedy } = told.report.engine;
  const standBys = phases.filter((each) => each === 'standby').length;
  const older = phases.filter((each) => !NEW.includes(each)).length;
  const others = [
    ...(older === 0
      ? []
      : [
          `; ${older} older ${older === 1 ? 'coordinator, from which it took over, still runs' : 'coordinators, from which it took over, still run'}`,
        ]),
    ...(standBys === 0 ? [] : [`; ${standBys} more ${standBys === 1 ? 'stands' : 'stand'} by`]),
  ].join('');
  const leftOff = told.leftOff === 0 ? '' : `; ${told.leftOff} more tasks`;
  // Of the workers, each has a line of its own.
  const state = phase === 'ready' ? 'holds the cluster' : phase;
  const stopped =
    told.stop === undefined
      ? ''
      : `; stopped ${ago(new Date(Date.now() - told.stop.ms))} ago, since ${told.stop.why}`;
  const detail = `${who}: ${state}${stopped}${leftOff}${others}${malformed(told.dropped)}`;
  if (phase === 'ready') return { ...check, ok: true, detail };
  const why = cause === undefined ? phase : `${phase}: ${cause}`;
  const where = holder === undefined ? '' : `, on ${who},`;
  return {
    ...check,
    ok: false,
    detail,
    cause: `the coordinator${where} is not ready: ${why}`,
    remedy: remedy ?? 'see the output of that process',
  };
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
  const isThere = there !== undefined;
  if (there !== undefined) check.detail += `; ${machineOf(there)}`;
  if (health !== undefined) check.detail += `; ${figuresOf(health)}`;
  if (ready && cause !== undefined) check.detail += `; ${cause}. What to do: ${remedy}`;
  check.detail += malformed(there?.dropped);
  if (phase === 'left' || isOver) return { ...check, ok: true };
  if (isThere && (ready || phase === 'leaving')) return { ...check, ok: true };
  if (ready || (!isThere && isExpected(task))) {
    return {
      ...check,
      ok: false,
      cause: `${where} is in the coordinator's report (${state}), but does not answer: it was killed or crashed, hangs, is stopped (SIGSTOP), or has no connection`,
      remedy: 'check that process; if need be, end it and start the worker again',
    };
  }
  const why = phase === 'starting' && cause === undefined ? importing : { cause, remedy };
  return {
    ...check,
    ok: false,
    cause: `${state}${why.cause === undefined ? '' : `: ${why.cause}`}`,
    remedy: why.remedy ?? 'wait; if the phase does not change, see the output of that worker',
  };
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
  const machine = machineOf(node);
  const what = task === undefined ? `any ${job}` : `${job}:${task}`;
  if (refused === undefined) {
    // The session of a coordinator that does not answer, or that a newer one has superseded.
    const has = node.session === undefined ? 'has no task yet' : 'still has its session';
    return { ...check, ok: true, detail: `${what}, ${has}; ${machine}` };
  }
  const { phase, since, cause, remedy } = refused;
  const state = `refused for ${ago(since)}: ${phase}`;
  const detail = `${what}, ${state}; ${machine}`;
  return { ...check, ok: false, detail, cause: `${state}: ${cause}`, remedy };
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

/** What the coordinators and the nodes of a cluster have replied so far. */
class Replies {
  readonly reports: CoordinatorReport[] = [];
  readonly nodes: NodeInfo[] = [];
  /** The wait for reports is over, or no coordinator listens. */
  areReportsOver = false;
  /** The wait for nodes is over, or no node listens. */
  areNodesOver = false;
  readonly #holder: Run | undefined;

  constructor(holder: Run | undefined) {
    this.#holder = holder;
  }

  /**
   * The report of the coordinator that holds the cluster. While none holds it, one that waits for
   * JetStream may still send a report.
   */
  get told(): CoordinatorReport | undefined {
    if (this.#holder === undefined) return this.reports[0];
    return this.reports.find(({ run }) => run === this.#holder?.run);
  }

  /** Whether that coordinator has replied, and each node that its report expects to be alive. */
  get areAllThere(): boolean {
    const { told } = this;
    const isNoneExpected = this.#holder === undefined || this.#holder.ended !== undefined;
    const isTold = told !== undefined || isNoneExpected || this.areReportsOver;
    if (!isTold || this.areNodesOver) return isTold;
    return (told?.report.tasks ?? []).every(
      (task) => !isExpected(task) || this.nodes.some((node) => isSame(task, node)),
    );
  }
}

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
  const replies = new Replies(holder);
  let end = (): void => undefined;
  const over = new Promise<undefined>((resolve) => {
    end = () => resolve(undefined);
  });
  let quiet: NodeJS.Timeout | undefined;
  const onChange = (): void => {
    clearTimeout(quiet);
    if (replies.areAllThere) quiet = setTimeout(end, NEXT_REPLY_MS);
  };
  const askForReports = async (): Promise<void> => {
    await ask(nats, subjects.report, json({}), over, (data) => {
      const report = parseReport(data);
      if (report !== undefined) replies.reports.push(report);
      onChange();
    });
    replies.areReportsOver = true;
    onChange();
  };
  const askForNodes = async (): Promise<void> => {
    // Token 0 is older than the token of any run, so no coordinator yields to this message.
    const who = json({ kind: 'who', run: 'doctor', token: 0 });
    await ask(nats, subjects.who, who, over, (data) => {
      const node = (parseControl(data, 'hello') ?? parseUnprintable(data))?.info;
      if (node !== undefined) replies.nodes.push(node);
      onChange();
    });
    replies.areNodesOver = true;
    onChange();
  };
  try {
    await Promise.all([askForReports(), askForNodes()]);
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

const isNoReply = (error: unknown): boolean => {
  const names = [fieldOf(error, 'name'), fieldOf(fieldOf(error, 'cause'), 'name')];
  return names.some((each) => each === 'NoResponders' || each === 'TimeoutError');
};
