/** Workers on many machines, which a NATS server connects. */

import {
  checkDuration,
  checkOptions,
  checkString,
  invalidType,
  outOfRange,
} from '../../base/arguments.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import type { Engine, Strategy, StrategyHost } from '../closures/strategy.ts';
import { ClusterSpec } from '../cluster-spec.ts';
import {
  checkConnectionOptions,
  type NatsConnectionOptions,
  type NatsCredentials,
  type NatsTlsOptions,
} from './connection/connection-options.ts';
import { NatsEngine } from './coordinator/nats-engine.ts';
import { CLUSTER_NAME } from './wire/subjects.ts';

export type NatsStrategyOptions = NatsCredentials & {
  /** Its exports are what can be scheduled. The workers have the same file. */
  module: URL;
  /** `nats://host:4222`, `tls://…` or `host:port`; several, of one cluster of servers. */
  servers: string | readonly string[];
  /** The name under which workers and coordinator find each other. */
  cluster: string;
  /** The tasks that there have to be; into the jobs that it names nobody else is let in. */
  expect?: ClusterSpec | undefined;
  /** The cluster is ready with so many workers (all that are expected; 1 if none are). */
  minWorkers?: number | undefined;
  /** After so long without a server the cluster fails (60,000). */
  unavailableAfterMs?: number | undefined;
  /** Copies of what is kept in JetStream, if there are several servers (1). */
  replicas?: number | undefined;
  tls?: NatsTlsOptions | boolean | undefined;
};

const MAX_WORKERS = 1_000_000;
const UNAVAILABLE_AFTER_MS = 60_000;

function checkInteger(name: string, value: unknown, least: number, most: number): void {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value);
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw outOfRange(name, `an integer >= ${least} and <= ${most}`, value);
}

export class NatsStrategy implements Strategy {
  readonly module: URL;
  readonly cluster: string;
  readonly expect: ClusterSpec | undefined;
  readonly minWorkers: number | undefined;
  readonly unavailableAfterMs: number;
  readonly replicas: number;
  /** There are credentials in it: nobody who prints the strategy sees them. */
  readonly #connection: NatsConnectionOptions;

  /**
   * Nothing is connected yet.
   *
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`), RangeError, InvalidArgumentError: a name or
   *   an address that cannot be one, or two ways to log in
   */
  constructor(options: NatsStrategyOptions) {
    const given = checkOptions('options', options) as NatsStrategyOptions;
    const { module, cluster, expect, unavailableAfterMs = UNAVAILABLE_AFTER_MS } = given;
    const { minWorkers, replicas = 1 } = given;
    if (!(module instanceof URL)) throw invalidType('options.module', 'an instance of URL', module);
    checkString('options.cluster', cluster);
    if (!CLUSTER_NAME.test(cluster)) {
      throw new InvalidArgumentError(
        `A cluster's name is made of 1 to 64 letters, digits, - and _, and '${cluster}' is not`,
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
    checkInteger('options.replicas', replicas, 1, 5);
    checkDuration('options.unavailableAfterMs', unavailableAfterMs);
    this.module = module;
    this.cluster = cluster;
    this.expect = expect;
    this.minWorkers = minWorkers;
    this.unavailableAfterMs = unavailableAfterMs;
    this.replicas = replicas;
    this.#connection = checkConnectionOptions(given);
  }

  /** @internal */
  connect(host: StrategyHost): Engine {
    return new NatsEngine(host, this, this.#connection);
  }
}
