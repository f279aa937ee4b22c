/** Bytes in JetStream's object store, whole or as much as there is. */

import type { JetStreamClient } from '@nats-io/jetstream';
import type { ObjectResult, ObjectStore } from '@nats-io/obj';
import type { NatsConnection } from '@nats-io/transport-node';
import { within } from '../../base/timer.ts';
import { UnavailableError } from '../../errors/errors.ts';
import { load } from '../connection/connection.ts';

const CHUNK_BYTES = 128 * 1024;
/** Chunks that have not come for so long are gone: expired, or replaced by another writer's. */
const CHUNK_MS = 10_000;

/** What a message has besides its bytes: subject and headers. */
const OVERHEAD_BYTES = 1_024;
/** With less room for its bytes than for the rest, an object would take very many messages. */
const LEAST_PAYLOAD = 2 * OVERHEAD_BYTES;
const USUAL_PAYLOAD = 1024 * 1024;

/**
 * How many bytes a message may have, besides its subject and headers.
 *
 * @throws UnavailableError: too few to write anything
 */
export function roomInMessage({ info }: NatsConnection): number {
  const payload = info?.max_payload ?? USUAL_PAYLOAD;
  if (payload >= LEAST_PAYLOAD) return payload - OVERHEAD_BYTES;
  throw new UnavailableError(
    `The server's max_payload of ${payload} bytes is too small. What to do: set it to ${LEAST_PAYLOAD} or more (1MB is usual)`,
  );
}

/**
 * @param most - how many bytes a message may have (`roomInMessage`)
 * @param mayWrite - awaited before the last chunk, without which there is no object
 */
export async function writeObject(
  objects: ObjectStore,
  name: string,
  bytes: Uint8Array,
  most: number,
  mayWrite: () => Promise<void>,
): Promise<void> {
  const size = Math.min(CHUNK_BYTES, most);
  let at = 0;
  // In chunks: the client copies what is left of a larger piece with each chunk that it sends.
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      if (at < bytes.byteLength) {
        controller.enqueue(bytes.subarray(at, (at += size)));
        return;
      }
      await mayWrite();
      controller.close();
    },
  };
  // No piece is pulled ahead: the client has stored all others when it asks for the end.
  const chunks = new ReadableStream(source, { highWaterMark: 0 });
  await objects.put({ name, options: { max_chunk_size: size } }, chunks);
}

/**
 * @param isUp - whether the connection is there
 * @returns the object, or its beginning if the rest is damaged or missing; undefined if the store has no such object
 * @throws (rejects) the client's error if the connection is lost
 */
export async function readObject(
  objects: ObjectStore,
  name: string,
  isUp: () => boolean,
): Promise<Uint8Array | undefined> {
  const found = await objects.get(name);
  if (found === null) return undefined;
  const chunks: Uint8Array[] = [];
  await readChunks(found, chunks).catch((error: unknown) => {
    if (!isUp()) throw error;
  });
  if (!isUp()) throw new Error('The connection was lost');
  return Buffer.concat(chunks);
}

/** @throws (rejects) the client's error; Error: they do not come */
export async function readChunks(found: ObjectResult, chunks: Uint8Array[]): Promise<void> {
  found.error.catch(() => {}); // the stream has the same error
  const reader = found.data.getReader();
  for (;;) {
    const part = await within(CHUNK_MS, reader.read(), () => undefined);
    if (part === undefined) {
      await reader.cancel();
      throw new Error('timeout: the bytes do not come');
    }
    if (part.done) return;
    chunks.push(part.value);
  }
}

/** Opens the object store of this name, which is made if it is missing. */
export async function openObjects(
  js: JetStreamClient,
  bucket: string,
  settings: { replicas: number; ttl?: number },
): Promise<ObjectStore> {
  const { Objm } = await load('@nats-io/obj', () => import('@nats-io/obj'));
  return await new Objm(js).create(bucket, settings);
}
