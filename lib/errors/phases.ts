/**
 * The phases of a cluster's tasks and of its engine, and the causes and remedies of tasks that are
 * not ready; the report of a ClusterNotReadyError. `ready()`, `allstop worker` and `allstop doctor`
 * print these texts. (The causes of an engine without a connection:
 * nats/connection/connection-failure.ts.)
 */

/** What is wrong, and what an operator can do about it: one line each, without a full stop. */
export type Explanation = { cause: string; remedy: string };

const TASK_PHASES = [
  // With every strategy:
  'starting', // the worker imports the module
  'setting-up', // the worker runs the module's setup function
  'setup-failed', // the setup function has failed, and the worker is started again
  'building-dataset', // the worker makes its data sets
  'ready',
  'import-failed', // the module cannot be imported
  'stopping', // the worker is being ended by force
  'lost', // the worker is gone
  'left', // over NATS: the worker has ended in order, after what it had
  // Over NATS, before a node has the task:
  'unregistered', // no node has come
  'version-mismatch', // the last node was refused: another protocol, or Bun and not Bun
  'definition-mismatch', // the last node was refused: another module file
  'spec-mismatch', // the last node was refused: another ClusterSpec
  'unprintable', // the last node was refused: its host's name, for example, is not printable ASCII
  'insufficient-resources', // the last node was refused: too little free memory
  // Over NATS, with a node:
  'connecting', // the node has not answered yet
  'silent', // the node has missed a probe
  'leaving', // the node finishes what it has, and ends
  'failed', // no worker thread lives on the node
  'closed', // the coordinator is closed
  'unknown', // the node reports a phase that only another version knows; the cause quotes it
] as const;

const ENGINE_PHASES = [
  // With every strategy:
  'ready',
  'failed', // no function will run any more
  // Over NATS:
  'connecting', // there is no connection to a server
  'jetstream', // connected, but JetStream has not given the cluster's bucket
  'forbidden', // connected, but the server refuses a subject
  'standby', // another run holds the cluster, and this one waits for its end
  'closed', // the coordinator is closed
  'unknown', // an error without a report, or a phase that only another version knows
] as const;

/**
 * How far a task (a place for a worker) is: `report.tasks[].phase`. docs/nats.md says what to
 * do about each phase. New versions may add some.
 *
 * With every strategy:
 *
 * - 'starting': the worker imports the module
 * - 'setting-up': the worker runs the module's `setup`
 * - 'setup-failed': `setup` has failed, and the worker is started again
 * - 'building-dataset': the worker makes its data sets
 * - 'ready': the worker takes functions
 * - 'import-failed': the worker cannot import the module
 * - 'stopping': the cluster ends the worker by force
 * - 'lost': the worker is gone
 * - 'left', over NATS: the worker has ended in order, after what it had
 *
 * Over NATS, before a node has the task:
 *
 * - 'unregistered': no node has come
 * - 'version-mismatch': the last node was refused: another protocol, or Bun and not Bun
 * - 'definition-mismatch': the last node was refused: another module file or `definition`
 * - 'spec-mismatch': the last node was refused: another ClusterSpec
 * - 'unprintable': the last node was refused: the name of its host, for example, is not printable
 * - 'insufficient-resources': the last node was refused: too little free memory
 *
 * Over NATS, with a node:
 *
 * - 'connecting': the node has not answered yet
 * - 'silent': the node has missed a probe
 * - 'leaving': the node finishes what it has, and ends
 * - 'failed': no worker thread lives on the node
 * - 'closed': the coordinator is closed
 * - 'unknown': the node reports a phase that only another version knows; the cause quotes it
 */
export type TaskPhase = (typeof TASK_PHASES)[number];

/**
 * How far the engine (what carries functions to the workers) is: `report.engine.phase`. New
 * versions may add phases.
 *
 * With every strategy:
 *
 * - 'ready': the engine carries functions
 * - 'failed': no function will run any more
 *
 * Over NATS:
 *
 * - 'connecting': there is no connection to a server
 * - 'jetstream': connected, but JetStream has not given the cluster's bucket
 * - 'forbidden': connected, but the server refuses a subject
 * - 'standby': another run holds the cluster, and this one waits for its end (`onHeld`)
 * - 'closed': the coordinator is closed
 * - 'unknown': an error without a report, or a phase that only another version knows
 */
export type EnginePhase = (typeof ENGINE_PHASES)[number];

/** Why a node gets no task. The last three are about the node, and are never a task's phase. */
export type RefusalPhase =
  | 'version-mismatch'
  | 'definition-mismatch'
  | 'spec-mismatch'
  | 'insufficient-resources'
  | 'unprintable'
  | 'task-taken'
  | 'not-expected';

export type Refusal<P extends RefusalPhase = RefusalPhase> = { phase: P } & Explanation;

// ---------------------------------------------------------------- phases from another process

type Phased = { phase: string; cause?: string | undefined };

/**
 * Replaces a phase that this version does not know by 'unknown', in place; the cause quotes it.
 * A process of another version may send one: its message is still valid, and its report is
 * still shown.
 */
function checkPhase(value: Phased, known: readonly string[]): void {
  const { phase, cause } = value;
  if (known.includes(phase)) return;
  const why = `this version of allstop does not know the phase '${phase.slice(0, 64)}'`;
  value.phase = 'unknown';
  value.cause = cause === undefined ? why : `${why}: ${cause}`;
}

export const checkTaskPhase = (value: Phased): void => checkPhase(value, TASK_PHASES);
export const checkEnginePhase = (value: Phased): void => checkPhase(value, ENGINE_PHASES);

// ---------------------------------------------------------------- causes and remedies

const RESTART_WORKER = 'start the worker again';
const KILL_AND_RESTART = 'look at that process; end it, and start the worker again';

/** What to do about a worker thread or process of this machine that is not ready. */
export const localRemedy = (phase: TaskPhase, cause: string | undefined): string => {
  // Node's words for an addon that is loaded for a second time in a process.
  if (cause?.includes('did not self-register') === true)
    return "an addon of the module can be loaded by one thread of a process only: use worker processes (isolation: 'process')";
  if (phase === 'import-failed')
    return 'correct the module: importing it on its own has to succeed';
  if (phase === 'setup-failed') return 'see the cause, and correct the setup function';
  if (phase === 'setting-up' || phase === 'building-dataset')
    return 'see why the function does not end, or wait';
  return 'see the cause; a worker that dies again and again is restarted after ever longer delays';
};

/** Why a worker that is in the phase 'setting-up' is not ready. */
export const settingUp = (name: string): string => `the setup function '${name}' has not ended`;

/** The same for 'building-dataset'. `what`: "data set function 'x'". */
export const notMade = (what: string): string => `the ${what} has not ended`;

/** Why a worker that is in the phase 'starting' for long is not ready. */
export const importing: Explanation = {
  cause: 'the import of the module has not ended',
  remedy: 'wait, if the machine is busy; otherwise see what the module awaits when it is imported',
};

/** The same, of a worker that waits because calls of `cluster.variable()` wait. */
export const heldBack = (isSeeking: boolean, { command }: WorkerStart): Explanation =>
  isSeeking
    ? {
        cause:
          'its threads start when cluster.variable() has a parameter server, for which the program waits',
        remedy: `start a parameter server: ${command} --job ps`,
      }
    : {
        cause:
          'its threads start when cluster.variable() has the answer of a parameter server, for which the program waits',
        remedy: 'look at the parameter server, or wait',
      };

/** The phase 'standby' of an engine. */
export const standingBy = (host: string, pid: number): Explanation => ({
  cause: `another run of the cluster lives (${host}, pid ${pid}), and this one stands by`,
  remedy: 'wait until that run ends, or end it',
});

/** Which cluster a worker has to join, and how one is started, in the words of the program's options. */
export type WorkerStart = { cluster: string; servers: string; command: string };

/**
 * The phase 'unregistered': no node has the task. The causes that begin with `host` say what a
 * look at the task's host in the ClusterSpec has found.
 */
export const unregistered = {
  noWorker: ({ cluster, servers, command }: WorkerStart): Explanation => ({
    cause: `no worker has registered for this task of the cluster '${cluster}' at ${servers}`,
    remedy: command,
  }),
  noCoordinator: (phase: EnginePhase): string =>
    phase === 'failed'
      ? 'no worker can register any more: the cluster has failed'
      : `no worker can register before the coordinator is ready: it is '${phase}'`,
  hostUnknown: (host: string, code: string): Explanation => ({
    cause: `the name ${host} is unknown (DNS: ${code})`,
    remedy: 'correct it in the ClusterSpec, or add it to the DNS',
  }),
  hostSilent: (host: string, code: string, { command }: WorkerStart): Explanation => ({
    cause: `the host ${host} does not answer (TCP: ${code}): it is off, or a firewall drops packets`,
    remedy: `start the host, or check its network and firewalls; then start a worker on it: ${command}`,
  }),
  hostAnswers: (host: string, { cluster, servers, command }: WorkerStart): Explanation => ({
    cause: `the host ${host} answers, but no worker has registered for this task of the cluster '${cluster}' at ${servers}`,
    remedy: `if a worker already runs on that host, read its output, which names its cluster; otherwise start one there: ${command}`,
  }),
  refusedNodeGone: (phase: string, remedy: string): Explanation => ({
    cause: `the worker that was turned away (${phase}) is gone`,
    remedy,
  }),
};

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MB`;
const short = (hash: string): string => hash.slice(0, 12);
const GIVEN = 'given:';
const definitionOf = (value: string): string =>
  value.startsWith(GIVEN)
    ? `the definition ${value.slice(GIVEN.length)}`
    : `a module file with the SHA-256 ${short(value)}`;

type Versions = { protocol: number; version: string };

/** Why a node is refused. `task`: 'worker:1'. */
export const refused = {
  taskNotInSpec: (task: string): Refusal<'not-expected'> => ({
    phase: 'not-expected',
    cause: `${task} is not in the ClusterSpec`,
    remedy: 'start the worker with a --task of the spec, or add this task to the spec',
  }),
  noFreeTask: (job: string): Refusal<'not-expected'> => ({
    phase: 'not-expected',
    cause: `the ClusterSpec has no free task of the job '${job}'`,
    remedy: 'end another worker of this job, or add a task to the spec',
  }),
  taskTaken: (task: string, host: string, pid: number): Refusal<'task-taken'> => ({
    phase: 'task-taken',
    cause: `${task} is taken by ${host} (pid ${pid})`,
    remedy: 'end one of the two workers, or start this one with another --task',
  }),
  otherProtocol: (
    { protocol, version }: Versions,
    ownProtocol: number,
  ): Refusal<'version-mismatch'> => ({
    phase: 'version-mismatch',
    cause: `the worker speaks protocol ${protocol} (allstop ${version}), the coordinator protocol ${ownProtocol}`,
    remedy: 'install the same version of allstop on both machines',
  }),
  otherRuntime: (runtime: string, ownRuntime: string): Refusal<'version-mismatch'> => ({
    phase: 'version-mismatch',
    cause: `the worker runs on ${runtime}, the coordinator on ${ownRuntime}: Bun serializes values in a format of its own`,
    remedy: 'run both on Bun, or neither',
  }),
  unprintable: (names: string[]): Refusal<'unprintable'> => ({
    phase: 'unprintable',
    cause: `what the worker says of itself (${names.join(', ')}) has characters that are not printable ASCII`,
    remedy: 'change that (rename the machine, for example), and start the worker again',
  }),
  otherDefinition: (theirs: string, own: string): Refusal<'definition-mismatch'> => ({
    phase: 'definition-mismatch',
    cause: `the worker has ${definitionOf(theirs)}, the coordinator ${definitionOf(own)}`,
    remedy:
      'deploy the same version to both machines, or give both the same definition (`--definition`)',
  }),
  otherModule: (hash: string, ownHash: string): Refusal<'definition-mismatch'> => ({
    phase: 'definition-mismatch',
    cause: `the worker's module file differs from the coordinator's (SHA-256 ${short(hash)} there, ${short(ownHash)} here)`,
    remedy: 'deploy the same file to both machines, and start the worker again',
  }),
  otherSpec: (hash: string, ownHash: string): Refusal<'spec-mismatch'> => ({
    phase: 'spec-mismatch',
    cause: `the worker's ClusterSpec differs from the coordinator's (SHA-256 ${short(hash)} there, ${short(ownHash)} here)`,
    remedy: "start the worker again with the coordinator's spec as --spec",
  }),
  tooLittleMemory: (
    host: string,
    free: number,
    threads: number,
    needed: number,
  ): Refusal<'insufficient-resources'> => ({
    phase: 'insufficient-resources',
    cause: `${host} has ${megabytes(free)} of free memory, and ${threads} threads need ${megabytes(needed)}`,
    remedy: 'start the worker with fewer --slots, or free memory',
  }),
};

const days = (ms: number): string => `${Math.round(ms / 86_400_000)} days`;

/** The phase 'connecting', of a node that has served a run whose token is too far ahead. */
export const ignoring = (host: string, pid: number, aheadMs: number): Explanation => ({
  cause: `${host} (pid ${pid}) ignores this coordinator, because it has served a newer one: the clock of this machine is ${days(aheadMs)} behind that coordinator's`,
  remedy: 'correct the clock of this machine, or start the worker again',
});

/** What a node prints that ignores the messages of a coordinator whose token is too far behind. */
export const ignored = (behindMs: number): Explanation => ({
  cause: `it is older than one that this worker has served: the clock of its machine is ${days(behindMs)} behind that coordinator's`,
  remedy: "correct the clock of the coordinator's machine, or start this worker again",
});

/** The phase 'silent': a node has missed a probe, and may still answer the next. */
export const silent = (host: string, pid: number, forMs: number): Explanation => ({
  cause: `${host} (pid ${pid}) has not answered for ${forMs} ms: it hangs, is stopped, or its network is cut`,
  remedy: KILL_AND_RESTART,
});

/** The phase 'silent', of a node without a connection to the servers. */
export const absent = (host: string, pid: number): Explanation => ({
  cause: `${host} (pid ${pid}) has no connection to the servers: the process has ended, or its network is cut`,
  remedy: 'wait, if the network comes back; otherwise start the worker again',
});

/** How a session ended, as the end of "Worker worker:1 (HOST, pid PID) …", and what to do. */
export type Loss = { how: string; remedy: string };

/** The phase 'lost': the ways in which a session ends. */
export const lost: Record<
  | 'gone'
  | 'silent'
  | 'unreachable'
  | 'hasLeft'
  | 'hasAbandoned'
  | 'leftSession'
  | 'hasFailed'
  | 'malformed'
  | 'tooLong',
  Loss
> = {
  gone: { how: 'is gone', remedy: RESTART_WORKER },
  silent: {
    how: 'does not answer: it hangs, is stopped, or its network is cut',
    remedy: KILL_AND_RESTART,
  },
  unreachable: {
    how: 'cannot be reached while the coordinator has no connection, and has not ended a cancelled function',
    remedy: RESTART_WORKER,
  },
  hasLeft: { how: 'has left in order', remedy: 'start a worker, if one is to take its place' },
  hasAbandoned: { how: 'has ended before its functions had', remedy: RESTART_WORKER },
  leftSession: { how: 'has left its session', remedy: RESTART_WORKER },
  hasFailed: { how: 'has failed', remedy: RESTART_WORKER },
  malformed: { how: 'has sent a malformed message', remedy: RESTART_WORKER },
  tooLong: {
    how: 'has messages on their way that are longer than the max_payload of the server, which was lowered',
    remedy: RESTART_WORKER,
  },
};

/** The remedy in the phases 'failed' and 'import-failed', whose cause is the node's own error. */
export const failedRemedy = 'correct the cause, and start the worker again';

/** The remedy in any other phase for which a node gives a cause. */
export const nodeRemedy = 'see the cause, and read the output of the worker on that host';

// ---------------------------------------------------------------- what ready() reports

/** How a node of a NATS cluster did when it last answered a probe. */
export type NodeHealth = {
  /**
   * From the coordinator to the node and back, in milliseconds, without the time for which the
   * coordinator's own event loop was held up.
   */
  roundTripMs: number;
  /** The longest delay of the node's event loop since the probe before, in milliseconds. */
  loopDelayMs?: number;
  /** The load of its machine: how many threads ran or waited for a processor in the last minute. */
  load?: number;
  /** Of its machine, in bytes. */
  freeMemory?: number;
};

/** One expected task of a cluster, and what keeps it from being ready. */
export type TaskReadiness = {
  /** The job of the task: 'worker', or another of the ClusterSpec. */
  job: string;
  /** The index of the task in its job, from 0. */
  task: number;
  /** The address of the task in the ClusterSpec. Left out if the spec has none. */
  address?: string;
  /** The name of the worker's machine. Left out while no worker has had the task. */
  host?: string;
  /** The pid of the worker, or of the program if the worker is a thread. Left out as `host`. */
  pid?: number;
  /** Whether the task's worker takes functions. */
  ready: boolean;
  /** How far the task is. */
  phase: TaskPhase;
  /** When `phase` began. */
  since: Date;
  /** Why the task is not ready; of one that is ready, why its node is slow. */
  cause?: string;
  /** What an operator can do about the cause. */
  remedy?: string;
  /** Over NATS, of a node that has answered a probe. */
  health?: NodeHealth;
};

/** What carries functions to the workers, and what keeps it from being ready. */
export type EngineReadiness = {
  /** How far the engine is. */
  phase: EnginePhase;
  /** Why the engine is not ready. */
  cause?: string;
  /** What an operator can do about the cause. */
  remedy?: string;
};

/** How far a cluster is, for `ready({ onProgress })` and in a ClusterNotReadyError. */
export type ReadinessReport = {
  /** Whether the cluster is ready: then `ready` resolves. */
  ready: boolean;
  /** What carries functions to the workers. */
  engine: EngineReadiness;
  /** The tasks that the cluster waits for, and those that workers have. */
  tasks: TaskReadiness[];
};
