/**
 * Stored results in JetStream: a key-value bucket, and an object store of the same name for the
 * large ones.
 *
 * 1. A record of up to LARGEST_INLINE bytes is the value of its key. A larger one is an object with
 *    the name of the key, and the value of the key is MARK. The object is whole before the key says
 *    so, and a reader checks each record (results/record.ts): another program may have written it meanwhile.
 * 2. An operation that loses its connection is begun again on the next one: each may be done twice.
 *    It fails when its Patience is over.
 * 3. What belongs to a connection is in `#opened`, for the connection of that moment only.
 */

import type { KV } from '@nats-io/kv';
import type { ObjectStore } from '@nats-io/obj';
import type { NatsConnection } from '@nats-io/transport-node';
import type { ResultStore } from '../../cluster/results/result-store.ts';
import { Turns } from '../../cluster/results/turns.ts';
import { FailedPreconditionError, UnavailableError } from '../../errors/errors.ts';
import { Connection, load } from '../connection/connection.ts';
import { explainFailure, failureOfJetStream } from '../connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { Patience } from '../connection/patience.ts';
import { readObject, roomInMessage, writeObject } from './objects.ts';

/** A value of a key that says: the record is the object of that name. */
const MARK: Buffer = Buffer.from('allstop-object-1', 'latin1');
const LARGEST_INLINE: number = 512 * 1024;
/** Each is in memory, as a whole. */
const OBJECTS_AT_ONCE = 8;

type Opened = {
  readonly nats: NatsConnection;
  readonly kv: Promise<KV>;
  /** Opened when the first large record is there. */
  objects: Promise<ObjectStore> | undefined;
};

export class BucketStore implements ResultStore {
  readonly #bucket: string;
  readonly #ttlMs: number;
  readonly #options: NatsConnectionOptions;
  readonly #turns = new Turns(OBJECTS_AT_ONCE);
  readonly #waiting = new Set<() => void>();
  /** Undefined until the first operation. */
  #connection: Connection | undefined;
  #opened: Opened | undefined;
  /** Why there is no connection, and which servers were tried. */
  #failure: { cause: unknown; servers: string } | undefined;
  /** What the server has forbidden over the present connection. */
  #refused: Error | undefined;
  #isClosed = false;
  #hasWarned = false;

  constructor(bucket: string, ttlMs: number | undefined, options: NatsConnectionOptions) {
    this.#bucket = bucket;
    this.#ttlMs = ttlMs === undefined || ttlMs === Number.POSITIVE_INFINITY ? 0 : Math.ceil(ttlMs);
    this.#options = options;
  }

  whereIs(name: string): string {
    return `key ${name} of the bucket '${this.#bucket}' (${this.#servers})`;
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    return await this.#tryTo('read', async (opened) => {
      const entry = await (await opened.kv).get(name);
      if (entry === null || entry.operation !== 'PUT') return undefined;
      if (!MARK.equals(entry.value)) return entry.value;
      const objects = await this.#objectsOf(opened);
      const isUp = (): boolean => !opened.nats.isClosed();
      return await this.#turns.take(() => readObject(objects, name, isUp));
    });
  }

  async put(name: string, record: Uint8Array, mayWrite: () => Promise<void>): Promise<void> {
    await this.#tryTo('written', async (opened) => {
      const kv = await opened.kv;
      const most = roomInMessage(opened.nats);
      if (record.byteLength <= Math.min(LARGEST_INLINE, most)) {
        await mayWrite();
        await kv.put(name, record);
        return;
      }
      const objects = await this.#objectsOf(opened);
      await this.#turns.take(() => writeObject(objects, name, record, most, mayWrite));
      await mayWrite();
      await kv.put(name, MARK);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake();
    await this.#connection?.close();
  }

  get #servers(): string {
    return this.#options.servers.join(', ');
  }

  /** @throws (rejects) UnavailableError */
  async #tryTo<T>(what: 'read' | 'written', body: (opened: Opened) => Promise<T>): Promise<T> {
    const patience = new Patience();
    for (;;) {
      const nats = await this.#connected(what, patience);
      const opened = this.#open(nats);
      try {
        return await body(opened);
      } catch (error) {
        if (error instanceof UnavailableError) throw error; // a package is missing
        if (error instanceof FailedPreconditionError) throw error; // of `mayWrite`
        if (this.#opened === opened) this.#opened = undefined; // the bucket may be made again
        const isLost = nats.isClosed() || this.#connection?.nats !== nats;
        if (!isLost || this.#isClosed) {
          throw this.#unavailable(what, this.#refused ?? failureOfJetStream(error), this.#servers);
        }
      }
    }
  }

  async #connected(what: 'read' | 'written', patience: Patience): Promise<NatsConnection> {
    this.#connection ??= new Connection(
      `allstop results ${this.#bucket}`,
      `_INBOX.allstop_results.${this.#bucket}`,
      this.#options,
      {
        onUp: () => {
          this.#failure = undefined;
          this.#refused = undefined;
          this.#wake();
        },
        onDown: (cause, servers) => {
          this.#failure = { cause, servers };
          this.#wake();
        },
        onRefused: (error) => {
          if (error.name === 'PermissionViolationError') this.#refused = error;
        },
      },
    );
    for (;;) {
      const { nats } = this.#connection;
      if (nats !== undefined && !nats.isClosed() && !this.#isClosed) return nats;
      const { cause, servers } = this.#failure ?? {};
      if (cause instanceof UnavailableError) throw cause; // the client is missing
      if (patience.isOver || this.#isClosed) {
        const why = cause ?? new Error('timeout: there is no connection yet');
        throw this.#unavailable(what, why, servers ?? this.#servers);
      }
      await this.#changed(patience);
    }
  }

  /** Resolves when the connection has changed, at the latest when `patience` is over. */
  async #changed(patience: Patience): Promise<void> {
    let wake = (): void => {};
    const changed = new Promise<void>((resolve) => {
      wake = resolve;
    });
    this.#waiting.add(wake);
    await patience.wait(changed);
    this.#waiting.delete(wake);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  #open(nats: NatsConnection): Opened {
    if (this.#opened?.nats === nats) return this.#opened;
    this.#opened = { nats, kv: this.#openKv(nats), objects: undefined };
    return this.#opened;
  }

  async #openKv(nats: NatsConnection): Promise<KV> {
    const { jetstream } = await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
    const { Kvm } = await load('@nats-io/kv', () => import('@nats-io/kv'));
    const kv = await new Kvm(jetstream(nats)).create(this.#bucket, {
      history: 1,
      // Replicas other than the leader may not have what was stored a moment ago.
      allow_direct: false,
      ...(this.#ttlMs > 0 && { ttl: this.#ttlMs }),
    });
    if (this.#ttlMs > 0 && !this.#hasWarned) await this.#checkTtl(kv);
    return kv;
  }

  async #checkTtl(kv: KV): Promise<void> {
    const { ttl } = await kv.status();
    if (ttl === this.#ttlMs) return;
    this.#hasWarned = true;
    const kept = ttl === 0 ? 'for ever' : `for ${ttl} ms`;
    process.emitWarning(
      `The bucket '${this.#bucket}' was made before, and keeps results ${kept}, not for ${this.#ttlMs} ms (options.ttlMs). Change it with the nats command (nats stream edit KV_${this.#bucket} --max-age …), or take another bucket`,
      { type: 'ResultsWarning', code: 'ALLSTOP_RESULTS' },
    );
  }

  async #objectsOf(opened: Opened): Promise<ObjectStore> {
    opened.objects ??= this.#openObjects(opened.nats);
    return await opened.objects;
  }

  async #openObjects(nats: NatsConnection): Promise<ObjectStore> {
    const { jetstream } = await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
    const { Objm } = await load('@nats-io/obj', () => import('@nats-io/obj'));
    const ttl = this.#ttlMs * 1_000_000; // nanoseconds
    return await new Objm(jetstream(nats)).create(this.#bucket, ttl > 0 ? { ttl } : {});
  }

  #unavailable(what: string, error: unknown, servers: string): UnavailableError {
    const { cause, remedy } = explainFailure(error, servers);
    return new UnavailableError(
      `The results in the bucket '${this.#bucket}' could not be ${what}: ${cause}. To do: ${remedy}`,
      { cause: error },
    );
  }
}
