// The examples of `cancel` as users run them: Ctrl-C ends a loop in a pool's thread, which lives on.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchPeers, withPeers } from '../support/peers.ts';
import { Program } from '../support/program.ts';

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

const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

describe.skipIf(!hasRedis)('a loop that is cancelled in BullMQ', { tags: 'long' }, () => {
  let redis: ChildProcess;
  let port: string;
  let folder: string;

  beforeAll(async () => {
    await fetchPeers();
    folder = withPeers('cancel');
    port = String(await freePort());
    redis = spawn('redis-server', ['--port', port, '--save', '', '--appendonly', 'no']);
    for await (const text of redis.stdout ?? []) {
      if (String(text).includes('Ready to accept connections')) break;
    }
  }, 600_000);
  afterAll(async () => {
    const ended = once(redis, 'exit');
    redis.kill();
    await ended;
  });

  it('leaves its worker thread alive', async () => {
    expect(await interrupted(`${folder}/bullmq.mjs`, port)).toEqual(goesOn);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
