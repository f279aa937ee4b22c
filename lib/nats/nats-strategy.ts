/** NatsStrategy: workers on many machines, connected by NATS servers. */

import {
  type Checks,
  checkDuration,
  checkInteger,
  checkOptions,
  checkString,
  integerFrom,
  invalidType,
  oneOf,
  unchecked,
} from '../base/arguments.ts';
import { showAs } from '../base/inspect.ts';
import type { CheckpointStore } from '../cluster/checkpoints/checkpoint-file.ts';
import { ClusterSpec } from '../cluster/cluster-spec.ts';
import { counted } from '../coordinator/words.ts';
import { InvalidArgumentError } from '../errors/errors.ts';
import type { WorkerStart } from '../errors/phases.ts';
import { fileName } from '../pool/queue/module-exports.ts';
import type { ClusterHost, Engine, Strategy } from '../pool/queue/strategy.ts';
import { checkDefinition, checkExport, checkModule, shownModule } from '../pool/worker/module.ts';
import { bucketCheckpoints } from './checkpoints/bucket-checkpoints.ts';
import {
  CONNECTION_OPTIONS,
  checkConnectionOptions,
  type NatsConnect,
  type NatsConnectionOptions,
} from './connection/connection-options.ts';
import type { OnHeld } from './coordinator/leadership.ts';
import { NatsEngine } from './coordinator/nats-engine.ts';
import { CLUSTER_NAME } from './wire/subjects.ts';

/** The options of a NatsStrategy. */
export type NatsStrategyOptions = NatsConnect & {
  /** The module whose exports can be scheduled. Workers are started with the same file. */
  module: URL;
  /**
   * The name by which workers and coordinator find each other: 1 to 64 letters, digits, '-' and
   * '_'. A cluster has one coordinator: see `onHeld`.
   */
  cluster: string;
  /**
   * The tasks that the cluster waits for. Workers beyond these are refused in the jobs that the
   * spec names. By default workers get the tasks worker:0, worker:1, … as they come.
   */
  expect?: ClusterSpec | undefined;
  /**
   * The number of workers with which the cluster is ready (by default all workers of `expect`,
   * or 1 if `expect` names no workers).
   */
  minWorkers?: number | undefined;
  /**
   * Milliseconds without a connection to a server after which the cluster fails. Default: 60,000.
   */
  unavailableAfterMs?: number | undefined;
  /**
   * Milliseconds for which a worker may be away (its connection cut, its process paused) before
   * what it runs is run elsewhere. A worker that comes back later goes on, and the first result
   * counts. Default: 10,000.
   */
  lostAfterMs?: number | undefined;
  /**
   * What this program does if another holds the cluster when it starts. 'takeOver': the other fails
   * with a FailedPreconditionError. 'refuse': this one fails with it, at once. 'standBy': this one
   * waits until the other has ended, is lost, or is closed. A program that does not answer any more
   * holds nothing. Default: 'takeOver'.
   */
  onHeld?: OnHeld | undefined;
  /**
   * The version of the program, such as a git hash: 1 to 128 printable ASCII characters without
   * spaces. Only workers with the same `--definition` are let in; their module files are not
   * compared. By default only workers with the same module file are let in.
   */
  definition?: string | undefined;
  /**
   * The name of an export that each thread of a worker calls with `{ workerIndex }`, and awaits,
   * before it takes functions. `allstop worker --setup` names another for its machine. By default
   * nothing is called.
   */
  setup?: string | undefined;
  /**
   * The name of an export that each thread of a worker calls with `{ workerIndex }` after its last
   * function, and that has `cancelGraceMs` to end. `allstop worker --teardown` names another. By
   * default nothing is called.
   */
  teardown?: string | undefined;
  /**
   * Copies of the cluster's key in JetStream, and of checkpoints in a bucket that is made, 1 to 5,
   * at most one a server. Default: 1.
   */
  replicas?: number | undefined;
};

const ON_HELD = ['takeOver', 'refuse', 'standBy'] satisfies OnHeld[];

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  module: unchecked,
  cluster: unchecked,
  expect: unchecked,
  minWorkers: unchecked,
  unavailableAfterMs: checkDuration,
  lostAfterMs: checkDuration,
  onHeld: oneOf(...ON_HELD),
  definition: checkDefinition,
  setup: checkExport,
  teardown: checkExport,
  replicas: integerFrom(1, 5),
} satisfies Checks;

const MAX_WORKERS = 1_000_000;
const UNAVAILABLE_AFTER_MS = 60_000;
const LOST_AFTER_MS = 10_000;

/**
 * The workers of a cluster are processes on any machines, which somebody starts with
 * `allstop worker`; workers and coordinator find each other by NATS servers. Given to one
 * ClusterCoordinator, which is connected to the servers until it is closed. Its properties are the
 * options, with their defaults.
 *
 * @example
 * ```js fragment
 * import { ClusterCoordinator } from 'allstop/cluster';
 * import { NatsStrategy } from 'allstop/nats';
 *
 * // With `npx allstop worker --servers nats://10.0.0.1:4222 --cluster demo --module tasks.mjs`
 * const cluster = new ClusterCoordinator(
 *   new NatsStrategy({
 *     servers: 'nats://10.0.0.1:4222',
 *     cluster: 'demo',
 *     module: new URL('./tasks.mjs', import.meta.url),
 *     minWorkers: 1,
 *   }),
 * );
 * console.log(await cluster.run('square', [7]));
 * await cluster.close();
 * ```
 */
export class NatsStrategy implements Strategy {
  /** The option `module`. */
  readonly module: URL;
  /** The option `cluster`. */
  readonly cluster: string;
  /** The option `expect`. */
  readonly expect: ClusterSpec | undefined;
  /** The option `minWorkers`. */
  readonly minWorkers: number | undefined;
  /** The option `unavailableAfterMs`. */
  readonly unavailableAfterMs: number;
  /** The option `lostAfterMs`. */
  readonly lostAfterMs: number;
  /** The option `onHeld`. */
  readonly onHeld: OnHeld;
  /** The option `definition`. */
  readonly definition: string | undefined;
  /** The option `setup`. */
  readonly setup: string | undefined;
  /** The option `teardown`. */
  readonly teardown: string | undefined;
  /** The option `replicas`. */
  readonly replicas: number;
  /** Private, so that credentials do not show when the strategy is printed. */
  readonly #connection: NatsConnectionOptions;

  static {
    showAs(NatsStrategy.prototype, ({ cluster, module, minWorkers, expect }) => ({
      name: cluster,
      facts: [
        fileName(module),
        ...(minWorkers === undefined ? [] : [`waits for ${counted(minWorkers, 'worker')}`]),
        ...(expect === undefined ? [] : [`expects ${String(expect)}`]),
      ],
    }));
  }

  /**
   * Connects nothing: a ClusterCoordinator does.
   *
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`), RangeError, InvalidArgumentError: an invalid
   *   cluster name or server address, two ways to log in, or a module that is no file
   */
  constructor(options: NatsStrategyOptions) {
    const given = checkOptions('options', options, OPTIONS) as NatsStrategyOptions;
    const { cluster, expect, minWorkers, definition } = given;
    const module = checkModule(given.module);
    checkString('options.cluster', cluster);
    if (!CLUSTER_NAME.test(cluster)) {
      throw new InvalidArgumentError(
        `The name of a cluster must be 1 to 64 letters, digits, '-' and '_'. Received '${cluster}'`,
      );
    }
    if (expect !== undefined && !(expect instanceof ClusterSpec)) {
      throw invalidType('options.expect', 'an instance of ClusterSpec', expect);
    }
    if (minWorkers !== undefined) {
      const hasWorkers = expect?.jobs.includes('worker') === true;
      const most = hasWorkers ? expect.numTasks('worker') : MAX_WORKERS;
      checkInteger('options.minWorkers', minWorkers, 0, most);
    }
    if (module.protocol !== 'file:' && definition === undefined) {
      throw new InvalidArgumentError(
        `options.module must be a file: URL, because workers have the same file; with options.definition it may be another. Received '${shownModule(module)}'`,
      );
    }
    this.module = module;
    this.cluster = cluster;
    this.expect = expect;
    this.minWorkers = minWorkers;
    this.unavailableAfterMs = given.unavailableAfterMs ?? UNAVAILABLE_AFTER_MS;
    this.lostAfterMs = given.lostAfterMs ?? LOST_AFTER_MS;
    this.onHeld = given.onHeld ?? 'takeOver';
    this.definition = definition;
    this.setup = given.setup;
    this.teardown = given.teardown;
    this.replicas = given.replicas ?? 1;
    this.#connection = checkConnectionOptions(given);
  }

  /** @internal */
  connect(host: ClusterHost): Engine {
    return new NatsEngine(host, this, this.#connection);
  }

  /** @internal */
  get workerStart(): WorkerStart {
    const { module, cluster } = this;
    const servers = this.#connection.servers.join(',');
    const command = `npx allstop worker --module ${shownModule(module)} --servers ${servers} --cluster ${cluster}`;
    return { cluster, servers, command };
  }

  /** @internal */
  checkpoints(bucket: string): CheckpointStore {
    return bucketCheckpoints(bucket, this, this.#connection);
  }
}
