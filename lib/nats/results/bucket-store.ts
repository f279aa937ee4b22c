/**
 * Stored results in JetStream: a key-value bucket, and an object store of the same name for the
 * large ones.
 *
 * 1. A record of up to LARGEST_INLINE bytes is the value of its key. A larger one is an object with
 *    the name of the key, and the value of the key is MARK. The object is whole before the key says
 *    so, and a reader checks each record (results/record.ts): another program may have written it meanwhile.
 * 2. An operation that loses its connection is begun again on the next one (store-line.ts): each may be
 *    done twice.
 * 3. What belongs to a connection is in `#opened`, for the connection of that moment only.
 */

import type { KV } from '@nats-io/kv';
import type { ObjectStore } from '@nats-io/obj';
import type { NatsConnection } from '@nats-io/transport-node';
import { type ResultStore, Turns } from '../../cluster/results/result-store.ts';
import { load } from '../connection/connection.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { openJetStream } from '../connection/jetstream.ts';
import { StoreLine } from '../connection/store-line.ts';
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

/** The part of NatsResults that its store reads. */
export type BucketSettings = {
  readonly bucket: string;
  readonly ttlMs: number | undefined;
  readonly patienceMs: number;
  readonly replicas: number;
};

export class BucketStore implements ResultStore {
  readonly #settings: BucketSettings;
  readonly #ttlMs: number;
  readonly #options: NatsConnectionOptions;
  readonly #line: StoreLine;
  readonly #turns = new Turns(OBJECTS_AT_ONCE);
  #opened: Opened | undefined;
  #hasWarned = false;

  constructor(settings: BucketSettings, options: NatsConnectionOptions) {
    const { bucket, ttlMs, patienceMs } = settings;
    this.#settings = settings;
    this.#ttlMs = ttlMs === undefined || ttlMs === Number.POSITIVE_INFINITY ? 0 : Math.ceil(ttlMs);
    this.#options = options;
    this.#line = new StoreLine({
      name: `allstop results ${bucket}`,
      inboxPrefix: `_INBOX.allstop_results.${bucket}`,
      options,
      patienceMs,
      whatFailed: (what) => `The results in the bucket '${bucket}' could not be ${what}`,
    });
  }

  get #bucket(): string {
    return this.#settings.bucket;
  }

  whereIs(name: string): string {
    return `key ${name} of the bucket '${this.#bucket}' (${this.#line.servers})`;
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
    await this.#line.close();
  }

  /** @throws (rejects) UnavailableError */
  async #tryTo<T>(what: 'read' | 'written', body: (opened: Opened) => Promise<T>): Promise<T> {
    return await this.#line.use(what, async (nats) => {
      const opened = this.#open(nats);
      try {
        return await body(opened);
      } catch (error) {
        if (this.#opened === opened) this.#opened = undefined; // the bucket may be made again
        throw error;
      }
    });
  }

  #open(nats: NatsConnection): Opened {
    if (this.#opened?.nats === nats) return this.#opened;
    this.#opened = { nats, kv: this.#openKv(nats), objects: undefined };
    return this.#opened;
  }

  async #openKv(nats: NatsConnection): Promise<KV> {
    const js = await openJetStream(nats, this.#options);
    const { Kvm } = await load('@nats-io/kv', () => import('@nats-io/kv'));
    const kv = await new Kvm(js).create(this.#bucket, {
      history: 1,
      replicas: this.#settings.replicas,
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
    const js = await openJetStream(nats, this.#options);
    const { Objm } = await load('@nats-io/obj', () => import('@nats-io/obj'));
    const ttl = this.#ttlMs * 1_000_000; // nanoseconds
    const { replicas } = this.#settings;
    return await new Objm(js).create(this.#bucket, { replicas, ...(ttl > 0 && { ttl }) });
  }
}
