// @module-tag nats
// The workers of bench/nats-scale.mjs speak the protocol of this version.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { connect } from '@nats-io/transport-node';
import { ClusterCoordinator } from 'allstop/cluster';
import { NatsStrategy } from 'allstop/nats';
import { expect, it } from 'vitest';
import { NatsServer } from '../../support/nats-server.ts';

const module = new URL('../../../bench/nats-tasks.mjs', import.meta.url);
const program = fileURLToPath(
  new URL('../../../bench/nats-peers/virtual-workers.mjs', import.meta.url),
);

it('virtual workers join, and run what they are sent', async () => {
  const server = await NatsServer.start();
  const args = [program, server.address, 'c', '3', fileURLToPath(module)];
  const workers = spawn(process.execPath, args, { stdio: 'inherit' });
  const strategy = new NatsStrategy({
    module,
    servers: server.address,
    cluster: 'c',
    minWorkers: 3,
  });
  const cluster = new ClusterCoordinator(strategy);
  const nats = await connect({ servers: server.address });
  try {
    await cluster.ready({ timeoutMs: 10_000 });
    const work = async (): Promise<void> => {
      const sums = Array.from({ length: 20 }, (_, n) => cluster.run('add', [n, 1]));
      expect(await Promise.all(sums)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
    };
    await work();
    // They are there still when the coordinator has said again that it lives.
    for await (const said of nats.subscribe('allstop.c.who')) {
      if (said.json<{ kind: string }>().kind === 'alive') break;
    }
    await work();
    await expect.poll(() => cluster.stats().engine?.['nodesLost']).toBe(0);
  } finally {
    await nats.close();
    await cluster.close();
    workers.kill();
    await server.close();
  }
});
