/** Checkpoints in a bucket of JetStream's object store, over the coordinator's connection. */

import type { ObjectStore } from '@nats-io/obj';
import type { NatsConnection } from '@nats-io/transport-node';
import { type CheckpointSource, NotACheckpoint } from '../../variables/checkpoint-file.ts';
import type { CheckpointStore } from '../../variables/checkpoint-store.ts';
import { load } from '../connection/connection.ts';
import { readObject, writeObject } from '../results/objects.ts';

/** What a message has besides a chunk: subject and headers. */
const OVERHEAD_BYTES = 1_024;

type Opened = { nats: NatsConnection; objects: ObjectStore };

export class BucketCheckpoints implements CheckpointStore {
  readonly #bucket: string;
  readonly #connected: () => Promise<NatsConnection>;

  /** @param connected - resolves when there is a connection; rejects when there will be none */
  constructor(bucket: string, connected: () => Promise<NatsConnection>) {
    this.#bucket = bucket;
    this.#connected = connected;
  }

  get where(): string {
    return `in the bucket '${this.#bucket}'`;
  }

  async names(): Promise<string[]> {
    const { objects } = await this.#open();
    return (await objects.list()).flatMap(({ name, deleted }) => (deleted ? [] : [name]));
  }

  pathOf(name: string): string {
    return `${this.#bucket}/${name}`;
  }

  /** The object store says that an object is there when all of its chunks are. */
  async write(name: string, pieces: readonly Uint8Array[]): Promise<void> {
    const { nats, objects } = await this.#open();
    const most = (nats.info?.max_payload ?? Number.POSITIVE_INFINITY) - OVERHEAD_BYTES;
    await writeObject(objects, name, Buffer.concat(pieces), most);
  }

  async read<T>(name: string, use: (source: CheckpointSource) => Promise<T>): Promise<T> {
    const { nats, objects } = await this.#open();
    const bytes = await readObject(objects, name, () => !nats.isClosed());
    if (bytes === undefined) throw new NotACheckpoint('it is gone');
    const read = async (into: Uint8Array, at: number): Promise<number> => {
      const part = bytes.subarray(at, at + into.byteLength);
      into.set(part);
      return part.byteLength;
    };
    return await use({ size: bytes.byteLength, read });
  }

  async remove(name: string): Promise<void> {
    const { objects } = await this.#open();
    await objects.delete(name);
  }

  async #open(): Promise<Opened> {
    const nats = await this.#connected();
    const { jetstream } = await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
    const { Objm } = await load('@nats-io/obj', () => import('@nats-io/obj'));
    return { nats, objects: await new Objm(jetstream(nats)).create(this.#bucket) };
  }
}
