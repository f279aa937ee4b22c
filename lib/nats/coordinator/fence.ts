/**
 * Sees to it that one run holds the cluster. The key `run` of the cluster's bucket names that run and
 * its token, which is greater than the token of every earlier run: by the tokens a node or
 * coordinator knows which of two runs is newer. JetStream stores only this bucket.
 *
 * 1. The holder signs the key: it writes it again, on the condition that nobody else has written it
 *    since (its revision). So whoever has signed held the cluster at that moment, whatever was
 *    partitioned, and who has been taken over learns it by the next signature.
 * 2. A read may be answered by a replica that lags behind. It decides nothing that a signature does
 *    not decide again: only a greater token, which never goes back, ends a run by itself.
 * 3. The key is written by `hold` and `release` alone, which the caller does not overlap.
 */

import type { KV, KvEntry } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { attempt, codeOf } from '../../base/thrown-value.ts';
import { FailedPreconditionError } from '../../errors/errors.ts';
import { load } from '../connection/connection.ts';
import { chainOf } from '../connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { openJetStream } from '../connection/jetstream.ts';
import { RUN, type RunInfo } from '../wire/control-messages.ts';
import { isMaybe, isRecord, isText } from '../wire/shapes.ts';

/** The content of the key. `ended`: when the run closed its cluster; unset if it lives, or died. */
export type Run = RunInfo & { ended?: string };

/** What the key says. `run`: undefined if it names none. `revision`: how often it was written; 0: never. */
export type Holder = { readonly run: Run | undefined; readonly revision: number };

const KEY = 'run';
/** A signature that JetStream does not answer is tried again soon. */
const TIMEOUT_MS = 3_000;
const bucketOf = (cluster: string): string => `allstop_${cluster}`;

/** The key of one cluster, as one run reads and writes it. */
export class Fence {
  readonly #cluster: string;
  readonly #replicas: number;
  readonly #own: Omit<RunInfo, 'token'>;
  readonly #options: NatsConnectionOptions;
  /** The revision of the key as this run wrote it last; undefined: it has to be read. */
  #revision: number | undefined;
  #opened: { nats: NatsConnection; kv: Promise<KV> } | undefined;

  constructor(
    cluster: string,
    replicas: number,
    own: Omit<RunInfo, 'token'>,
    options: NatsConnectionOptions,
  ) {
    this.#options = options;
    this.#cluster = cluster;
    this.#replicas = replicas;
    this.#own = own;
  }

  async read(nats: NatsConnection): Promise<Holder> {
    return holderIn(await (await this.#open(nats)).get(KEY));
  }

  /** @returns false if the key has another revision. `revision` 0: there is none */
  async write(
    nats: NatsConnection,
    token: number,
    revision: number,
    ended?: string,
  ): Promise<boolean> {
    const kv = await this.#open(nats);
    const value = JSON.stringify({ ...this.#own, token, ...(ended !== undefined && { ended }) });
    this.#revision = undefined; // until the answer is here, which may be lost
    try {
      this.#revision = await (revision === 0
        ? kv.create(KEY, value)
        : kv.update(KEY, value, revision));
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  /** Writes the key again as it is. @returns false if it has to be read */
  async sign(nats: NatsConnection, token: number): Promise<boolean> {
    return this.#revision !== undefined && (await this.write(nats, token, this.#revision));
  }

  /**
   * Notes in the key that this run has closed its cluster, so that `allstop doctor` can tell the end
   * from a crash, and a run that stands by begins. Changes nothing if another run holds the cluster
   * or JetStream has lost the key.
   *
   * @throws (rejects) errors of JetStream, also if the key changes meanwhile
   */
  async release(nats: NatsConnection): Promise<void> {
    const { run, revision } = await this.read(nats);
    if (run?.run !== this.#own.run) return;
    await this.write(nats, run.token, revision, new Date().toISOString());
  }

  /** After an error: the bucket may be gone, and is made again. */
  forget(): void {
    this.#opened = undefined;
  }

  /** The bucket, opened once for each connection. */
  async #open(nats: NatsConnection): Promise<KV> {
    if (this.#opened?.nats !== nats) this.#opened = { nats, kv: this.#create(nats) };
    return await this.#opened.kv;
  }

  async #create(nats: NatsConnection): Promise<KV> {
    const { Kvm } = await load('@nats-io/kv', () => import('@nats-io/kv'));
    const js = await openJetStream(nats, this.#options, TIMEOUT_MS);
    const settings = { history: 1, replicas: this.#replicas };
    return await new Kvm(js).create(bucketOf(this.#cluster), settings);
  }
}

export function takenOver(cluster: string, by?: RunInfo): FailedPreconditionError {
  const who = by === undefined ? '' : ` (${by.host}, pid ${by.pid})`;
  return new FailedPreconditionError(
    `A newer run has taken over the cluster '${cluster}'${who}: ` +
      'end one of the two, or give it another cluster name',
  );
}

/** The error of a run that may not take the cluster (`onHeld: 'refuse'`). */
export function heldBy(cluster: string, { host, pid, since }: RunInfo): FailedPreconditionError {
  return new FailedPreconditionError(
    `The cluster '${cluster}' is held by a run of ${host}, pid ${pid}, since ${since} (onHeld: 'refuse'): ` +
      'end that run, or give this one another cluster name',
  );
}

/** Reads which run holds the cluster. Undefined when no run has, or the bucket is missing. */
export async function holderOf(
  nats: NatsConnection,
  cluster: string,
  options: NatsConnectionOptions,
  timeout: number,
): Promise<Run | undefined> {
  const js = await openJetStream(nats, options, timeout);
  const { Kvm } = await load('@nats-io/kv', () => import('@nats-io/kv'));
  const bucket = await new Kvm(js).open(bucketOf(cluster), { allow_direct: true });
  const entry = await bucket.get(KEY).catch((error: unknown) => {
    if (isNoBucket(error)) return null;
    throw error;
  });
  return holderIn(entry).run;
}

const isRun = isRecord<Run>({ ...RUN, ended: isMaybe(isText) });

function holderIn(entry: KvEntry | null): Holder {
  const value = entry?.operation === 'PUT' ? attempt<unknown>(() => entry.json()) : undefined;
  return { run: isRun(value) ? value : undefined, revision: entry?.revision ?? 0 };
}

/** Whether the bucket is missing. To a direct get, the server then replies 'no responders'. */
function isNoBucket(error: unknown): boolean {
  return chainOf(error).some(
    ({ code, name }) => code === 10059 || name === 'StreamNotFoundError' || name === 'NoResponders',
  );
}

/** Whether the key has changed since it was read (JetStream: wrong last sequence). */
function isConflict(error: unknown): boolean {
  const code = codeOf(error);
  return code === 10071 || code === 10164; // 10164: the same, without the sequence number
}
