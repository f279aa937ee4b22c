/** A nats-server on the loopback, which a test may stop, kill and wipe. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('../../scripts/nats-server.sh', import.meta.url));
let binary: string | undefined;

/** Below the ports that systems give to outgoing connections, so that none takes it meanwhile. */
const PORTS = [10_000, 32_000] as const;

/** A port that is free at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = randomInt(...PORTS);
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (!isFree) return freePort();
  server.close();
  await once(server, 'close');
  return port;
}

export class NatsServer {
  readonly port: number;
  readonly #folder: string;
  readonly #config: string;
  readonly #base: string;
  readonly #more: { args: string[]; env: NodeJS.ProcessEnv };
  #child: ChildProcess | undefined;

  private constructor(
    port: number,
    config: string,
    jetstream: boolean | { domain: string },
    more: { args: string[]; env: NodeJS.ProcessEnv } = { args: [], env: {} },
  ) {
    this.#more = more;
    this.port = port;
    this.#folder = mkdtempSync(join(tmpdir(), 'allstop-nats-'));
    this.#config = join(this.#folder, 'nats.conf');
    const store = join(this.#folder, 'store');
    const domain = typeof jetstream === 'object' ? `, domain: ${jetstream.domain}` : '';
    const stream =
      jetstream === false
        ? ''
        : `jetstream { store_dir: "${store}", max_mem: 64MB, max_file: 512MB${domain} }`;
    this.#base = `listen: "127.0.0.1:${port}"\nmax_payload: 1MB\nping_interval: "1s"\nping_max: 2\n${stream}\n`;
    this.#write(config);
  }

  #write(config: string): void {
    writeFileSync(this.#config, `${this.#base}${config}\n`);
  }

  /** Replaces the `config` given to `start`, while the server runs. */
  reconfigure(config: string): void {
    this.#write(config);
    this.#child?.kill('SIGHUP');
  }

  /** The path of the program. */
  static get binary(): string {
    binary ??= execFileSync('bash', [script], { encoding: 'utf8' }).trim();
    return binary;
  }

  /** `config`: lines to add to the configuration file. */
  static async start(
    config = '',
    {
      jetstream = true,
      port = 0,
    }: { jetstream?: boolean | { domain: string }; port?: number } = {},
  ): Promise<NatsServer> {
    const server = new NatsServer(port === 0 ? await freePort() : port, config, jetstream);
    await server.restart();
    return server;
  }

  /** Starts with that configuration file; only address and store are set on the command line. */
  static async startFrom(file: string, env: NodeJS.ProcessEnv): Promise<NatsServer> {
    const port = await freePort();
    const args = ['-c', file, '-a', '127.0.0.1', '-p', String(port)];
    const server = new NatsServer(port, '', false, { args, env });
    args.push('-sd', join(server.#folder, 'store'));
    await server.restart();
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#child?.pid as number;
  }

  /** Starts the server. Resolves when it is ready. */
  async restart(): Promise<void> {
    const { args, env } = this.#more;
    const child = spawn(NatsServer.binary, args.length > 0 ? args : ['-c', this.#config], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    });
    this.#child = child;
    const lines: string[] = [];
    await new Promise<void>((resolve, reject) => {
      createInterface(child.stderr as NodeJS.ReadableStream).on('line', (line) => {
        lines.push(line);
        if (line.includes('Server is ready')) resolve();
      });
      child.once('exit', () => reject(new Error(`nats-server has ended:\n${lines.join('\n')}`)));
    });
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await once(child, 'exit');
  }

  /** Deletes the store. The server must not run. */
  wipe(): void {
    rmSync(join(this.#folder, 'store'), { recursive: true, force: true });
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
