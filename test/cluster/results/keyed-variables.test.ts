/** The function of a call with a key reads variables and writes none: its result is kept. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClusterCoordinator, FileResults, LocalStrategy, type Strategy } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { NatsScene } from '../../support/nats-scene.ts';

const module = new URL('../../fixtures/keyed-tasks.mjs', import.meta.url);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'allstop-keyed-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function story(strategy: Strategy): Promise<void> {
  const results = new FileResults(folder);
  const cluster = new ClusterCoordinator(strategy, { results });
  try {
    const total = await cluster.variable('total', 3);
    const refused = 'ERR_ALLSTOP_FAILED_PRECONDITION';
    const kept = { read: 3, assign: refused, assignAdd: refused };
    expect(await cluster.run('useVariable', ['total'], { key: 'k' })).toEqual(kept);
    expect(await total.read()).toBe(3);
    const all = { read: 3, assign: undefined, assignAdd: undefined };
    expect(await cluster.run('useVariable', ['total'])).toEqual(all);
    expect(await total.read()).toBe(6);
  } finally {
    await cluster.close();
  }
}

describe('a function of a call with a key', () => {
  test.each(['thread', 'process'] as const)('in a %s', async (isolation) => {
    await story(new LocalStrategy({ module, workers: 1, isolation }));
  });

  test('on another machine', { tags: 'nats' }, async () => {
    const scene = await NatsScene.open();
    try {
      scene.spawn({ module });
      scene.spawn({ module, job: 'ps' });
      await story(new NatsStrategy({ module, servers: scene.addresses, cluster: 'test' }));
    } finally {
      await scene.close();
    }
  });
});
