/**
 * Collects the permission errors of a NATS connection. The server reports them as status events of
 * the connection; the request itself then only times out.
 */

import type { NatsConnection } from '@nats-io/transport-node';

export class Refusals {
  /** The first permission error. */
  first: Error | undefined;

  constructor(nats: NatsConnection) {
    void this.#watch(nats);
  }

  /** Resolves to the result of `work`. @throws (rejects) the permission error, if there was one */
  async rule<T>(work: Promise<T>): Promise<T> {
    try {
      const found = await work;
      if (this.first === undefined) return found;
    } catch (error) {
      throw this.first ?? error;
    }
    throw this.first;
  }

  async #watch(nats: NatsConnection): Promise<void> {
    for await (const status of nats.status()) {
      if (status.type === 'error') this.first ??= status.error;
    }
  }
}
