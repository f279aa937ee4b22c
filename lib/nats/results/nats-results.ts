/** The public class NatsResults, and its store: a bucket in JetStream. */

import type { KV } from '@nats-io/kv';
import type { ObjectStore } from '@nats-io/obj';
import type { NatsConnection } from '@nats-io/transport-node';
import {
  type Checks,
  checkDuration,
  checkOptions,
  integerFrom,
  outOfRange,
  unchecked,
} from '../../base/arguments.ts';
import { showAs } from '../../base/inspect.ts';
import {
  checkBucket,
  KeyedCalls,
  type ResultStore,
  Turns,
} from '../../cluster/results/keyed-calls.ts';
import type { KeptResults, KeptResultsHost, Results } from '../../pool/calls/calls.ts';
import { load } from '../connection/connection.ts';
import {
  CONNECTION_OPTIONS,
  checkConnectionOptions,
  type NatsConnect,
  type NatsConnectionOptions,
} from '../connection/connection-options.ts';
import { openJetStream } from '../connection/jetstream.ts';
import { StoreLine } from '../connection/store-line.ts';
import { openObjects, readObject, roomInMessage, writeObject } from './objects.ts';

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

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  bucket: unchecked,
  ttlMs: checkDuration,
  patienceMs: checkDuration,
  replicas: integerFrom(1, 5),
} satisfies Checks;

const PATIENCE_MS = 60_000;

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
    checkBucket(bucket);
    if (ttlMs !== undefined && ttlMs < LEAST_TTL_MS) {
      throw outOfRange('options.ttlMs', `>= ${LEAST_TTL_MS}`, ttlMs);
    }
    this.bucket = bucket;
    this.ttlMs = ttlMs;
    this.patienceMs = patienceMs;
    this.replicas = replicas;
    this.#connection = checkConnectionOptions(given);
  }

  /** @internal */
  open(definition: string, host: KeptResultsHost): KeptResults {
    return new KeyedCalls(bucketStore(this, this.#connection), definition, host);
  }
}

// Stored results in JetStream: a key-value bucket, and an object store of the same name for the
// large ones.
//
// 1. A record of up to LARGEST_INLINE bytes is the value of its key. A larger one is an object with
//    the name of the key, and the value of the key is MARK. The object is whole before the key says
//    so, and a reader checks each record (keyed-calls.ts): another program may have written it meanwhile.
// 2. An operation that loses its connection is begun again on the next one (store-line.ts): each may be
//    done twice.
// 3. What belongs to a connection is opened for that one only.

/** A value of a key that says: the record is the object of that name. */
const MARK: Buffer = Buffer.from('allstop-object-1', 'latin1');
const LARGEST_INLINE: number = 512 * 1024;
/** Each is in memory, as a whole. */
const OBJECTS_AT_ONCE = 8;

type Opened = {
  readonly nats: NatsConnection;
  readonly kv: KV;
  /** Opened when the first large record is there. */
  objects(): Promise<ObjectStore>;
};

function bucketStore(
  { bucket, ttlMs = 0, patienceMs, replicas }: NatsResults,
  options: NatsConnectionOptions,
): ResultStore {
  /** 0: for ever. */
  const keptMs = ttlMs === Number.POSITIVE_INFINITY ? 0 : Math.ceil(ttlMs);
  const turns = new Turns(OBJECTS_AT_ONCE);
  let hasWarned = false;

  const checkTtl = async (kv: KV): Promise<void> => {
    const { ttl } = await kv.status();
    if (ttl === keptMs) return;
    hasWarned = true;
    const kept = ttl === 0 ? 'for ever' : `for ${ttl} ms`;
    process.emitWarning(
      `The bucket '${bucket}' was made before, and keeps results ${kept}, not for ${keptMs} ms (options.ttlMs). Change it with the nats command (nats stream edit KV_${bucket} --max-age …), or take another bucket`,
      { type: 'ResultsWarning', code: 'ALLSTOP_RESULTS' },
    );
  };

  const line = new StoreLine<Opened>({
    name: `allstop results ${bucket}`,
    inboxPrefix: `_INBOX.allstop_results.${bucket}`,
    options,
    patienceMs,
    subject: `The results in the bucket '${bucket}'`,
    async open(nats) {
      const js = await openJetStream(nats, options);
      const { Kvm } = await load('@nats-io/kv', () => import('@nats-io/kv'));
      const kv = await new Kvm(js).create(bucket, {
        history: 1,
        replicas,
        // Replicas other than the leader may not have what was stored a moment ago.
        allow_direct: false,
        ...(keptMs > 0 && { ttl: keptMs }),
      });
      if (keptMs > 0 && !hasWarned) await checkTtl(kv);
      const ttl = keptMs * 1_000_000; // nanoseconds
      let objects: Promise<ObjectStore> | undefined;
      const openOnce = () =>
        (objects ??= openObjects(js, bucket, { replicas, ...(ttl > 0 && { ttl }) }));
      return { nats, kv, objects: openOnce };
    },
  });

  return {
    whereIs: (name) => `key ${name} of the bucket '${bucket}' (${line.servers})`,
    get: (name) =>
      line.use('read', async ({ nats, kv, objects }) => {
        const entry = await kv.get(name);
        if (entry === null || entry.operation !== 'PUT') return undefined;
        if (!MARK.equals(entry.value)) return entry.value;
        const store = await objects();
        return await turns.take(() => readObject(store, name, () => !nats.isClosed()));
      }),
    put: (name, record, mayWrite) =>
      line.use('written', async ({ nats, kv, objects }) => {
        const most = roomInMessage(nats);
        const isInline = record.byteLength <= Math.min(LARGEST_INLINE, most);
        if (!isInline) {
          const store = await objects();
          await turns.take(() => writeObject(store, name, record, most, mayWrite));
        }
        await mayWrite();
        await kv.put(name, isInline ? record : MARK);
      }),
    close: () => line.close(),
  };
}
