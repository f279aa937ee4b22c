/** The public class NatsResults, and its store: a bucket in JetStream. */

import {
  checkDuration,
  checkInteger,
  checkOptions,
  checkString,
  outOfRange,
} from '../../base/arguments.ts';
import { showAs } from '../../base/inspect.ts';
import { KeyedCalls } from '../../cluster/results/keyed-calls.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import type { KeptResults, KeptResultsHost, Results } from '../../pool/calls/kept-results.ts';
import {
  CONNECTION_OPTIONS,
  checkConnectionOptions,
  type NatsConnect,
  type NatsConnectionOptions,
} from '../connection/connection-options.ts';
import { BucketStore } from './bucket-store.ts';

/** The options of a NatsResults. */
export type NatsResultsOptions = NatsConnect & {
  /** The name of the bucket: 1 to 64 letters, digits, '-' and '_'. It is made if it is missing. */
  bucket: string;
  /**
   * Milliseconds after which a result is forgotten, at least 100 (by default never). It is set when
   * the bucket is made: a bucket that is there keeps its own, and a warning says so.
   */
  ttlMs?: number | undefined;
  /**
   * For how many milliseconds a result is written again while the servers are away or JetStream has
   * no leader; a stored result is read again for so long, too. Then the call fails with an
   * UnavailableError. Default: 60,000.
   */
  patienceMs?: number | undefined;
  /** Copies of the bucket that is made, 1 to 5, at most one a server. Default: 1. */
  replicas?: number | undefined;
};

const OPTIONS = [
  ...CONNECTION_OPTIONS,
  'bucket',
  'ttlMs',
  'patienceMs',
  'replicas',
] satisfies (keyof NatsResultsOptions)[];

const PATIENCE_MS = 60_000;

const BUCKET = /^[\w-]{1,64}$/;
/** What a server takes. */
const LEAST_TTL_MS = 100;

/**
 * Keeps the results of calls with a key in JetStream, where programs on many machines share them: in
 * the key-value bucket of this name; results of more than 512 KB in the object store of this name.
 * Given to a ClusterCoordinator of any strategy as its option `results`; to several, if they are to
 * share the results.
 *
 * @example
 * ```js fragment
 * import { ClusterCoordinator, LocalStrategy } from 'allstop/cluster';
 * import { NatsResults } from 'allstop/nats';
 *
 * const module = new URL('./tasks.mjs', import.meta.url);
 * const results = new NatsResults({ servers: 'nats://10.0.0.1:4222', bucket: 'squares' });
 * const cluster = new ClusterCoordinator(new LocalStrategy({ module, workers: 2 }), { results });
 * console.log(await cluster.run('square', [7], { key: 'seven' })); // runs once on all machines
 * await cluster.close();
 * ```
 */
export class NatsResults implements Results {
  /** The option `bucket`. */
  readonly bucket: string;
  /** The option `ttlMs`. */
  readonly ttlMs: number | undefined;
  /** The option `patienceMs`. */
  readonly patienceMs: number;
  /** The option `replicas`. */
  readonly replicas: number;
  /** Private, so that credentials do not show when the object is printed. */
  readonly #connection: NatsConnectionOptions;

  static {
    showAs(NatsResults.prototype, ({ bucket }) => ({ name: bucket, facts: [] }));
  }

  /**
   * Connects nothing: the first call with a key does. The connection then keeps the program alive
   * until the cluster is closed.
   *
   * @throws TypeError (`ERR_INVALID_ARG_TYPE`, `ERR_INVALID_ARG_VALUE`), RangeError;
   *   InvalidArgumentError: an invalid name or server address, or two ways to log in
   */
  constructor(options: NatsResultsOptions) {
    const given = checkOptions('options', options, OPTIONS) as NatsResultsOptions;
    const { bucket, ttlMs, patienceMs = PATIENCE_MS, replicas = 1 } = given;
    checkString('options.bucket', bucket);
    if (!BUCKET.test(bucket)) {
      throw new InvalidArgumentError(
        `The name of a bucket must be 1 to 64 letters, digits, '-' and '_'. Received '${bucket}'`,
      );
    }
    if (ttlMs !== undefined) {
      checkDuration('options.ttlMs', ttlMs);
      if (ttlMs < LEAST_TTL_MS) throw outOfRange('options.ttlMs', `>= ${LEAST_TTL_MS}`, ttlMs);
    }
    checkDuration('options.patienceMs', patienceMs);
    checkInteger('options.replicas', replicas, 1, 5);
    this.bucket = bucket;
    this.ttlMs = ttlMs;
    this.patienceMs = patienceMs;
    this.replicas = replicas;
    this.#connection = checkConnectionOptions(given);
  }

  /** @internal */
  open(definition: string, host: KeptResultsHost): KeptResults {
    return new KeyedCalls(new BucketStore(this, this.#connection), definition, host);
  }
}
