/**
 * Asks the coordinators and the nodes of a cluster, and collects their replies. The questions change
 * nothing in the cluster.
 */

import type { NatsConnection } from '@nats-io/transport-node';
import { fieldOf } from '../../../base/thrown-value.ts';
import type { TaskPhase, TaskReadiness } from '../../../errors/phases.ts';
import type { Run } from '../../../nats/coordinator/fence.ts';
import {
  type CoordinatorReport,
  json,
  type NodeInfo,
  parseControl,
  parseReport,
  parseUnprintable,
} from '../../../nats/wire/control-messages.ts';
import type { Subjects } from '../../../nats/wire/subjects.ts';

/** The longest wait for replies. */
const REPLY_MS = 4_000;
/** The longest wait for another reply, once all that are expected have replied. */
const NEXT_REPLY_MS = 400;

/** The phases of a worker that is not expected to reply. */
const GONE: readonly TaskPhase[] = ['lost', 'left', 'failed', 'import-failed', 'closed'];

/** Whether a worker in that phase should reply. */
export const isExpected = ({ host, phase }: TaskReadiness): boolean =>
  host !== undefined && !GONE.includes(phase);

/** Whether both are the same process. */
export const isSame = (one: { host?: string; pid?: number }, { host, pid }: NodeInfo): boolean =>
  one.host === host && one.pid === pid;

/** What the coordinators and the nodes of a cluster have replied so far. */
export class Replies {
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
export async function askAll(
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
