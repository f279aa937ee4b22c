/** Whether the client for NATS is installed, which the package leaves to its users. */

import { load, loadClient } from '../../../cluster/nats/connection/connection.ts';
import { explainFailure } from '../../../cluster/nats/connection/connection-failure.ts';
import type { Check } from '../check.ts';

export async function clientCheck(): Promise<Check> {
  try {
    await loadClient();
    await load('@nats-io/jetstream', () => import('@nats-io/jetstream'));
    await load('@nats-io/kv', () => import('@nats-io/kv'));
    return { name: 'client', ok: true, detail: 'it loads' };
  } catch (error) {
    return { name: 'client', ok: false, ...explainFailure(error) };
  }
}
