/** The public class NatsResults, and its store: a bucket in JetStream. */

import { checkDuration, checkOptions, checkString, outOfRange } from '../../base/arguments.ts';
import { showAs } from '../../base/inspect.ts';
import type { ResultStore, Results } from '../../cluster/results/result-store.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';
import {
  CONNECTION_OPTIONS,
  checkConnectionOptions,
  type NatsConnectionOptions,
  type NatsCredentials,
  type NatsTlsOptions,
} from '../connection/connection-options.ts';
import { BucketStore } from './bucket-store.ts';

/** The options of a NatsResults. */
export type NatsResultsOptions = NatsCredentials & {
  /**
   * `nats://host:4222`, `tls://…` or `host:port`: one or several addresses of one server or one
   * cluster of servers.
   */
  servers: string | readonly string[];
  /** The name of the bucket: 1 to 64 letters, digits, '-' and '_'. It is made if it is missing. */
  bucket: string;
  /**
   * Milliseconds after which a result is forgotten, at least 100 (by default never). It is set when
   * the bucket is made: a bucket that is there keeps its own, and a warning says so.
   */
  ttlMs?: number | undefined;
  /**
   * `true`, or the options of TLS: a server without TLS is refused. Default: the same if an address
   * begins with `tls://`; else TLS is used if the server has it.
   */
  tls?: NatsTlsOptions | boolean | undefined;
};

const OPTIONS = [...CONNECTION_OPTIONS, 'bucket', 'ttlMs'] satisfies (keyof NatsResultsOptions)[];

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
    const { bucket, ttlMs } = given;
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
    this.bucket = bucket;
    this.ttlMs = ttlMs;
    this.#connection = checkConnectionOptions(given);
  }

  /** @internal */
  open(): ResultStore {
    return new BucketStore(this.bucket, this.ttlMs, this.#connection);
  }
}
