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
        return bucketFiles(bucket, nats, await js.jetstreamManager(false), objects);
      },
    });
    try {
      return await line.use(what, body);
    } finally {
      await line.close();
    }
  },
});

function bucketFiles(
  bucket: string,
  nats: NatsConnection,
  { streams }: JetStreamManager,
  objects: ObjectStore,
): CheckpointFiles {
  const stream = `OBJ_${bucket}`;
  const metas = `$O.${bucket}.M.`;
  const chunksOf = ({ nuid }: ObjectInfo): string => `$O.${bucket}.C.${nuid}`;
  const purge = async (filter: string): Promise<void> => {
    await streams.purge(stream, { filter });
  };

  /** How many messages each subject has. */
  const subjects = async (filter: string): Promise<Record<string, number>> => {
    const { state } = await streams.info(stream, { subjects_filter: filter });
    return state.subjects ?? {};
  };

  /** Not by the client's `list`, which one damaged meta message ends. */
  const list = async (): Promise<string[]> =>
    Object.keys(await subjects(`${metas}>`)).map((subject) =>
      Buffer.from(subject.slice(metas.length), 'base64url').toString(),
    );

  /** @throws (rejects) NotACheckpoint: the meta message is damaged */
  const infoOf = async (name: string): Promise<ObjectInfo | undefined> => {
    try {
      const info = await objects.info(name);
      return info === null || info.deleted ? undefined : info;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new NotACheckpoint(`its description is damaged: ${error.message}`, { cause: error });
    }
  };

  /** @throws (rejects) NotACheckpoint: the bytes are other ones; another error: they do not come */
  const bytesOf = async (name: string): Promise<Uint8Array> => {
    const chunks: Uint8Array[] = [];
    try {
      const found = await objects.get(name);
      if (found === null) throw new NotACheckpoint('it is not there any more');
      await readChunks(found, chunks);
    } catch (error) {
      // The client's own errors about the object, and no others, name its digest.
      if (!/digest/.test(messageOf(error)) || nats.isClosed()) throw error;
      throw new NotACheckpoint(messageOf(error).replaceAll(/\s+/g, ' '), { cause: error });
    }
    return Buffer.concat(chunks);
  };

  return {
    list,
    async write(name, parts, mayWrite) {
      await writeObject(objects, name, Buffer.concat(parts), roomInMessage(nats), mayWrite);
    },
    async read(name, body) {
      const info = await infoOf(name);
      if (info === undefined) throw new NotACheckpoint('it is not there any more');
      if (info.options?.link) throw new NotACheckpoint('it is a link to another object');
      const subject = chunksOf(info);
      const { [subject]: found = 0 } = await subjects(subject);
      if (found !== info.chunks) {
        throw new NotACheckpoint(`it has ${found} chunks, not ${info.chunks}`);
      }
      const bytes = await bytesOf(name);
      return await body({
        size: bytes.byteLength,
        read: async (into, at) => {
          if (at + into.byteLength > bytes.byteLength) throw new NotACheckpoint('it is cut off');
          into.set(bytes.subarray(at, at + into.byteLength));
        },
      });
    },
    /** The client's `delete` would leave a message for each name, for ever. */
    async remove(name) {
      const info = await infoOf(name).catch(() => undefined);
      const encoded = Buffer.from(name).toString('base64url');
      // The client pads the names that it encodes.
      await purge(metas + encoded.padEnd(Math.ceil(encoded.length / 4) * 4, '='));
      if (info !== undefined) await purge(chunksOf(info));
    },
    async removeUnfinished() {
      const left = new Set(Object.keys(await subjects(`$O.${bucket}.C.>`)));
      if (left.size === 0) return;
      for (const name of await list()) {
        const info = await infoOf(name).catch(() => null);
        if (info === null) return; // it is damaged: which chunks are its cannot be told
        if (info !== undefined) left.delete(chunksOf(info));
      }
      for (const subject of left) {
        const last = await streams.getMessage(stream, { last_by_subj: subject });
        if (last !== null && Date.now() - last.time.getTime() > UNFINISHED_MS) await purge(subject);
      }
    },
  };
}
