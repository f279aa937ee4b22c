/** The tasks that a cluster is to have, and which node is which of them. */

import type { TaskReadiness } from '../../../errors/readiness-report.ts';
import type { WorkerInfo } from '../../closures/strategy.ts';
import type { ClusterSpec } from '../../cluster-spec.ts';
import { splitAddress } from '../connection/dns-tcp.ts';
import { type NodeInfo } from '../wire/control-messages.ts';
import { BUILDING } from '../wire/session-messages.ts';
import type { Session } from './session.ts';

export type Job = 'worker' | 'ps';
/** Of a spec's jobs those that nodes can have: an evaluator has no part in it, as in TensorFlow. */
const JOBS: readonly Job[] = ['worker', 'ps'];

export const UNREGISTERED = 'unregistered';
export const START = 'start `allstop worker` for this cluster';

/** The phase of a task whose node has missed a probe. */
export const SILENT = 'silent';

/** A place in the cluster, whether a node has taken it or not. */
export class ClusterTask {
  readonly job: Job;
  readonly index: number;
  /** The host that it should be on, as far as anybody has said. */
  readonly address: string | undefined;
  session: Session | undefined;
  #phase = UNREGISTERED;
  #since = new Date();
  #cause: string | undefined = 'no worker has registered for it';
  #remedy: string | undefined = START;
  /** Of the node that was there last. */
  host: string | undefined;
  pid: number | undefined;
  /** Of all nodes that were there. */
  completed = 0;
  restarts = 0;

  constructor(job: Job, index: number, address?: string) {
    this.job = job;
    this.index = index;
    this.address = address;
  }

  get phase(): string {
    // What its node said was before it got to know what to make.
    if (this.#phase === 'ready' && this.session?.isPrepared === false) return BUILDING;
    return this.#phase;
  }

  /** False: nothing is different. */
  enter(phase: string, cause?: string, remedy?: string): boolean {
    if (phase === this.#phase && cause === this.#cause && remedy === this.#remedy) return false;
    if (phase !== this.#phase) this.#since = new Date();
    this.#phase = phase;
    this.#cause = cause;
    this.#remedy = remedy;
    return true;
  }

  get isReady(): boolean {
    return this.session !== undefined && this.phase === 'ready';
  }

  get readiness(): TaskReadiness {
    const { job, index: task, address, host, pid, isReady: ready } = this;
    const report: TaskReadiness = { job, task, ready, phase: this.phase, since: this.#since };
    if (address !== undefined) report.address = address;
    if (host !== undefined) report.host = host;
    if (pid !== undefined) report.pid = pid;
    if (this.#cause !== undefined) report.cause = this.#cause;
    if (this.#remedy !== undefined) report.remedy = this.#remedy;
    return report;
  }
}

function stateOf({ session, phase }: ClusterTask): WorkerInfo['state'] {
  if (session === undefined) return 'lost';
  if (phase !== 'ready' && phase !== 'leaving' && phase !== SILENT) return 'starting';
  return session.running > 0 ? 'busy' : 'idle';
}

export class ClusterTasks {
  readonly #tasks = new Map<string, ClusterTask>();
  /** Into these nobody else is let in. */
  readonly #closed: ReadonlySet<Job>;
  readonly #minWorkers: number;

  /** `minWorkers`: of all that are expected, if they are; else 1. */
  constructor(expect: ClusterSpec | undefined, minWorkers: number | undefined) {
    this.#closed = new Set(JOBS.filter((job) => expect?.jobs.includes(job)));
    for (const job of this.#closed) {
      const spec = expect as ClusterSpec;
      for (const index of spec.taskIndices(job)) {
        this.add(new ClusterTask(job, index, spec.taskAddress(job, index)));
      }
    }
    if (this.#closed.has('worker')) {
      this.#minWorkers = minWorkers ?? (expect as ClusterSpec).numTasks('worker');
      return;
    }
    this.#minWorkers = minWorkers ?? 1;
    for (let index = 0; index < this.#minWorkers; index += 1) {
      this.add(new ClusterTask('worker', index));
    }
  }

  get all(): ClusterTask[] {
    return [...this.#tasks.values()];
  }

  /** Those that a node has, or has had. */
  get workers(): WorkerInfo[] {
    return this.all.flatMap((task) => {
      const { job, index, host, pid, session } = task;
      if (host === undefined || pid === undefined) return [];
      return {
        job,
        task: index,
        state: stateOf(task),
        host,
        pid,
        running: session?.running ?? 0,
        completed: task.completed + (session?.completed ?? 0),
        restarts: task.restarts + (session?.status.restarts ?? 0),
      };
    });
  }

  get areReady(): boolean {
    const { all } = this;
    const servers = all.filter(({ job }) => job === 'ps' && this.#closed.has(job));
    const workers = all.filter(({ job, isReady }) => job === 'worker' && isReady);
    return servers.every(({ isReady }) => isReady) && workers.length >= this.#minWorkers;
  }

  worker(index: number): ClusterTask | undefined {
    return this.#tasks.get(`worker:${index}`);
  }

  /** The place that this node wants, or is to have, which may be a new one; or why there is none. */
  find(info: NodeInfo): ClusterTask | { why: string; remedy: string } {
    const { job, task: wanted } = info;
    if (wanted !== undefined) {
      const task = this.#tasks.get(`${job}:${wanted}`);
      if (task !== undefined) return task;
      if (!this.#closed.has(job)) return new ClusterTask(job, wanted);
      return {
        why: `${job}:${wanted} is not in the ClusterSpec`,
        remedy: 'give the worker a task of the spec, or put it into the spec',
      };
    }
    const free = this.all.filter((each) => each.job === job && each.session === undefined);
    const known = free.find(({ address }) => address !== undefined && isOf(address, info));
    const [first] = free;
    if (known !== undefined) return known;
    if (first !== undefined) return first;
    if (this.#closed.has(job)) {
      return {
        why: `the ClusterSpec has no free task of the job '${job}'`,
        remedy: 'end a worker, or put one more into the spec',
      };
    }
    let index = 0;
    while (this.#tasks.has(`${job}:${index}`)) index += 1;
    return new ClusterTask(job, index);
  }

  /** From now on it is one of them. */
  add(task: ClusterTask): void {
    this.#tasks.set(`${task.job}:${task.index}`, task);
  }

  has({ job, index }: ClusterTask): boolean {
    return this.#tasks.has(`${job}:${index}`);
  }
}

function isOf(address: string, { host, addresses }: NodeInfo): boolean {
  const wanted = splitAddress(address).host.toLowerCase();
  return wanted === host.toLowerCase() || addresses.includes(wanted);
}
