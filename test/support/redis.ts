/** A Redis server of a test's own, on a free port and without a file. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

export class RedisServer {
  readonly port: number;
  readonly #process: ChildProcess;

  private constructor(port: number, process: ChildProcess) {
    this.port = port;
    this.#process = process;
  }

  static async start(): Promise<RedisServer> {
    const port = await freePort();
    const args = ['--port', String(port), '--save', '', '--appendonly', 'no'];
    const process = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    for await (const text of process.stdout) {
      output += String(text);
      if (output.includes('Ready to accept connections')) break;
    }
    if (process.exitCode !== null) throw new Error(`redis-server does not start: ${output}`);
    return new RedisServer(port, process);
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.kill();
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
