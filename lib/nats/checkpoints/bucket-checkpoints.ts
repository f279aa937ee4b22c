/**
 * Checkpoints as objects of a bucket in JetStream.
 *
 * 1. An object is there once its meta message is, which is sent after all its chunks are stored.
 * 2. A name is written once: the chunks of an object never change.
 * 3. Chunks without a meta message belong to a write that goes on, or that was cut off. Those that
 *    are older than UNFINISHED_MS are of a write that was cut off.
 * 4. A connection lasts for one use of the store: nothing keeps the program alive in between.
 * 5. A use that loses its connection is begun again on the next one (store-line.ts).
 */

import type { JetStreamManager } from '@nats-io/jetstream';
import type { ObjectInfo, ObjectStore } from '@nats-io/obj';
import type { NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../base/thrown-value.ts';
import {
  type CheckpointFiles,
  type CheckpointSource,
  type CheckpointStore,
  NotACheckpoint,
} from '../../cluster/checkpoints/checkpoint-file.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { openJetStream } from '../connection/jetstream.ts';
import { StoreLine } from '../connection/store-line.ts';
import { openObjects, readChunks, roomInMessage, writeObject } from '../results/objects.ts';

const UNFINISHED_MS = 10 * 60_000;

/** The part of NatsStrategy that its checkpoints read. */
export type CheckpointSettings = {
  readonly replicas: number;
  readonly unavailableAfterMs: number;
};

export const bucketCheckpoints = (
  bucket: string,
  { replicas, unavailableAfterMs }: CheckpointSettings,
  options: NatsConnectionOptions,
): CheckpointStore => ({
  whereIs: (name) => `${bucket}/${name}`,
  async use(what, body) {
    const line = new StoreLine<CheckpointFiles>({
      name: `allstop checkpoints ${bucket}`,
      inboxPrefix: `_INBOX.allstop_checkpoints.${bucket}`,
      options,
      patienceMs: unavailableAfterMs,
      subject: `The checkpoints in the bucket '${bucket}'`,
      async open(nats) {
        const js = await openJetStream(nats, options);
        const objects = await openObjects(js, bucket, { replicas });
        return new BucketFiles(bucket, nats, await js.jetstreamManager(false), objects);
      },
    });
    try {
      return await line.use(what, body);
    } finally {
      await line.close();
    }
  },
});

class BucketFiles implements CheckpointFiles {
  readonly #bucket: string;
  readonly #nats: NatsConnection;
  readonly #manager: JetStreamManager;
  readonly #objects: ObjectStore;

  constructor(
    bucket: string,
    nats: NatsConnection,
    manager: JetStreamManager,
    objects: ObjectStore,
  ) {
    this.#bucket = bucket;
    this.#nats = nats;
    this.#manager = manager;
    this.#objects = objects;
  }

  /** Not by the client's `list`, which one damaged meta message ends. */
  async list(): Promise<string[]> {
    const metas = await this.#subjects(`${this.#metas}>`);
    return Object.keys(metas).map((subject) =>
      Buffer.from(subject.slice(this.#metas.length), 'base64url').toString(),
    );
  }

  async write(
    name: string,
    parts: readonly Uint8Array[],
    mayWrite: () => Promise<void>,
  ): Promise<void> {
    const most = roomInMessage(this.#nats);
    await writeObject(this.#objects, name, Buffer.concat(parts), most, mayWrite);
  }

  async read<T>(name: string, body: (source: CheckpointSource) => Promise<T>): Promise<T> {
    const info = await this.#info(name);
    if (info === undefined) throw new NotACheckpoint('it is not there any more');
    if (info.options?.link) throw new NotACheckpoint('it is a link to another object');
    const chunks = await this.#subjects(this.#chunksOf(info));
    const found = chunks[this.#chunksOf(info)] ?? 0;
    if (found !== info.chunks) {
      throw new NotACheckpoint(`it has ${found} chunks, not ${info.chunks}`);
    }
    const bytes = await this.#bytesOf(name);
    return await body({
      size: bytes.byteLength,
      read: async (into, at) => {
        if (at + into.byteLength > bytes.byteLength) throw new NotACheckpoint('it is cut off');
        into.set(bytes.subarray(at, at + into.byteLength));
      },
    });
  }

  /** @throws (rejects) NotACheckpoint: the bytes are other ones; another error: they do not come */
  async #bytesOf(name: string): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    try {
      const found = await this.#objects.get(name);
      if (found === null) throw new NotACheckpoint('it is not there any more');
      await readChunks(found, chunks);
    } catch (error) {
      // The client's own errors about the object, and no others, name its digest.
      if (!/digest/.test(messageOf(error)) || this.#nats.isClosed()) throw error;
      throw new NotACheckpoint(messageOf(error).replaceAll(/\s+/g, ' '), { cause: error });
    }
    return Buffer.concat(chunks);
  }

  /** The client's `delete` would leave a message for each name, for ever. */
  async remove(name: string): Promise<void> {
    const info = await this.#info(name).catch(() => undefined);
    const encoded = Buffer.from(name).toString('base64url');
    // The client pads the names that it encodes.
    await this.#purge(this.#metas + encoded.padEnd(Math.ceil(encoded.length / 4) * 4, '='));
    if (info !== undefined) await this.#purge(this.#chunksOf(info));
  }

  async removeUnfinished(): Promise<void> {
    const prefix = `$O.${this.#bucket}.C.`;
    const left = new Set(Object.keys(await this.#subjects(`${prefix}>`)));
    if (left.size === 0) return;
    for (const name of await this.list()) {
      const info = await this.#info(name).catch(() => null);
      if (info === null) return; // it is damaged: which chunks are its cannot be told
      if (info !== undefined) left.delete(this.#chunksOf(info));
    }
    for (const subject of left) {
      const last = await this.#manager.streams.getMessage(this.#stream, { last_by_subj: subject });
      if (last !== null && Date.now() - last.time.getTime() > UNFINISHED_MS) {
        await this.#purge(subject);
      }
    }
  }

  get #stream(): string {
    return `OBJ_${this.#bucket}`;
  }

  get #metas(): string {
    return `$O.${this.#bucket}.M.`;
  }

  #chunksOf({ nuid }: ObjectInfo): string {
    return `$O.${this.#bucket}.C.${nuid}`;
  }

  /** How many messages each subject has. */
  async #subjects(filter: string): Promise<Record<string, number>> {
    const { state } = await this.#manager.streams.info(this.#stream, { subjects_filter: filter });
    return state.subjects ?? {};
  }

  /** @throws (rejects) NotACheckpoint: the meta message is damaged */
  async #info(name: string): Promise<ObjectInfo | undefined> {
    try {
      const info = await this.#objects.info(name);
      return info === null || info.deleted ? undefined : info;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new NotACheckpoint(`its description is damaged: ${error.message}`, { cause: error });
    }
  }

  async #purge(filter: string): Promise<void> {
    await this.#manager.streams.purge(this.#stream, { filter });
  }
}
