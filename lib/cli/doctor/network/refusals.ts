/**
 * What the server does not permit. It says so beside the questions, which may then just have
 * no answer.
 */

import type { NatsConnection } from '@nats-io/transport-node';

export class Refusals {
  first: Error | undefined;

  constructor(nats: NatsConnection) {
    void this.#watch(nats);
  }

  /** What has come of the work, unless it was not permitted: then that. */
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
