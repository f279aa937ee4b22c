/** Operations in a bucket of JetStream that take long. */

import type { NatsConnection } from '@nats-io/transport-node';
import { onTestFinished, vi } from 'vitest';

/** Resolves when an object is being written to the bucket. */
export async function someChunk(nats: NatsConnection, bucket: string): Promise<void> {
  const subscription = nats.subscribe(`$O.${bucket}.C.>`, { max: 1 });
  for await (const _ of subscription);
}

/** Hours pass at once, by `performance.now()`, until the test ends. */
export function hoursPass(): void {
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + 3 * 3_600_000);
  onTestFinished(() => spy.mockRestore());
}
