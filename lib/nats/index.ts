/**
 * The same functions on many machines, by way of a NATS server.
 *
 * @module allstop/nats
 */

export { ClusterSpec } from '../cluster/cluster-spec.ts';
export * from '../errors/public-errors.ts';
export type {
  NatsCredentials,
  NatsJetStreamOptions,
  NatsTlsOptions,
} from './connection/connection-options.ts';
export { NatsStrategy, type NatsStrategyOptions } from './nats-strategy.ts';
export { NatsResults, type NatsResultsOptions } from './results/nats-results.ts';
