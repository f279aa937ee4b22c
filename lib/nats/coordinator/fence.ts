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

import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { attempt, codeOf } from '../../base/thrown-value.ts';
import { FailedPreconditionError } from '../../errors/errors.ts';
import { load } from '../connection/connection.ts';
import { chainOf } from '../connection/connection-failure.ts';
import type { NatsConnectionOptions } from '../connection/connection-options.ts';
import { openJetStream } from '../connection/jetstream.ts';
import { type Guard, isCount, isMaybe, isNumber, isRecord, isText } from '../wire/shapes.ts';

/** The content of the key. `ended`: when the run closed its cluster; unset if it lives, or died. */
export type Run = {
  run: string;
  token: number;
  host: string;
  pid: number;
  since: string;
  ended?: string;
};

/** A run that is named by the key, and how often the key had been written then. */
export type Holder = { readonly run: Run; readonly revision: number };

export interface FenceListener {
  /** Whether this run, which has never held the cluster, may take it from this one. */
  mayTake(holder: Holder): Promise<boolean>;
  /** Whether another run with a greater token answers that it holds a key. */
  hasRival(): Promise<boolean>;
  /** Whether the run has ended: the key must not name it as living any more. */
  isOver(): boolean;
}

const KEY = 'run';
/** A signature that JetStream does not answer is tried again soon. */
const TIMEOUT_MS = 3_000;
const bucketOf = (cluster: string): string => `allstop_${cluster}`;

export class Fence {
  readonly #cluster: string;
  readonly #replicas: number;
  readonly #own: Omit<Run, 'token'>;
  readonly #options: NatsConnectionOptions;
  /** The revision of the key as this run wrote it last; undefined: it has to be read. */
  #revision: number | undefined;
  #opened: { nats: NatsConnection; kv: Promise<KV> } | undefined;
  /** Our token; undefined until this run has held the cluster for the first time. */
  token: number | undefined;
  /** We have written the key again after JetStream lost it: the lost key may name a newer run. */
  #isRestored = false;

  constructor(
    cluster: string,
    replicas: number,
    own: Omit<Run, 'token'>,
    options: NatsConnectionOptions,
  ) {
    this.#options = options;
    this.#cluster = cluster;
    this.#replicas = replicas;
    this.#own = own;
  }

  /**
   * Takes the cluster, or signs that this run still holds it. Writes the key again if JetStream
   * has lost it (the store was wiped).
   *
   * `heard`: the greatest token that any message has named, for example one that a node remembers
   * of an earlier run. If `heard` is greater than this run's token although the key names this
   * run, `hold` believes the key and raises the token above `heard`, as a node ignores a
   * run with a smaller token than the greatest that it remembers; but not if a rival is alive, who
   * holds another key, or whose key was lost.
   *
   * @returns whether this run holds the cluster; false: it may not take it yet
   * @throws (rejects) FailedPreconditionError: a newer run holds the cluster; errors of JetStream
   */
  async hold(nats: NatsConnection, heard: number, listener: FenceListener): Promise<boolean> {
    const kv = await this.#open(nats);
    try {
      return await this.#hold(kv, heard, listener);
    } catch (error) {
      this.#opened = undefined; // the bucket may be gone, and is made again
      throw error;
    }
  }

  async #hold(kv: KV, heard: number, listener: FenceListener): Promise<boolean> {
    for (;;) {
      if (listener.isOver()) return false;
      if (this.token !== undefined && this.token >= heard && this.#revision !== undefined) {
        if (await this.#write(kv, this.token, this.#revision)) return true;
      }
      const entry = await kv.get(KEY);
      const there = entry?.operation === 'PUT' ? parseRun(entry.value) : undefined;
      const isOurs = there?.run === this.#own.run;
      const revision = entry?.revision ?? 0;
      if (!isOurs && this.token !== undefined && there !== undefined && there.token > this.token) {
        throw takenOver(this.#cluster, there);
      }
      let isRaised = this.token === undefined || (isOurs && there.token < heard);
      if (isOurs && isRaised && (await listener.hasRival())) {
        if (this.#isRestored) throw takenOver(this.#cluster);
        isRaised = false;
      }
      if (this.token === undefined && there !== undefined && !isOurs) {
        if (!(await listener.mayTake({ run: there, revision }))) return false;
      }
      // After a wipe our token stays as it is: a newer run may write the key, too, and has to win
      // by its greater token.
      const least = isRaised ? Math.max(there?.token ?? 0, heard) + 1 : 0;
      const token = Math.max(this.token ?? Date.now(), isOurs ? there.token : 0, least);
      const isLost = there === undefined && this.token !== undefined;
      if (listener.isOver()) return false;
      if (!(await this.#write(kv, token, revision))) continue; // another coordinator has written it
      if (!isOurs) this.#isRestored = isLost;
      this.token = token;
      return true;
    }
  }

  /** @returns false if the key has another revision. `revision` 0: there is none */
  async #write(kv: KV, token: number, revision: number, ended?: string): Promise<boolean> {
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

  /**
   * Notes in the key that this run has closed its cluster, so that `allstop doctor` can tell the end
   * from a crash, and a run that stands by begins. Changes nothing if another run holds the cluster
   * or JetStream has lost the key.
   *
   * @throws (rejects) errors of JetStream, also if the key changes meanwhile
   */
  async release(nats: NatsConnection): Promise<void> {
    if (this.token === undefined) return;
    const kv = await this.#open(nats);
    const entry = await kv.get(KEY);
    const there = entry?.operation === 'PUT' ? parseRun(entry.value) : undefined;
    if (entry === null || there === undefined || there.run !== this.#own.run) return;
    await this.#write(kv, there.token, entry.revision, new Date().toISOString());
  }

  /** The bucket, opened once for each connection. */
  async #open(nats: NatsConnection): Promise<KV> {
    if (this.#opened?.nats === nats) return await this.#opened.kv;
    const kv = this.#create(nats);
    const opened = { nats, kv };
    this.#opened = opened;
    kv.catch(() => {
      if (this.#opened === opened) this.#opened = undefined;
    });
    return await kv;
  }

  async #create(nats: NatsConnection): Promise<KV> {
    const js = await openJetStream(nats, this.#options, TIMEOUT_MS);
    const { Kvm } = await load('@nats-io/kv', () => import('@nats-io/kv'));
    return await new Kvm(js).create(bucketOf(this.#cluster), {
      history: 1,
      replicas: this.#replicas,
    });
  }
}

export function takenOver(cluster: string, by?: Run): FailedPreconditionError {
  const who = by === undefined ? '' : ` (${by.host}, pid ${by.pid})`;
  return new FailedPreconditionError(
    `A newer run has taken over the cluster '${cluster}'${who}: ` +
      'end one of the two, or give it another cluster name',
  );
}

/** The error of a run that may not take the cluster (`onHeld: 'refuse'`). */
export function heldBy(cluster: string, { host, pid, since }: Run): FailedPreconditionError {
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
  return entry?.operation === 'PUT' ? parseRun(entry.value) : undefined;
}

const isRun: Guard<Run> = isRecord<Run>({
  run: isText,
  token: isCount,
  host: isText,
  pid: isNumber,
  since: isText,
  ended: isMaybe(isText),
});

function parseRun(bytes: Uint8Array): Run | undefined {
  const value = attempt<unknown>(() => JSON.parse(Buffer.from(bytes).toString('utf8')));
  return isRun(value) ? value : undefined;
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
