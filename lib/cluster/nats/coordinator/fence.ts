/**
 * One coordinator a cluster: the newest. Who has the key `run` of the cluster's bucket has
 * the cluster; its token is greater than that of every run before, so that whoever meets an
 * older one knows it. The bucket is the only thing that is kept in JetStream.
 */

import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { FailedPreconditionError } from '../../../errors/errors.ts';
import { load } from '../connection/connection.ts';

export type Run = { run: string; token: number; host: string; pid: number; since: string };

const KEY = 'run';
const bucketOf = (cluster: string): string => `allstop_${cluster}`;

export class Fence {
  readonly #cluster: string;
  readonly #replicas: number;
  readonly #own: Omit<Run, 'token'>;
  /** Undefined until the cluster has been ours. */
  token: number | undefined;
  /** The key was lost, and is there again because of us: a newer one may have been lost, too. */
  #isRestored = false;

  constructor(cluster: string, replicas: number, own: Omit<Run, 'token'>) {
    this.#cluster = cluster;
    this.#replicas = replicas;
    this.#own = own;
  }

  /**
   * Takes the cluster, or makes sure that it still is ours. A store that was wiped has
   * forgotten it, and is told again. `heard`: the greatest token that anybody has spoken of.
   * If it is greater than ours, and the key says that the cluster is ours, the key is right,
   * and ours becomes greater, so that who remembers that one listens to us; unless the store
   * was wiped since we had the cluster: then the run of that token may live (`isRivalled`), and
   * is the newer one.
   *
   * @throws (rejects) FailedPreconditionError: a newer run has it; what JetStream says
   */
  async hold(
    nats: NatsConnection,
    heard = 0,
    isRivalled: () => Promise<boolean> = async () => false,
  ): Promise<number> {
    const kv = await this.#open(nats);
    for (;;) {
      const entry = await kv.get(KEY);
      const there = entry?.operation === 'PUT' ? parseRun(entry.value) : undefined;
      const isOurs = there?.run === this.#own.run;
      if (isOurs && there.token >= heard) return (this.token = there.token);
      if (isOurs && this.#isRestored && (await isRivalled())) throw takenOver(this.#cluster);
      if (!isOurs && this.token !== undefined && there !== undefined && there.token > this.token) {
        throw takenOver(this.#cluster, there);
      }
      // One that the store has forgotten keeps its own: a newer run may come back, too.
      const isRaised = isOurs || this.token === undefined;
      const least = isRaised ? Math.max(there?.token ?? 0, heard) + 1 : 0;
      const token = Math.max(this.token ?? Date.now(), least);
      const value = JSON.stringify({ ...this.#own, token });
      try {
        if (entry === null) await kv.create(KEY, value);
        else await kv.update(KEY, value, entry.revision);
      } catch (error) {
        if (!isConflict(error)) throw error;
        continue; // another was quicker
      }
      this.#isRestored = there === undefined && this.token !== undefined;
      this.token = token;
      return token;
    }
  }

  async #open(nats: NatsConnection): Promise<KV> {
    const { jetstream } = await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
    const { Kvm } = await load('@nats-io/kv', () => import('@nats-io/kv'));
    const manager = new Kvm(jetstream(nats));
    return await manager.create(bucketOf(this.#cluster), { history: 1, replicas: this.#replicas });
  }
}

function takenOver(cluster: string, by?: Run): FailedPreconditionError {
  const who = by === undefined ? '' : `, of ${by.host} (pid ${by.pid})`;
  return new FailedPreconditionError(`A newer run has taken over the cluster '${cluster}'${who}`);
}

/** Who holds the cluster, as far as the bucket tells. Changes nothing. */
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
    const { run, token, host, pid, since } = value ?? {};
    const isRun =
      typeof run === 'string' &&
      Number.isSafeInteger(token) &&
      typeof host === 'string' &&
      typeof pid === 'number' &&
      typeof since === 'string';
    return isRun ? (value as Run) : undefined;
  } catch {
    return undefined;
  }
}

/** Nobody serves it, which is how a server answers a direct question about what it has not. */
function isNoBucket(error: unknown): boolean {
  const { code, name, cause } = error as { code?: unknown; name?: unknown; cause?: unknown };
  const isUnknown = code === 10059 || name === 'StreamNotFoundError' || name === 'NoResponders';
  return isUnknown || (typeof cause === 'object' && cause !== null && isNoBucket(cause));
}

/** The stream's last sequence is another than was expected. */
function isConflict(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === 10071 || code === 10164; // which says the same, without the number
}
