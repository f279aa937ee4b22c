/** Operations in a bucket of JetStream that take long. */

import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { onTestFinished, vi } from 'vitest';

/** Resolves when an object is being written to the bucket. */
export async function someChunk(nats: NatsConnection, bucket: string): Promise<void> {
  const { streams } = await jetstreamManager(nats);
  const options = { subjects_filter: `$O.${bucket}.C.>` };
  for (;;) {
    const info = await streams.info(`OBJ_${bucket}`, options).catch(() => undefined);
    if (Object.keys(info?.state.subjects ?? {}).length > 0) return;
    await new Promise(setImmediate);
  }
}

/** Hours pass at once, by `performance.now()`, until the test ends. */
export function hoursPass(): void {
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + 3 * 3_600_000);
  onTestFinished(() => spy.mockRestore());
}
