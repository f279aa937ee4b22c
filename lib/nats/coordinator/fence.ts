/**
 * Sees to it that one run holds the cluster: the newest. The key `run` of the cluster's bucket
 * names that run and its token, which is greater than the token of every earlier run: by the
 * tokens a node or coordinator knows which of two runs is newer. JetStream stores only this bucket.
 */

import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { FailedPreconditionError } from '../../errors/errors.ts';
import { load } from '../connection/connection.ts';

/** The content of the key. `ended`: when the run closed its cluster; unset if it lives, or died. */
export type Run = {
  run: string;
  token: number;
  host: string;
  pid: number;
  since: string;
  ended?: string;
};

const KEY = 'run';
const bucketOf = (cluster: string): string => `allstop_${cluster}`;

export class Fence {
  readonly #cluster: string;
  readonly #replicas: number;
  readonly #own: Omit<Run, 'token'>;
  /** Our token; undefined until this run has held the cluster for the first time. */
  token: number | undefined;
  /** We have written the key again after JetStream lost it: the lost key may name a newer run. */
  #isRestored = false;

  constructor(cluster: string, replicas: number, own: Omit<Run, 'token'>) {
    this.#cluster = cluster;
    this.#replicas = replicas;
    this.#own = own;
  }

  /**
   * Takes the cluster, or checks that this run still holds it. Writes the key again if JetStream
   * has lost it (the store was wiped).
   *
   * `heard`: the greatest token that any message has named, for example one that a node remembers
   * of an earlier run. If `heard` is greater than this run's token although the key names this
   * run, `hold` believes the key and raises the token above `heard`, as a node ignores a
   * run with a smaller token than the greatest that it remembers. But if the store was wiped since
   * this run held the cluster, a newer run with the greater token may be alive: then `hold` asks
   * `hasRival` first, and rejects if there is one.
   *
   * @returns the token
   * @throws (rejects) FailedPreconditionError: a newer run holds the cluster; errors of JetStream
   */
  async hold(
    nats: NatsConnection,
    heard = 0,
    hasRival: () => Promise<boolean> = async () => false,
  ): Promise<number> {
    const kv = await this.#open(nats);
    for (;;) {
      const entry = await kv.get(KEY);
      const there = entry?.operation === 'PUT' ? parseRun(entry.value) : undefined;
      const isOurs = there?.run === this.#own.run;
      if (isOurs && there.token >= heard) return (this.token = there.token);
      if (isOurs && this.#isRestored && (await hasRival())) throw takenOver(this.#cluster);
      if (!isOurs && this.token !== undefined && there !== undefined && there.token > this.token) {
        throw takenOver(this.#cluster, there);
      }
      // After a wipe our token stays as it is: a newer run may write the key, too, and has to win
      // by its greater token.
      const isRaised = isOurs || this.token === undefined;
      const least = isRaised ? Math.max(there?.token ?? 0, heard) + 1 : 0;
      const token = Math.max(this.token ?? Date.now(), least);
      const value = JSON.stringify({ ...this.#own, token });
      try {
        if (entry === null) await kv.create(KEY, value);
        else await kv.update(KEY, value, entry.revision);
      } catch (error) {
        if (!isConflict(error)) throw error;
        continue; // another coordinator has written the key meanwhile
      }
      this.#isRestored = there === undefined && this.token !== undefined;
      this.token = token;
      return token;
    }
  }

  /**
   * Notes in the key that this run has closed its cluster, so that `allstop doctor` can tell the end
   * from a crash. Changes nothing if another run holds the cluster or JetStream has lost the key.
   *
   * @throws (rejects) errors of JetStream, also if the key changes meanwhile
   */
  async release(nats: NatsConnection): Promise<void> {
    if (this.token === undefined) return;
    const kv = await this.#open(nats);
    const entry = await kv.get(KEY);
    const there = entry?.operation === 'PUT' ? parseRun(entry.value) : undefined;
    if (entry === null || there === undefined || there.run !== this.#own.run) return;
    const ended = new Date().toISOString();
    await kv.update(KEY, JSON.stringify({ ...there, ended }), entry.revision);
  }

  async #open(nats: NatsConnection): Promise<KV> {
    const { jetstream } = await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
    const { Kvm } = await load('@nats-io/kv', () => import('@nats-io/kv'));
    const manager = new Kvm(jetstream(nats));
    return await manager.create(bucketOf(this.#cluster), { history: 1, replicas: this.#replicas });
  }
}

function takenOver(cluster: string, by?: Run): FailedPreconditionError {
  const who = by === undefined ? '' : ` (${by.host}, pid ${by.pid})`;
  return new FailedPreconditionError(
    `A newer run has taken over the cluster '${cluster}'${who}: ` +
      'end one of the two, or give it another cluster name',
  );
}

/** Reads which run holds the cluster. Undefined when no run has, or the bucket is missing. */
export async function holderOf(
  nats: NatsConnection,
  cluster: string,
  timeout: number,
): Promise<Run | undefined> {
  const { jetstream } = await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
  const { Kvm } = await load('@nats-io/kv', () => import('@nats-io/kv'));
  const js = jetstream(nats, { timeout });
  const bucket = await new Kvm(js).open(bucketOf(cluster), { allow_direct: true });
  const entry = await bucket.get(KEY).catch((error: unknown) => {
    if (isNoBucket(error)) return null;
    throw error;
  });
  return entry?.operation === 'PUT' ? parseRun(entry.value) : undefined;
}

function parseRun(bytes: Uint8Array): Run | undefined {
  try {
    const value = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<Run> | null;
    const { run, token, host, pid, since, ended } = value ?? {};
    const isRun =
      typeof run === 'string' &&
      Number.isSafeInteger(token) &&
      typeof host === 'string' &&
      typeof pid === 'number' &&
      typeof since === 'string' &&
      ['string', 'undefined'].includes(typeof ended);
    return isRun ? (value as Run) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the bucket is missing. To a direct get, the server then replies 'no responders'. */
function isNoBucket(error: unknown): boolean {
  const { code, name, cause } = error as { code?: unknown; name?: unknown; cause?: unknown };
  const isUnknown = code === 10059 || name === 'StreamNotFoundError' || name === 'NoResponders';
  return isUnknown || (typeof cause === 'object' && cause !== null && isNoBucket(cause));
}

/** Whether the key has changed since it was read (JetStream: wrong last sequence). */
function isConflict(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === 10071 || code === 10164; // 10164: the same, without the sequence number
}
