// The examples of `cancel` as users run them: Ctrl-C ends a loop in a pool's thread, which lives on.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchPeers, withPeers } from '../support/peers.ts';
import { Program } from '../support/program.ts';
import { hasRedis, RedisServer } from '../support/redis.ts';

async function interrupted(path: string, ...args: string[]) {
  const program = new Program(path, args);
  await program.writes(/searching until Ctrl-C\n/);
  program.kill('SIGINT');
  const { code, stdout, stderr } = await program.ended;
  return { code, stderr, lines: stdout.split('\n').slice(1, -1) };
}

const goesOn = { code: 0, stderr: '', lines: ['AbortError', 'the same thread goes on'] };

describe.skipIf(process.platform === 'win32')('a loop that is cancelled in', () => {
  it('a Piscina leaves its thread alive', async () => {
    expect(await interrupted('examples/cancel/piscina.mjs')).toEqual(goesOn);
  });

  it('a tinypool leaves its thread alive', async () => {
    expect(await interrupted('examples/cancel/tinypool.mjs')).toEqual(goesOn);
  });
});

describe.skipIf(!hasRedis)('a loop that is cancelled in BullMQ', { tags: 'long' }, () => {
  let redis: RedisServer;
  let folder: string;

  beforeAll(async () => {
    await fetchPeers();
    folder = withPeers('cancel');
    redis = await RedisServer.start();
  }, 600_000);
  afterAll(async () => redis.stop());

  it('leaves its worker thread alive', async () => {
    expect(await interrupted(`${folder}/bullmq.mjs`, String(redis.port))).toEqual(goesOn);
  });
});
