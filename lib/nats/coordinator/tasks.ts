/** The tasks of a cluster (places for nodes, such as worker:1), and which node has which task. */

import { codeOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';
import type { ClusterSpec } from '../../cluster/cluster-spec.ts';
import {
  type EnginePhase,
  type Explanation,
  heldBack,
  ignoring,
  type NodeHealth,
  type Refusal,
  refused,
  type TaskPhase,
  type TaskReadiness,
  unregistered,
  type WorkerStart,
} from '../../errors/phases.ts';
import type { WorkerInfo } from '../../pool/queue/strategy.ts';
import { dial, lookUp, splitAddress } from '../connection/server-info.ts';
import type { NodeInfo } from '../wire/control-messages.ts';
import type { NatsSettings } from './leadership.ts';
import type { Session } from './session.ts';

export type Job = 'worker' | 'ps';
/** The jobs of a spec whose tasks nodes take. An evaluator takes no part, as in TensorFlow. */
const JOBS: readonly Job[] = ['worker', 'ps'];

/** A place in the cluster, whether a node has taken it or not. */
export class ClusterTask {
  readonly job: Job;
  readonly index: number;
  /** How a worker for this task is started. */
  readonly workerStart: WorkerStart;
  /** The host that the ClusterSpec names for the task. */
  readonly address: string | undefined;
  session: Session | undefined;
  #phase: TaskPhase = 'unregistered';
  #since = new Date();
  #why: Partial<Explanation>;
  /** The last node that had the task, or was refused for it. */
  node: Pick<NodeInfo, 'host' | 'pid'> | undefined;
  /** Functions that ended, and restarts, in all sessions before the present one. */
  #completed = 0;
  #restarts = 0;
  /** Whether any node that had the task was ready. */
  wasReady = false;
  /**
   * When a node has taken the task, if nobody missed one here: it, and who takes the task after its
   * end, may be there instead of another, whose end is not known yet.
   */
  #spareSince: number | undefined;
  /** When the last node is known to have lived. */
  #livedAt = 0;

  constructor(job: Job, index: number, workerStart: WorkerStart, address?: string) {
    this.job = job;
    this.index = index;
    this.workerStart = workerStart;
    this.address = address;
    this.#why = unregistered.noWorker(workerStart);
  }

  /** Sets the node that the readiness report names for the task. */
  setNode(node: NodeInfo): void {
    this.node = node;
  }

  beginSession(session: Session, isSpare: boolean): void {
    this.session = session;
    if (isSpare) this.#spareSince = performance.now();
    this.setNode(session.info);
    this.enter('connecting');
  }

  /** The session whose node was away goes on; `endSession` has added its counts before. */
  resumeSession(session: Session): void {
    this.#completed -= session.calls.completed;
    this.#restarts -= session.status.restarts;
    this.session = session;
    this.setNode(session.info);
    if (this.#phase === 'left') this.#spareSince = performance.now();
  }

  /**
   * The node that is there instead of this one's, which is lost: the oldest, as a younger one may be
   * there for one that lived longer.
   */
  oldestSpare(tasks: readonly ClusterTask[]): ClusterTask | undefined {
    const sinceOf = (task: ClusterTask): number => task.#spareSince ?? -1;
    return tasks
      .filter((task) => task !== this && task.job === this.job && sinceOf(task) >= this.#livedAt)
      .toSorted((one, other) => sinceOf(one) - sinceOf(other))[0];
  }

  /** The node of `spare` stands for the one that is lost here, and for no other. */
  replacedBy(spare: ClusterTask): void {
    spare.#spareSince = undefined;
    this.enter('left', this.#why);
  }

  /**
   * Removes the session from the task, and adds the session's counts to the task's own. `isLost`: if
   * another node takes the task, that is a restart.
   */
  endSession(isLost: boolean): void {
    this.#completed += this.session?.calls.completed ?? 0;
    this.#restarts += (this.session?.status.restarts ?? 0) + (isLost ? 1 : 0);
    this.#livedAt = this.session?.contact.livedAt ?? 0;
    this.session = undefined;
  }

  /** Whether functions have ended here. */
  get hasCompleted(): boolean {
    return this.#completed > 0;
  }

  get phase(): TaskPhase {
    // The node reported 'ready' before it received the last data set that it was sent.
    if (this.#phase === 'ready' && this.session?.isPrepared === false) return 'building-dataset';
    return this.#phase;
  }

  /** @returns false if nothing has changed */
  enter(phase: TaskPhase, { cause, remedy }: Partial<Explanation> = {}): boolean {
    const before = this.#why;
    if (phase === this.#phase && cause === before.cause && remedy === before.remedy) return false;
    if (phase !== this.#phase) this.#since = new Date();
    if (phase === 'ready') this.wasReady = true;
    this.#phase = phase;
    this.#why = { ...(cause !== undefined && { cause }), ...(remedy !== undefined && { remedy }) };
    return true;
  }

  get isReady(): boolean {
    return this.session !== undefined && this.phase === 'ready';
  }

  /** For a task that a node has, or has had. */
  get info(): WorkerInfo {
    const { job, index, session } = this;
    return {
      name: `${job}:${index}`,
      job,
      index,
      state: stateOf(this),
      host: this.node?.host ?? '',
      pid: this.node?.pid ?? Number.NaN,
      running: session?.calls.running ?? 0,
      completed: this.#completed + (session?.calls.completed ?? 0),
      restarts: this.#restarts + (session?.status.restarts ?? 0),
      calls: session?.calls.first(session.status.capacity) ?? [],
      ...(session?.contact.health !== undefined && { health: session.contact.health }),
      ...(session?.info.resources !== undefined && { resources: session.info.resources }),
    };
  }

  get readiness(): TaskReadiness {
    const { job, index: task, address, node, isReady: ready, session } = this;
    const health = session?.contact.health;
    return {
      job,
      task,
      ready,
      phase: this.phase,
      since: this.#since,
      ...(address !== undefined && { address }),
      ...(node !== undefined && { host: node.host, pid: node.pid }),
      ...this.#why,
      ...(health !== undefined && { health }),
      ...(health !== undefined && ready && slownessOf(health, session?.info.cores ?? 1)),
    };
  }
}

function stateOf({ session, phase }: ClusterTask): WorkerInfo['state'] {
  if (session === undefined) return phase === 'left' ? 'left' : 'lost';
  if (phase !== 'ready' && phase !== 'leaving' && phase !== 'silent') return 'starting';
  return session.calls.running > 0 ? 'busy' : 'idle';
}

/** A node's thread that is blocked in native code. Its counts are in those of the node. */
export function stuckThread({ info }: ClusterTask): WorkerInfo {
  return { ...info, state: 'stuck', running: 0, completed: 0, restarts: 0, calls: [] };
}

/** A node that says more than this is not believed. */
const MAX_STUCK = 1_000;

export class ClusterTasks {
  readonly #tasks = new Map<string, ClusterTask>();
  /** The jobs that the ClusterSpec names: in these jobs nodes get only the tasks of the spec. */
  readonly #closed: ReadonlySet<Job>;
  readonly #minWorkers: number;
  readonly #workerStart: WorkerStart;

  /** The tasks that the cluster waits for. */
  readonly #expected: ReadonlySet<string>;
  /** How many nodes have reported that none of their worker threads lives. */
  #nodesFailed = 0;

  /** `minWorkers`: by default all workers of `expect`; 1 if `expect` names no workers. */
  constructor({
    expect,
    minWorkers,
    workerStart,
  }: Pick<NatsSettings, 'expect' | 'minWorkers' | 'workerStart'>) {
    this.#workerStart = workerStart;
    this.#closed = new Set(JOBS.filter((job) => expect?.jobs.includes(job)));
    for (const job of this.#closed) {
      const spec = expect as ClusterSpec;
      for (const index of spec.taskIndices(job)) {
        this.add(this.#make(job, index, spec.taskAddress(job, index)));
      }
    }
    if (this.#closed.has('worker')) {
      this.#minWorkers = minWorkers ?? (expect as ClusterSpec).numTasks('worker');
    } else {
      this.#minWorkers = minWorkers ?? 1;
      for (let index = 0; index < this.#minWorkers; index += 1) {
        this.add(this.#make('worker', index));
      }
    }
    this.#expected = new Set(this.#tasks.keys());
  }

  #make(job: Job, index: number, address?: string): ClusterTask {
    const workerStart =
      job === 'worker'
        ? this.#workerStart
        : { ...this.#workerStart, command: `${this.#workerStart.command} --job ${job}` };
    return new ClusterTask(job, index, workerStart, address);
  }

  get all(): ClusterTask[] {
    return [...this.#tasks.values()];
  }

  /** The parameter servers that are ready. */
  get servers(): { index: number; session: Session }[] {
    return this.all.flatMap(({ job, index, session, isReady }) =>
      job === 'ps' && session !== undefined && isReady ? [{ index, session }] : [],
    );
  }

  /** The indexes of the parameter servers that the ClusterSpec names; undefined: it names none. */
  get expectedServers(): number[] | undefined {
    if (!this.#closed.has('ps')) return undefined;
    return this.all.flatMap(({ job, index }) => (job === 'ps' ? [index] : []));
  }

  /**
   * Without the remedy to start a worker while the engine lets none register.
   *
   * @param held - for what the threads of a session wait
   */
  report(
    engine: EnginePhase,
    held: (session: Session) => 'server' | 'answer' | undefined,
  ): TaskReadiness[] {
    return this.all.map(({ readiness, session, workerStart }) => {
      const wanted = session && readiness.phase === 'starting' ? held(session) : undefined;
      if (wanted !== undefined) {
        return { ...readiness, ...heldBack(wanted === 'server', workerStart) };
      }
      if (engine === 'ready' || readiness.phase !== 'unregistered') return readiness;
      const { remedy: _, ...task } = readiness;
      return { ...task, cause: unregistered.noCoordinator(engine) };
    });
  }

  /**
   * A spare node stands for one that is lost, which nobody misses then: a worker that is started
   * again before anybody knows of its end gets another place.
   */
  matchSpares(): void {
    const { all } = this;
    for (const task of all) {
      if (task.phase !== 'lost') continue;
      const spare = task.oldestSpare(all);
      if (spare !== undefined) task.replacedBy(spare);
    }
  }

  /** The tasks that a node has, or has had, and each thread of theirs that is stuck. */
  get workers(): WorkerInfo[] {
    const known = this.all.filter(({ node }) => node !== undefined);
    return known.flatMap((task) => {
      const length = Math.min(task.session?.status.stuck ?? 0, MAX_STUCK);
      return [task.info, ...Array.from({ length }, () => stuckThread(task))];
    });
  }

  get areReady(): boolean {
    const { all } = this;
    const servers = all.filter(({ job }) => job === 'ps' && this.#closed.has(job));
    const workers = all.filter(({ job, isReady }) => job === 'worker' && isReady);
    return servers.every(({ isReady }) => isReady) && workers.length >= this.#minWorkers;
  }

  /** The task that `session` was begun for, which another session may have now. */
  named({ info, task }: Session): ClusterTask {
    return this.#tasks.get(`${info.job}:${task}`) as ClusterTask;
  }

  /**
   * The node of the session has answered a probe, and ignores the welcome.
   *
   * @returns whether the task has changed
   */
  noteIgnored(session: Session, aheadMs: number): boolean {
    const task = this.named(session);
    if (session.isConfirmed || task.session !== session) return false;
    return task.enter('connecting', ignoring(session.info.host, session.info.pid, aheadMs));
  }

  nodeFailed(): void {
    this.#nodesFailed += 1;
  }

  /**
   * Whether no worker will ever live: no task of the job 'worker' has a node that may become ready,
   * and each has had a node, or as many nodes have failed as there are tasks. (A task that has had
   * no node may still get one that can import the module.) A node whose setup fails may become
   * ready if any worker was ever ready: it tries again, and the module's setup can succeed.
   */
  get areHopeless(): boolean {
    const workers = this.all.filter(({ job }) => job === 'worker');
    const wasReady = workers.some((task) => task.wasReady);
    const mayBeReady = ({ session }: ClusterTask): boolean =>
      session !== undefined && (wasReady || !session.hasFailedSetup);
    if (workers.some(mayBeReady)) return false;
    const wereAllTried = workers.every(({ phase }) => phase !== 'unregistered');
    return wereAllTried || this.#nodesFailed >= workers.length;
  }

  /**
   * The task for a node: the task that the node asks for (`--task`), else a free task whose
   * address is the node's host, else any free task, else a new task, which the caller has to pass
   * to `add`. The task that the node asks for may have another node.
   */
  find(info: NodeInfo): ClusterTask | Refusal<'not-expected'> {
    const { job, task: wanted } = info;
    if (wanted !== undefined) {
      const task = this.#tasks.get(`${job}:${wanted}`);
      if (task !== undefined) return task;
      if (!this.#closed.has(job)) return this.#make(job, wanted);
      return refused.taskNotInSpec(`${job}:${wanted}`);
    }
    const free = this.all
      .filter((each) => each.job === job && (each.session?.isReplaceableBy(info) ?? true))
      .toSorted((one, other) => rankOf(one, info) - rankOf(other, info));
    const known = free.find(({ address }) => address !== undefined && isOf(address, info));
    const [first] = free;
    if (known !== undefined) return known;
    if (first !== undefined) return first;
    if (this.#closed.has(job)) return refused.noFreeTask(job);
    let index = 0;
    while (this.#tasks.has(`${job}:${index}`)) index += 1;
    return this.#make(job, index);
  }

  /** @returns why the worker can never be there; undefined if it can */
  whyNever(worker: number): string | undefined {
    if (!this.#closed.has('worker') || this.#tasks.has(`worker:${worker}`)) return undefined;
    return `the ClusterSpec has no task worker:${worker}`;
  }

  /** Adds a task that `find` has made. @returns false if the task was added before */
  add(task: ClusterTask): boolean {
    if (this.has(task)) return false;
    this.#tasks.set(`${task.job}:${task.index}`, task);
    return true;
  }

  /** Removes the task of a node that never answered, unless the cluster waits for the task. */
  forget({ info, task }: Session): void {
    const name = `${info.job}:${task}`;
    const { hasCompleted, session } = this.#tasks.get(name) ?? {};
    if (session !== undefined || hasCompleted === true || this.#expected.has(name)) return;
    this.#tasks.delete(name);
  }

  has({ job, index }: ClusterTask): boolean {
    return this.#tasks.has(`${job}:${index}`);
  }
}

/** The order in which free tasks are given: those that nobody misses come late. */
const rankOf = ({ session, phase }: ClusterTask, { host }: NodeInfo): number => {
  if (session !== undefined) return session.info.host === host ? 3 : 4;
  if (phase === 'left') return 2;
  return phase === 'lost' ? 1 : 0; // its last node may come back
};

/** Whether the address of a ClusterSpec is one of the node's host. */
function isOf(address: string, { host, addresses }: NodeInfo): boolean {
  const wanted = splitAddress(address).host.toLowerCase();
  return wanted === host.toLowerCase() || addresses.includes(wanted);
}

// Which node is merely slow: with the figures that its last probe has measured, and why.

/** A round trip, or a turn of the event loop, that takes longer than this is slow. */
const SLOW_MS = 250;
const SHORT_OF_MEMORY_BYTES = 128 * 1024 ** 2;

const rounded = (value: number): string => (value < 10 ? value.toFixed(1) : value.toFixed(0));

/** The figures, for people: "round trip 1.2 ms, event loop 3.0 ms late, load 0.5, 7.1 GB free". */
export function figuresOf(health: NodeHealth): string {
  const { roundTripMs, loopDelayMs, load, freeMemory } = health;
  const late = loopDelayMs === undefined ? [] : [`event loop ${rounded(loopDelayMs)} ms late`];
  const loads = load === undefined ? [] : [`load ${load.toFixed(1)}`];
  const free = freeMemory === undefined ? [] : [`${(freeMemory / 1024 ** 3).toFixed(1)} GB free`];
  return [`round trip ${rounded(roundTripMs)} ms`, ...late, ...loads, ...free].join(', ');
}

/** @returns undefined if the node is not slow */
function slownessOf(health: NodeHealth, cores: number): Explanation | undefined {
  const { roundTripMs, loopDelayMs = 0, load = 0, freeMemory } = health;
  if (roundTripMs < SLOW_MS && loopDelayMs < SLOW_MS) return undefined;
  const cause = (why: string): string => `the node is slow (${figuresOf(health)}): ${why}`;
  if (freeMemory !== undefined && freeMemory < SHORT_OF_MEMORY_BYTES) {
    return {
      cause: cause('its machine is short of memory, and may swap'),
      remedy: 'start the worker with fewer --slots, or free memory',
    };
  }
  if (loopDelayMs * 2 >= roundTripMs) {
    const why =
      load > cores ? `its ${cores} processors are overloaded` : 'its main thread is held up';
    return {
      cause: cause(why),
      remedy: 'start the worker with fewer --slots, or take other work off that machine',
    };
  }
  return {
    cause: cause('the network between coordinator, servers and node is slow'),
    remedy: 'check the network, or put servers and workers nearer to the coordinator',
  };
}

// Checks the hosts that a ClusterSpec names for tasks no node has registered for: whether the
// name can be resolved (DNS), and whether the host answers (TCP). Nodes do not listen, so a host
// that refuses the connection counts as answering.

/** Delay of the first round: nodes that run already have registered by then, and need no check. */
const FIRST_MS = 250;
const AGAIN_MS = 5_000;
const TIMEOUT_MS = 2_000;
/** A DNS lookup holds one of libuv's four threads until it ends: the program needs the others. */
const MAX_AT_ONCE = 2;
/** The port for an address that has none: a host that is up refuses connections to port 1. */
const PORT = 1;

export class AddressChecks {
  readonly #tasks: ClusterTasks;
  readonly #onChange: () => void;
  readonly #abort = new AbortController();
  #timer: Timer | undefined;
  #isRunning = false;
  #isWanted = false;

  /** `onChange`: the cause of a task has changed. */
  constructor(tasks: ClusterTasks, onChange: () => void) {
    this.#tasks = tasks;
    this.#onChange = onChange;
  }

  /** Starts rounds of checks, every AGAIN_MS, until `stop`. */
  start(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    if (!this.#isRunning) this.#after(FIRST_MS);
  }

  /** Starts no more rounds. A round that is running goes on. `start` can be called again. */
  stop(): void {
    this.#isWanted = false;
    this.#timer?.clear();
  }

  /** Ends the connections of a running round, too. `start` must not be called any more. */
  close(): void {
    this.stop();
    this.#abort.abort();
  }

  #after(ms: number): void {
    if (this.#isWanted) this.#timer = new Timer(ms, () => void this.#round());
  }

  async #round(): Promise<void> {
    this.#isRunning = true;
    const left = this.#tasks.all.filter(
      ({ phase, address }) => phase === 'unregistered' && address !== undefined,
    );
    const work = async (): Promise<void> => {
      for (let task = left.shift(); task !== undefined; task = left.shift()) {
        if (this.#abort.signal.aborted) return;
        const why = await explain(task, this.#abort.signal);
        if (this.#abort.signal.aborted) return; // a host that was not awaited is not silent
        // A node may have registered for the task during the check.
        const isWaiting = task.session === undefined && task.phase === 'unregistered';
        if (isWaiting && task.enter('unregistered', why)) this.#onChange();
      }
    };
    await Promise.all(Array.from({ length: MAX_AT_ONCE }, work));
    this.#isRunning = false;
    this.#after(AGAIN_MS);
  }
}

/** @param task - has an address */
async function explain(task: ClusterTask, signal: AbortSignal): Promise<Explanation> {
  const { host, port = PORT } = splitAddress(task.address as string);
  try {
    await lookUp(host, TIMEOUT_MS);
  } catch (error) {
    return unregistered.hostUnknown(host, String(codeOf(error)));
  }
  try {
    (await dial(host, port, TIMEOUT_MS, signal)).destroy();
  } catch (error) {
    const code = String(codeOf(error));
    const isAlive = code === 'ECONNREFUSED' || code === 'ECONNRESET';
    if (!isAlive) return unregistered.hostSilent(host, code, task.workerStart);
  }
  return unregistered.hostAnswers(host, task.workerStart);
}
