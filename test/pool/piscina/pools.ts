/** Pools as the tests of Piscina make them: threads, closed after each test. */

import {
  ClusterCoordinator,
  type ClusterOptions,
  LocalStrategy,
  type LocalStrategyOptions,
} from 'allstop/cluster';
import { afterEach } from 'vitest';

const module = new URL('./tasks.mjs', import.meta.url);
const open: ClusterCoordinator[] = [];

afterEach(async () => {
  for (const cluster of open.splice(0)) await cluster.close();
});

export function pool(
  options: Partial<LocalStrategyOptions> = {},
  clusterOptions: ClusterOptions = {},
): ClusterCoordinator {
  const strategy = new LocalStrategy({ module, workers: 1, ...options });
  const cluster = new ClusterCoordinator(strategy, clusterOptions);
  open.push(cluster);
  return cluster;
}

export const sharedWords = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));

/** Ends the functions that wait for the word. */
export function openAll(...all: Int32Array[]): void {
  for (const words of all) {
    Atomics.store(words, 0, 1);
    Atomics.notify(words, 0);
  }
}

/** Resolves when a function has written its word. */
export async function written(words: Int32Array): Promise<void> {
  const { async: isAsync, value } = Atomics.waitAsync(words, 0, 0);
  if (isAsync) await value;
}

/** What the promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<any> {
  return promise.then(
    (value) => {
      throw new Error(`It resolves, with ${String(value)}`);
    },
    (error: unknown) => error,
  );
}
